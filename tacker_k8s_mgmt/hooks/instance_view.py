# SPDX-License-Identifier: Apache-2.0
"""Clusters as Tacker records them, and the states of their operations.

No cluster is asked. Both APIs of Tacker name the states alike.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeVar

#: The attribute of a cluster in ``additionalParams``, in both spellings.
PARAMETERS = ("k8s_cluster_installation_param", "k8sClusterInstallationParam")
COMPLETED = "COMPLETED"
#: An operation that waits for a verb.
FAILED_TEMP = "FAILED_TEMP"
#: An operation in one of these is over. Tacker's v1 API has no constant for the last.
ENDED = (COMPLETED, "FAILED", "ROLLED_BACK")


def has_parameters(additional_params: Mapping[str, Any] | None) -> bool:
    """Whether a request has the attribute of a cluster, valid or not."""
    given = additional_params or {}
    return any(given.get(name) is not None for name in PARAMETERS)


Occurrence = TypeVar("Occurrence")


def to_show(
    history: Sequence[Occurrence], state: Callable[[Occurrence], str]
) -> Occurrence | None:
    """The last operation that is not over, else the last one; None without any.

    One in FAILED_TEMP keeps its cluster waiting, whatever has completed since.
    """
    latest = tuple(reversed(history))
    unfinished = (one for one in latest if state(one) not in ENDED)
    return next(unfinished, next(iter(latest), None))


def described(occurrences: Iterable[tuple[object, object, object]]) -> str:
    """Operations in words.

    :param occurrences: operation, id and state of each.
    """
    return ", ".join(f"{name} {id_} is {state}" for name, id_, state in occurrences)


def under_way(occurrences: Iterable[tuple[object, object, object]]) -> str:
    """The id of the operation that Tacker works on; "" if there is none.

    :param occurrences: operation, id and state of each that is not over.
    """
    busy = (str(id_) for _, id_, state in occurrences if state != FAILED_TEMP)
    return next(busy, "")


@dataclass(frozen=True)
class ClusterSummary:
    """A VNF instance that is a cluster, or that a request was to make into one.

    :param api: Tacker's, ``v1`` or ``v2``.
    :param state: Tacker's ``instantiationState``.
    :param vim: name of the cluster's VIM; "" if it is none, as with the URL.
    :param url: of the cluster's API.
    :param vms: how many VMs Tacker lists, by VDU.
    :param operation: the one to show (:func:`to_show`), such as ``HEAL``; "" if there
        was none, as with its state and its id.
    """

    vnf_id: str
    name: str
    api: str
    state: str
    vim: str = ""
    url: str = ""
    vms: Mapping[str, int] = field(default_factory=dict)
    operation: str = ""
    operation_state: str = ""
    operation_id: str = ""
