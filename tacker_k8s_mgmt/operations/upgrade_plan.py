# SPDX-License-Identifier: Apache-2.0
"""Whether a cluster can be upgraded to a Kubernetes version, and what is left to do.

Sources: Kubernetes' version skew policy, and kubespray's docs/operations/upgrades.md
(one minor release after the other).
"""

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from tacker_k8s_mgmt.model import untrusted
from tacker_k8s_mgmt.model.network_plugins import minor, numbers
from tacker_k8s_mgmt.request.reader import ClusterRequest

#: The :class:`ClusterVersion`, in the cluster's directory.
FILE_NAME = "upgrade.json"

#: The minor releases that a kubelet may be older than the API server have changed with
#: this API server version.
_SKEW_CHANGED = (1, 28)
_SKEW_BEFORE, _SKEW_SINCE = 2, 3


@dataclass(frozen=True)
class State:
    """The present versions, with or without v.

    :param api_servers: by control-plane node. They may differ by one minor release, for
        example after an upgrade that has stopped half-way.
    :param kubelets: by node.
    """

    api_servers: Mapping[str, str]
    kubelets: Mapping[str, str]


@dataclass(frozen=True)
class ClusterVersion:
    """The record of a cluster's upgrades, for retries and later operations.

    The nodes do not show all of it: a playbook may fail after their versions have
    changed, and it leaves control planes cordoned.

    :param version: the version that all control planes have reached, without v; ""
        before the first upgrade. New nodes get it.
    :param aim: the version of an upgrade that is under way, or was abandoned; "" for
        none.
    :param schedulable: control planes that were not cordoned when it began.
    :param batch: the workers that it is upgrading.
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
        """The content of the file."""
        values = {name: value for name, value in asdict(self).items() if value}
        return json.dumps(values, indent=2) + "\n"


def parse_version(text: str | None) -> ClusterVersion:
    """Parse a record file; an empty record without a file."""
    values = untrusted.parse_json(text or "{}")
    record = ClusterVersion(
        version=values.get("version", ""),
        aim=values.get("aim", ""),
        schedulable=tuple(values.get("schedulable", ())),
        batch=tuple(values.get("batch", ())),
    )
    return untrusted.checked(record)


def applied(record: ClusterVersion, params: ClusterRequest) -> ClusterRequest:
    """The parameters with the Kubernetes version of the last upgrade."""
    if not record.version:
        return params
    version = {"kubernetes_version": record.version}
    return params.model_copy(
        update={
            "cluster": params.cluster.model_copy(update=version),
            "kubespray_vars": _without_version(params.kubespray_vars),
        }
    )


def _without_version(variables: Mapping[str, Any]) -> dict[str, Any]:
    return {n: value for n, value in variables.items() if n != "kube_version"}


def kept(parameters: Mapping[str, Any], params: ClusterRequest) -> dict[str, Any]:
    """The parameters to store after an upgrade.

    Later operations need the version, and the kubespray that can install it.

    :param parameters: the stored ones, without secrets.
    :param params: those of the upgrade.
    """
    version = {"kubernetes_version": params.cluster.kubernetes_version}
    changed: dict[str, Any] = {
        "cluster": {**(parameters.get("cluster") or {}), **version}
    }
    # The operator's server is looked up at each operation.
    if not params.operators_server:
        ansible = {
            **parameters["ansible"],
            "kubespray_root_path": params.ansible.kubespray_root,
            "venv_path": params.ansible.venv,
            "allow_unknown_release": params.ansible.allow_unknown_release,
        }
        given = {name: value for name, value in ansible.items() if value}
        changed["ansible"] = given
    variables = parameters.get("kubespray_vars")
    if isinstance(variables, Mapping):
        changed["kubespray_vars"] = _without_version(variables)
    return {**parameters, **changed}


def batches(
    pending: Sequence[str], workers: int, at_once: int
) -> tuple[tuple[str, ...], ...]:
    """The pending workers, in batches that are upgraded together.

    :param workers: number of the cluster's workers. A batch has a fifth of them at
        most, so that the others have room for their pods, and at least one.
    :param at_once: ``drain.parallel``, the limit of a batch.
    """
    size = max(1, min(at_once, workers // 5))
    return tuple(
        tuple(pending[start : start + size]) for start in range(0, len(pending), size)
    )


def plan(state: State, version: str) -> tuple[frozenset[str], tuple[str, ...]]:
    """Names of the pending nodes, and all reasons against the upgrade.

    Whether the checkout can install the version is checked on the Ansible server.

    :param version: the target, with or without v.
    """
    aim = version.removeprefix("v")
    api_servers, kubelets = _plain(state.api_servers), _plain(state.kubelets)
    reasons = tuple(_reasons(State(api_servers, kubelets), aim))
    running = (*api_servers.items(), *kubelets.items())
    return frozenset(name for name, present in running if present != aim), reasons


def _plain(versions: Mapping[str, str]) -> dict[str, str]:
    return {name: text.removeprefix("v") for name, text in versions.items()}


def _reasons(state: State, aim: str) -> Iterator[str]:
    if len(numbers(aim)) != 3:
        yield "the wanted Kubernetes version must be a whole one such as 1.32.8"
        return
    if not state.api_servers:
        yield "no API server reported its version"
        return
    oldest = min(state.api_servers.values(), key=numbers)
    newest = max(state.api_servers.values(), key=numbers)
    if numbers(aim) < numbers(newest):
        names = sorted(n for n, text in state.api_servers.items() if text == newest)
        yield f"Kubernetes never goes down, and {', '.join(names)} run {newest} already"
    elif _gap(oldest, aim) > 1:
        first, second = minor(oldest)
        yield (
            f"from {oldest} to {aim} is more than one minor release, and they go one "
            f"by one: go to {first}.{second + 1} first, with a kubespray that installs "
            "it"
        )
    if _gap(oldest, newest) > 1:
        yield (
            f"the API servers are {oldest} to {newest}, more than one minor release "
            "apart: bring the oldest ones up first"
        )
    yield from _kubelets(state, aim, newest)


def _kubelets(state: State, aim: str, newest_server: str) -> Iterator[str]:
    # After an upgrade that has stopped half-way, kubelets may be newer than the API
    # servers, because kubespray upgrades a node's kubelet first; continuing fixes that.
    skew = _SKEW_SINCE if minor(aim) >= _SKEW_CHANGED else _SKEW_BEFORE
    for name, version in sorted(state.kubelets.items()):
        if version != aim and minor(version) > minor(newest_server):
            yield (
                f"the kubelet of {name} is {version}, newer than any API server "
                f"({newest_server}): heal that node first"
            )
        elif numbers(version) > numbers(aim):
            yield f"the kubelet of {name} is {version} already, newer than {aim}"
        elif _gap(version, aim) > skew:
            yield (
                f"the kubelet of {name} is {version}; with the API servers at {aim} it "
                f"may be {skew} minor releases older at most: upgrade that node first"
            )


def _gap(older: str, newer: str) -> int:
    """The number of minor releases between; too many across major releases."""
    low, high = minor(older), minor(newer)
    return high[1] - low[1] if low[0] == high[0] else 1000
