# SPDX-License-Identifier: Apache-2.0
"""Questions to a cluster, for commands that give access to it."""

from collections.abc import Callable
from typing import Any, TypeVar

from tacker_k8s_mgmt import errors
from tacker_k8s_mgmt.cli.common import NotDone
from tacker_k8s_mgmt.model.nodes import Node, name_nodes
from tacker_k8s_mgmt.status import report
from tacker_k8s_mgmt.status.facts import Answers

Answer = TypeVar("Answer")


def ask(instance: Any, question: Callable[[Node], Answer]) -> tuple[str, Answer]:
    """The URL of the cluster's API, and the answer of a control plane.

    :param instance: the cluster, as ``lookup.opened`` gives it.
    :param question: is put to one control plane after the other, until one answers.
    :raises NotDone: none does, or Heat has none.
    """
    machines = instance.view.machines()
    url = report.endpoint(Answers(machines=machines), instance.params.load_balancer)
    if url is None:
        raise NotDone("Heat has no complete VM that offers the API.")
    failures = []
    for plane in name_nodes(machines.control_planes):
        try:
            return url, question(plane)
        except errors.RemoteError as error:
            failures.append(str(error))
    raise NotDone(" ".join(failures) or "Heat has no complete control plane.")
