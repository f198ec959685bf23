"""Whether a control plane may be taken out to be built anew: etcd's majority decides.

etcd serves while more than half of its members are up (n/2+1 of n). What is rebuilt is
down for minutes, so the others have to be enough without it, and well: a member that is
ill and is not the one that is healed counts as lost, and so does a control plane whose
API server or node is ill, for kubespray works on all of them while one is joined.
"""

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass


@dataclass(frozen=True)
class EtcdMember:
    """A member of the etcd cluster, as its members describe it.

    :param name: "" for one that was added and was never started.
    :param member_id: as etcdctl writes it, hexadecimal; "" where nobody can say.
    :param address: where its peers reach it, without scheme and port.
    :param healthy: it answers, and takes part in a cluster that has a leader.
    :param learner: it has no vote yet.
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
    :param api_problem: why its own API server is not ready; "" if it is.
    :param node_problem: why its Node object is not Ready; "" if it is.
    """

    name: str
    member: str
    address: str
    api_problem: str = ""
    node_problem: str = ""


def refusal(
    planes: Sequence[ControlPlane],
    members: Sequence[EtcdMember],
    leaving: Collection[str],
    *,
    first_stays: str = "",
) -> str:
    """Why these control planes may not be taken out now; "" if they may.

    Specification, "Heal": a single control plane is not healed. Otherwise the sentence
    says who is well and who is not.

    :param planes: all of the inventory, in its order.
    :param members: all of etcd, whoever they belong to.
    :param leaving: names of the control planes that are to be built anew.
    :param first_stays: why the first control plane of the inventory cannot be replaced
        with the release of kubespray that is used; "" if it can be, by putting another
        one first.
    """
    gone = [plane for plane in planes if plane.name in leaving]
    if not gone:
        return ""
    names = ", ".join(plane.name for plane in gone)
    if len(planes) == 1:
        return (
            f"{names} is the only control plane: to build it anew would take etcd, and "
            "so the cluster, with it"
        )
    if len(gone) > 1:
        return (
            f"{names} are {len(gone)} control planes, and only one at a time can be "
            "built anew"
        )
    leaver = gone[0]
    if leaver is planes[0] and first_stays:
        return f"{names} is the first control plane, and {first_stays}"
    reason = _no_majority(planes, members, leaver)
    return f"{reason}. {_described(planes, members)}" if reason else ""


def _no_majority(
    planes: Sequence[ControlPlane], members: Sequence[EtcdMember], leaver: ControlPlane
) -> str:
    if not any(one.leader for one in members if one.healthy):
        return "etcd has no leader, so it has lost its majority already"
    # A learner has no vote; a member that was taken out and is not back still counts.
    voters = [one for one in members if not one.learner]
    size = max(len(planes), len(voters))
    needed = size // 2 + 1
    left = sum(_is_well(one, planes) for one in voters if not _belongs(one, leaver))
    if left >= needed:
        return ""
    return (
        f"without {leaver.name}, {_count(left)} of {size} control planes would be left "
        f"well, and etcd needs {needed} to go on"
    )


def _count(number: int) -> str:
    return str(number) if number else "none"


def _belongs(member: EtcdMember, plane: ControlPlane) -> bool:
    # One that was never started has no name yet.
    return member.address == plane.address or bool(
        member.name and member.name == plane.member
    )


def _is_well(member: EtcdMember, planes: Sequence[ControlPlane]) -> bool:
    owner = next((plane for plane in planes if _belongs(member, plane)), None)
    sick = owner and (owner.api_problem or owner.node_problem)
    return member.healthy and not sick


def _described(planes: Sequence[ControlPlane], members: Sequence[EtcdMember]) -> str:
    """Who is well, and what is wrong with the others."""
    well, ill = [], []
    for plane in planes:
        own = [one for one in members if _belongs(one, plane)]
        problems = list(_problems(plane, own))
        name = f"{plane.name} ({plane.member or 'no etcd member'})"
        if problems:
            ill.append(f"{name}: {', '.join(problems)}")
        else:
            is_leader = any(one.leader for one in own)
            well.append(f"{name}, etcd's leader" if is_leader else name)
    for one in members:
        if not any(_belongs(one, plane) for plane in planes):
            state = "healthy" if one.healthy else one.problem or "not healthy"
            name = one.name or one.member_id
            ill.append(f"etcd's member {name} ({one.address}) of nobody: {state}")
    sentences = [f"Well: {'; '.join(well) or 'none'}"]
    if ill:
        sentences.append(f"Not well: {'; '.join(ill)}")
    return ". ".join(sentences)


def _problems(plane: ControlPlane, own: Sequence[EtcdMember]) -> Iterator[str]:
    if not own:
        yield "etcd has no member of it"
    for member in own:
        if member.learner:
            yield "its etcd member has no vote yet"
        elif not member.healthy:
            yield f"its etcd member: {member.problem or 'not healthy'}"
    if plane.api_problem:
        yield f"its API server: {plane.api_problem}"
    if plane.node_problem:
        yield f"its node: {plane.node_problem}"
