# SPDX-License-Identifier: Apache-2.0
"""Whether a control plane may be taken out for a rebuild, by etcd's majority.

etcd serves while more than half of its members are up (n/2+1 of n). A rebuild takes
minutes, so the other members have to be a healthy majority without it. A control plane
whose API server or node is unhealthy counts as lost too, because kubespray works on all
control planes while one joins.
"""

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple


class Refusal(NamedTuple):
    """Why control planes may not be taken out now, and what to do."""

    reason: str
    hint: str


_WHOLE = (
    "Heal without vnfcInstanceId to rebuild the whole cluster, or heal the other "
    "VNFCs alone."
)
ONE_AT_A_TIME = "Control planes are healed one at a time, while the others are healthy."
_NO_LEADER = (
    "No operation restores etcd's majority. Bring machines of the control plane up "
    "again until it is there; if they are lost, run kubespray's "
    "recover-control-plane.yml by hand on the Ansible server, or heal the whole VNF, "
    "which makes a new cluster."
)


@dataclass(frozen=True)
class EtcdMember:
    """A member of the etcd cluster, as reported by its members.

    :param name: "" for a member that was added and never started.
    :param member_id: hexadecimal, as in etcdctl; "" if it is not known.
    :param address: its address for peers, without scheme and port.
    :param healthy: whether it answers, and takes part in a cluster with a leader.
    :param learner: whether it has no vote yet.
    :param problem: why it is not healthy; "" if it is.
    """

    name: str
    member_id: str
    address: str
    healthy: bool
    leader: bool = False
    learner: bool = False
    problem: str = ""


@dataclass(frozen=True)
class ControlPlane:
    """A control plane of the inventory.

    :param name: of the node.
    :param member: name of its etcd member.
    :param address: in the cluster's network.
    :param api_readiness: why its own API server is not ready; "" if it is.
    :param node_problem: why its Node object is not Ready; "" if it is.
    """

    name: str
    member: str
    address: str
    api_readiness: str = ""
    node_problem: str = ""


def refusal(
    planes: Sequence[ControlPlane],
    members: Sequence[EtcdMember],
    leaving: Collection[str],
    *,
    heals: bool = True,
) -> Refusal | None:
    """Why these control planes may not be taken out now; None if they may.

    A single control plane is not healed (specification, "Heal"). The reason lists the
    healthy and the unhealthy control planes.

    :param planes: those of the inventory, in its order.
    :param members: all members of etcd.
    :param leaving: names of the control planes to rebuild.
    :param heals: whether a control plane that is not healthy could be healed now.
    """
    gone = [plane for plane in planes if plane.name in leaving]
    if not gone:
        return None
    names = ", ".join(plane.name for plane in gone)
    if len(planes) == 1:
        return Refusal(
            f"{names} is the only control plane: to rebuild it would take etcd, and "
            "so the cluster, with it",
            _WHOLE,
        )
    if len(gone) > 1:
        return Refusal(
            f"{names} are {len(gone)} control planes, and only one at a time can be "
            "rebuilt",
            ONE_AT_A_TIME,
        )
    found = _no_majority(planes, members, gone[0], heals)
    described = _described(planes, members)
    return found and found._replace(reason=f"{found.reason}. {described}")


def _no_majority(
    planes: Sequence[ControlPlane],
    members: Sequence[EtcdMember],
    leaver: ControlPlane,
    heals: bool,
) -> Refusal | None:
    if not any(member.leader for member in members if member.healthy):
        text = "etcd has no leader, so it has lost its majority already"
        return Refusal(text, _NO_LEADER)
    # A learner has no vote; a member that was taken out and is not back still counts.
    voters = [member for member in members if not member.learner]
    size = max(len(planes), len(voters))
    needed = size // 2 + 1
    left = sum(
        _is_healthy(voter, planes) for voter in voters if not _is_of(voter, leaver)
    )
    if left >= needed:
        return None
    ill = "those that are not healthy"
    return Refusal(
        f"without {leaver.name}, {left or 'none'} of {size} control planes would be "
        f"left healthy, and etcd needs {needed} to continue",
        f"Fix or heal {ill}. {ONE_AT_A_TIME}" if heals else f"Fix {ill}.",
    )


def _is_of(member: EtcdMember, plane: ControlPlane) -> bool:
    # A member that was never started has no name yet.
    return member.address == plane.address or bool(
        member.name and member.name == plane.member
    )


def _is_healthy(member: EtcdMember, planes: Sequence[ControlPlane]) -> bool:
    owner = next((plane for plane in planes if _is_of(member, plane)), None)
    return member.healthy and not (
        owner and (owner.api_readiness or owner.node_problem)
    )


def _described(planes: Sequence[ControlPlane], members: Sequence[EtcdMember]) -> str:
    """The healthy control planes, and the problems of the others."""
    well, ill = [], []
    for plane in planes:
        own = [member for member in members if _is_of(member, plane)]
        problems = list(_problems(plane, own))
        name = f"{plane.name} ({plane.member or 'no etcd member'})"
        if problems:
            ill.append(f"{name}: {', '.join(problems)}")
        else:
            is_leader = any(member.leader for member in own)
            well.append(f"{name}, etcd's leader" if is_leader else name)
    for member in members:
        if not any(_is_of(member, plane) for plane in planes):
            state = "healthy" if member.healthy else member.problem or "not healthy"
            name = f"{member.name or member.member_id} ({member.address})"
            ill.append(f"etcd's member {name} of no control plane: {state}")
    sentences = [f"Healthy: {'; '.join(well) or 'none'}"]
    if ill:
        sentences.append(f"Unhealthy: {'; '.join(ill)}")
    return ". ".join(sentences)


def _problems(plane: ControlPlane, own: Sequence[EtcdMember]) -> Iterator[str]:
    if not own:
        yield "etcd has no member of it"
    for member in own:
        if member.learner:
            yield "its etcd member has no vote yet"
        elif not member.healthy:
            yield f"its etcd member: {member.problem or 'not healthy'}"
    if plane.api_readiness:
        yield f"its API server: {plane.api_readiness}"
    if plane.node_problem:
        yield f"its node: {plane.node_problem}"
