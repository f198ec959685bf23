"""Whether and how a cluster gets to another Kubernetes version.

Source: Kubernetes' version skew policy, and kubespray's docs/operations/upgrades.md
(one minor release after the other). The same playbook does every step:
``upgrade-cluster.yml`` with ``kube_version``.
"""

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from tacker_k8s_mgmt.model.versions import minor, numbers
from tacker_k8s_mgmt.request.params import InstallParams

#: The :class:`Record`, in the cluster's directory.
FILE_NAME = "upgrade.json"

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


@dataclass(frozen=True)
class Record:
    """What a retry, and every later operation, has to know of a cluster's upgrades.

    It cannot all be seen from the nodes: a playbook may fail after their versions have
    changed, and it leaves control planes cordoned.

    :param version: the one that all control planes have been brought to, without v; ""
        before the first upgrade. Nodes that are made from then on get it.
    :param aim: of the upgrade that is under way, or was given up; "" for none.
    :param schedulable: control planes that were not cordoned when it began.
    :param batch: the workers that it has in hand.
    """

    version: str = ""
    aim: str = ""
    schedulable: tuple[str, ...] = ()
    batch: tuple[str, ...] = ()

    @property
    def is_among_planes(self) -> bool:
        """Whether control planes may have different versions by now."""
        return bool(self.aim) and self.version != self.aim

    def text(self) -> str:
        """As it is written."""
        told = {name: value for name, value in asdict(self).items() if value}
        return json.dumps(told, indent=2) + "\n"


def recorded(text: str | None) -> Record:
    """What :meth:`Record.text` has written; an empty one where nothing was."""
    told = json.loads(text or "{}")
    return Record(
        version=told.get("version", ""),
        aim=told.get("aim", ""),
        schedulable=tuple(told.get("schedulable", ())),
        batch=tuple(told.get("batch", ())),
    )


def applied(record: Record, params: InstallParams) -> InstallParams:
    """The parameters with the Kubernetes version that an upgrade has brought."""
    if not record.version:
        return params
    cluster = {"kubernetes_version": record.version}
    others = {n: v for n, v in params.kubespray_vars.items() if n != "kube_version"}
    return params.model_copy(
        update={
            "cluster": params.cluster.model_copy(update=cluster),
            "kubespray_vars": others,
        }
    )


def kept(parameters: Mapping[str, Any], params: InstallParams) -> dict[str, Any]:
    """What is kept of a cluster's parameters after an upgrade with these.

    Later operations need the version, and the kubespray that can install it.

    :param parameters: as they are kept, without secrets.
    """
    ansible = {
        **parameters["ansible"],
        "kubespray_root_path": params.ansible.kubespray_root,
        "venv_path": params.ansible.venv,
        "allow_unknown_release": params.ansible.allow_unknown_release,
    }
    version = {"kubernetes_version": params.cluster.kubernetes_version}
    changed: dict[str, Any] = {
        "ansible": {name: value for name, value in ansible.items() if value},
        "cluster": {**(parameters.get("cluster") or {}), **version},
    }
    variables = parameters.get("kubespray_vars")
    if isinstance(variables, Mapping):
        others = {n: v for n, v in variables.items() if n != "kube_version"}
        changed["kubespray_vars"] = others
    return {**parameters, **changed}


def batches(
    pending: Sequence[str], workers: int, at_once: int
) -> tuple[tuple[str, ...], ...]:
    """The workers that are still to be upgraded, as they are taken out together.

    :param workers: how many the cluster has: a fifth of them at most is out at once, so
        that the others have room for their pods, and one at least.
    :param at_once: ``drain.parallel``; never more than that either.
    """
    size = max(1, min(at_once, workers // 5))
    return tuple(
        tuple(pending[start : start + size]) for start in range(0, len(pending), size)
    )


def plan(state: State, wanted: str) -> tuple[UpgradePlan | None, tuple[str, ...]]:
    """The plan, or every reason why there is none.

    Whether the checkout can install the version is seen when the server is checked.

    :param wanted: the version to be reached, with or without v.
    """
    aim = wanted.removeprefix("v")
    current = _plain(state)
    reasons = tuple(_reasons(current, aim))
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


def _reasons(state: State, aim: str) -> Iterator[str]:
    if len(numbers(aim)) != 3:
        yield "the wanted Kubernetes version must be a whole one such as 1.32.8"
        return
    if not state.api_servers:
        yield "no API server told its version"
        return
    yield from _steps(state, aim)
    yield from _apart(state)
    yield from _kubelets(state, aim)


def _steps(state: State, aim: str) -> Iterator[str]:
    oldest = min(state.api_servers.values(), key=numbers)
    newest = max(state.api_servers.values(), key=numbers)
    if numbers(aim) < numbers(newest):
        there = _at(state, newest)
        yield f"Kubernetes never goes down, and {there} run {newest} already"
    elif _gap(oldest, aim) > 1:
        first, second = minor(oldest)
        yield (
            f"from {oldest} to {aim} is more than one minor release, and they go one "
            f"by one: go to {first}.{second + 1} first, with a kubespray that installs "
            "it"
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
    # An upgrade that has stopped half-way leaves kubelets that are newer than the API
    # servers, for kubespray begins each node with the kubelet; going on mends that.
    newest_server = max(state.api_servers.values(), key=numbers)
    for name, version in sorted(state.kubelets.items()):
        if version != aim and minor(version) > minor(newest_server):
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
