# SPDX-License-Identifier: Apache-2.0
"""What is done in a campaign: operations, by name, and which are possible where."""

from collections.abc import Mapping
from dataclasses import dataclass

_COMPARE = "compare"
_LOGINS = "wait-for-logins"
_LEAVE = "remove-routes"
_DRAIN = "drain"
REMOVE = "remove-nodes"
_FORGET = "shrink-inventory"
FACTS = "gather-facts"
JOIN = "join-workers"
JOIN_CONTROL_PLANES = "join-control-planes"
INSTALL = "install-kubernetes"
_ROUTES = "add-routes"
_NAMESPACES = "create-tenants"
_SETTINGS = "set-node-settings"
_SERVICES_FOUND = "find-services"


@dataclass(frozen=True)
class Operation:
    """An operation.

    :param steps: kinds of the steps that the journal records, at which faults come.
    :param workers: how many workers it adds.
    """

    steps: tuple[str, ...] = ()
    workers: int = 0


_WHOLE = (
    "wait-for-logins",
    "install-load-balancer",
    INSTALL,
    "wait-for-nodes",
    "register-vim",
)
OPERATIONS: Mapping[str, Operation] = {
    "instantiate": Operation(_WHOLE),
    "scale out": Operation((_COMPARE, _LOGINS, FACTS, JOIN, _ROUTES), 1),
    "scale in": Operation((_COMPARE, _LEAVE, _DRAIN, REMOVE, _FORGET), -1),
    "heal worker": Operation((_COMPARE, _DRAIN, REMOVE, _FORGET, _LOGINS, JOIN)),
    "heal load balancer": Operation((_COMPARE, "install-load-balancer")),
    "heal VNF": Operation(("remove-directory", *_WHOLE)),
    "modify labels": Operation((_SETTINGS,)),
    "change tenants": Operation((_NAMESPACES, "register-tenant-vims")),
    "maintenance": Operation(("drain", "taint")),
    "end of maintenance": Operation(("add-routes", _SETTINGS)),
    "heal control plane": Operation((_COMPARE, REMOVE, _LOGINS, JOIN_CONTROL_PLANES)),
    "change applications": Operation(("check-applications", "remove-applications")),
    "instantiate CNF": Operation((_SERVICES_FOUND, "expose-services")),
    "scale CNF": Operation((_SERVICES_FOUND,)),
    "terminate CNF": Operation(("find-exposed-services", "remove-ports")),
    "terminate": Operation(("remove-directory",)),
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
