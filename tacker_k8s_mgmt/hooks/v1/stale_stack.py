# SPDX-License-Identifier: Apache-2.0
"""The Heat stack of an instantiation that was given up.

Tacker 16's v1 API keeps it after ``fail``, and after the rollback of an operation whose
conductor was killed while Heat created the VMs. A later instantiation gives its stack
the same name (``OpenStack._create_stack_with_user_data``), which Heat would refuse.
"""

from typing import Any

from tacker_k8s_mgmt import errors
from tacker_k8s_mgmt.hooks.v1 import openstack
from tacker_k8s_mgmt.hooks.v1.context import V1Site
from tacker_k8s_mgmt.lifecycle.runner import Step
from tacker_k8s_mgmt.remote.backoff import Backoff

_LIMIT = 600.0  # seconds for Heat to delete it
_FAILED = "DELETE_FAILED"


def step(site: V1Site) -> Step:
    """Delete the stack with the name of this VNF instance, which has none yet.

    :param site: on its Ansible server, a playbook may still run for the stack's VMs.
    """
    instance_id = site.instance.id
    name = f"vnflcm_{instance_id}"

    def ask(question: Any) -> Any:
        try:
            return question(openstack.heat_of(site.context, site.instance))
        except Exception as error:
            # The client, its session and the renewal of tokens raise many kinds.
            raise errors.RemoteError(
                detail=f"Heat could not be asked for the stack {name}: "
                f"{error or type(error).__name__}.",
                hint="Check that Heat answers with the VIM's credentials.",
            ) from error

    def stack() -> Any:
        return ask(lambda client: client.find_stack(name=name))

    def delete() -> None:
        if site.workdir.owner() == instance_id:
            # The operation that holds the lock still works on these VMs.
            site.lock()
            site.playbooks.stop()
        left = stack()
        if left is None:
            return
        ask(lambda client: client.delete(left.id))
        waiting = Backoff(_LIMIT)
        while (left := stack()) is not None:
            if left.stack_status == _FAILED or waiting.spent():
                raise errors.RemoteError(
                    detail=f"Heat did not delete the stack {name}, which an "
                    f"earlier instantiation left: it is {left.stack_status}.",
                    hint="Look why with `openstack stack failures list --long`, and "
                    "delete it with `openstack stack delete`.",
                )
            waiting.pause()

    return Step(
        "delete the stack of an instantiation that was given up",
        delete,
        probe=lambda: stack() is None,
    )
