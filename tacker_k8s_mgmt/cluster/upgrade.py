"""Whether and how a cluster gets to another Kubernetes version.

Source: Kubernetes' version skew policy, and kubespray's docs/operations/upgrades.md
(one minor release after the other). The same playbook does every step:
``upgrade-cluster.yml`` with ``kube_version``.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from tacker_k8s_mgmt.cluster.versions import minor, numbers

#: Minor releases that a kubelet may be older than the API server: since this API server
#: version the second number, before it the first.
_SKEW_GREW = (1, 28)
_SKEW = (2, 3)


@dataclass(frozen=True)
class UpgradePlan:
    """What is to be done.

    :param version: the one that ``upgrade-cluster.yml`` is to bring, without v.
    :param pending: names of the nodes that are not there yet; none if nothing is to do.
    """

    version: str
    pending: tuple[str, ...]


@dataclass(frozen=True)
class State:
    """The versions that are there, without v.

    :param api_servers: by control-plane node. Side by side they may differ by one minor
        release, as they do when an upgrade has stopped half-way.
    :param kubelets: by node.
    """

    api_servers: Mapping[str, str]
    kubelets: Mapping[str, str]


def plan(
    state: State, wanted: str, installable: Sequence[str]
) -> tuple[UpgradePlan | None, tuple[str, ...]]:
    """The plan, or every reason why there is none.

    :param wanted: the version to be reached, with or without v.
    :param installable: versions that the checkout can install, without v; empty where
        it does not say.
    """
    aim = wanted.removeprefix("v")
    current = _plain(state)
    reasons = tuple(_reasons(current, aim, installable))
    if reasons:
        return None, reasons
    pending = {
        name
        for running in (current.api_servers, current.kubelets)
        for name, version in running.items()
        if version != aim
    }
    return UpgradePlan(aim, tuple(sorted(pending))), ()


def _plain(state: State) -> State:
    return State(
        {name: text.removeprefix("v") for name, text in state.api_servers.items()},
        {name: text.removeprefix("v") for name, text in state.kubelets.items()},
    )


def _reasons(state: State, aim: str, installable: Sequence[str]) -> Iterator[str]:
    if len(numbers(aim)) != 3:
        yield "the wanted Kubernetes version must be a whole one such as 1.32.8"
        return
    if not state.api_servers:
        yield "no API server told its version"
        return
    if installable and aim not in installable:
        least, most = min(installable, key=numbers), max(installable, key=numbers)
        yield (
            f"the kubespray on the Ansible server cannot install Kubernetes {aim}; it "
            f"can install {least} to {most}"
        )
    yield from _steps(state, aim, installable)
    yield from _apart(state)
    yield from _kubelets(state, aim)


def _steps(state: State, aim: str, installable: Sequence[str]) -> Iterator[str]:
    oldest = min(state.api_servers.values(), key=numbers)
    newest = max(state.api_servers.values(), key=numbers)
    if numbers(aim) < numbers(newest):
        there = _at(state, newest)
        yield f"Kubernetes never goes down, and {there} run {newest} already"
    elif _gap(oldest, aim) > 1:
        first, second = minor(oldest)
        between = [one for one in installable if minor(one) == (first, second + 1)]
        advice = (
            f"go to {max(between, key=numbers)} first"
            if between
            else f"go to {first}.{second + 1} first, with a kubespray that installs it"
        )
        yield (
            f"from {oldest} to {aim} is more than one minor release, and they go one "
            f"by one: {advice}"
        )


def _at(state: State, version: str) -> str:
    names = (name for name, text in state.api_servers.items() if text == version)
    return ", ".join(sorted(names))


def _apart(state: State) -> Iterator[str]:
    oldest = min(state.api_servers.values(), key=numbers)
    newest = max(state.api_servers.values(), key=numbers)
    if _gap(oldest, newest) > 1:
        yield (
            f"the API servers are {oldest} to {newest}, more than one minor release "
            "apart: bring the oldest ones up first"
        )


def _kubelets(state: State, aim: str) -> Iterator[str]:
    # An upgrade that has stopped half-way leaves kubelets that are newer than the
    # oldest API server, and going on mends that.
    newest_server = max(state.api_servers.values(), key=numbers)
    for name, version in sorted(state.kubelets.items()):
        if minor(version) > minor(newest_server):
            yield (
                f"the kubelet of {name} is {version}, newer than any API server "
                f"({newest_server}): heal that node first"
            )
        elif numbers(version) > numbers(aim):
            yield f"the kubelet of {name} is {version} already, newer than {aim}"
        elif _gap(version, aim) > _skew(aim):
            yield (
                f"the kubelet of {name} is {version}; with the API servers at {aim} it "
                f"may be {_skew(aim)} minor releases older at most: upgrade that node "
                "first"
            )


def _skew(api_server: str) -> int:
    return _SKEW[minor(api_server) >= _SKEW_GREW]


def _gap(older: str, newer: str) -> int:
    """How many minor releases lie between; of another major one, too many."""
    one, other = minor(older), minor(newer)
    return other[1] - one[1] if one[0] == other[0] else 1000
