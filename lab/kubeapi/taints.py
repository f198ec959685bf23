# SPDX-License-Identifier: Apache-2.0
"""Taints of nodes and what tolerates them."""

from .objects import Obj

UNSCHEDULABLE = "node.kubernetes.io/unschedulable"
UNREACHABLE = "node.kubernetes.io/unreachable"
NOT_READY = "node.kubernetes.io/not-ready"
OUT_OF_SERVICE = "node.kubernetes.io/out-of-service"

_TOLERATED_SECONDS = 300  # how long an ordinary pod stays on a node that is lost


def taints_of(node: Obj) -> list[Obj]:
    return node["spec"].get("taints") or []


def tolerated_by(taint: Obj, tolerations: list[Obj] | None) -> list[Obj]:
    """Those of the tolerations that are about this taint."""
    return [
        toleration for toleration in tolerations or [] if _tolerates(toleration, taint)
    ]


def _tolerates(toleration: Obj, taint: Obj) -> bool:
    if toleration.get("effect") not in (None, "", taint["effect"]):
        return False
    key = toleration.get("key")
    if toleration.get("operator") == "Exists":
        return key in (None, "", taint["key"])
    same_value = toleration.get("value", "") == taint.get("value", "")
    return bool(key == taint["key"] and same_value)


def tolerates(node: Obj, tolerations: list[Obj] | None) -> bool:
    """Whether pods with those tolerations may be put on the node."""
    return all(
        tolerated_by(taint, tolerations)
        for taint in taints_of(node)
        if taint["effect"] != "PreferNoSchedule"
    )


def daemon_tolerations(own: list[Obj] | None) -> list[Obj]:
    """What a DaemonSet's pods tolerate: its own, and what does not end them.

    Not that a node is not Ready (``NoSchedule``): to such a node no new ones come
    (k8s.io/kubernetes, ``AddOrUpdateDaemonPodTolerations``).
    """
    added = (
        (NOT_READY, "NoExecute"),
        (UNREACHABLE, "NoExecute"),
        ("node.kubernetes.io/disk-pressure", "NoSchedule"),
        ("node.kubernetes.io/memory-pressure", "NoSchedule"),
        ("node.kubernetes.io/pid-pressure", "NoSchedule"),
        (UNSCHEDULABLE, "NoSchedule"),
    )
    made = [
        {"key": key, "operator": "Exists", "effect": effect} for key, effect in added
    ]
    return [*(own or []), *made]


def default_tolerations(own: list[Obj] | None) -> list[Obj]:
    """What pods tolerate for a while by default."""
    added: list[Obj] = []
    for key in (NOT_READY, UNREACHABLE):
        if not tolerated_by({"key": key, "effect": "NoExecute"}, own):
            added.append(
                {
                    "key": key,
                    "operator": "Exists",
                    "effect": "NoExecute",
                    "tolerationSeconds": _TOLERATED_SECONDS,
                }
            )
    return [*(own or []), *added]
