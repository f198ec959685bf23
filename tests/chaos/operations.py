# SPDX-License-Identifier: Apache-2.0
"""What is done in a campaign: operations, by name, and which are possible where."""

from collections.abc import Mapping
from dataclasses import dataclass

_COMPARE = "compare Heat, inventory and cluster"
_LOGINS = "wait until the new VMs accept SSH logins"
_LEAVE = "take the leaving nodes out of the load balancer"
_DRAIN = "drain the leaving nodes"
REMOVE = "run remove-node.yml"
_FORGET = "write the inventory without them"
FACTS = "gather the facts of all hosts"
JOIN = "run scale.yml"
_ROUTES = "add the new workers to the load balancer"
_NAMESPACES = "make the namespaces of the tenants"
_SETTINGS = "set labels, annotations and taints"
_SERVICES_FOUND = "find the Services of the CNF"


@dataclass(frozen=True)
class Operation:
    """An operation.

    :param steps: names of the steps that the journal records, at which faults come.
    :param workers: how many workers it adds.
    """

    steps: tuple[str, ...] = ()
    workers: int = 0


_WHOLE = (
    "wait until the VMs accept SSH logins",
    "install the load balancer",
    "run cluster.yml",
    "wait until all nodes are Ready",
    "register the cluster as a VIM",
)
OPERATIONS: Mapping[str, Operation] = {
    "instantiate": Operation(_WHOLE),
    "scale out": Operation((_COMPARE, _LOGINS, FACTS, JOIN, _ROUTES), 1),
    "scale in": Operation((_COMPARE, _LEAVE, _DRAIN, REMOVE, _FORGET), -1),
    "heal worker": Operation((_COMPARE, _DRAIN, REMOVE, _FORGET, _LOGINS, JOIN)),
    "heal load balancer": Operation((_COMPARE, "install the load balancer anew")),
    "heal VNF": Operation(("remove the inventory directory", *_WHOLE)),
    "modify labels": Operation((_SETTINGS,)),
    "change tenants": Operation((_NAMESPACES, "register the VIMs of the tenants")),
    "maintenance": Operation(("drain them", "taint them for the maintenance")),
    "end of maintenance": Operation(
        ("put nodes that come back behind the load balancer", _SETTINGS)
    ),
    "heal control plane": Operation((_COMPARE, REMOVE, _LOGINS, "run cluster.yml")),
    "change applications": Operation(
        ("check the applications", "remove applications that are not wanted")
    ),
    "instantiate CNF": Operation(
        (_SERVICES_FOUND, "expose the Services on the load balancer")
    ),
    "scale CNF": Operation((_SERVICES_FOUND,)),
    "terminate CNF": Operation(
        ("find what is exposed of the CNF", "remove it from the load balancer")
    ),
    "terminate": Operation(("remove the inventory directory",)),
}
FIRST, LAST = "instantiate", "terminate"
MODIFICATIONS = (
    *("modify labels", "change tenants", "change applications"),
    *("maintenance", "end of maintenance"),
)
MAINTAIN, RESUME = "maintenance", "end of maintenance"
#: Of a CNF on the cluster; in the order of its life.
CNF = ("instantiate CNF", "scale CNF", "terminate CNF")
#: What is refused or no longer as it was while a CNF is there.
ALONE = ("heal VNF", LAST)
#: What a cluster without a load balancer does not have.
BALANCED = ("heal load balancer", *CNF)
#: What one with a single control plane does not have.
AVAILABLE = ("heal control plane",)
#: What has images that the mirror of the real laboratory does not have.
ONLY_QUICK = ("change applications", *CNF)
#: In the real laboratory these take the longest, so they come seldom there, and what
#: runs a playbook comes less often than what does not.
SELDOM = ("heal VNF", "terminate")
PLAYBOOK_OPERATIONS = ("scale out", "scale in", "heal worker", "heal control plane")
