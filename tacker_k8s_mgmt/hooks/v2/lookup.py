# SPDX-License-Identifier: Apache-2.0
"""Access to a VNF instance of Tacker's v2 API, for commands of an operator.

The kept parameters have no literal secrets. They are in the requests of the operations,
which Tacker keeps.
"""

import copy
import json
from collections import Counter
from collections.abc import Iterator, Mapping
from typing import Any

from oslo_config import cfg
from tacker import context as tacker_context
from tacker.sol_refactored import objects
from tacker.sol_refactored.nfvo import nfvo_client

from tacker_k8s_mgmt import config, errors
from tacker_k8s_mgmt.hooks import instance_view
from tacker_k8s_mgmt.hooks.advice import Advice
from tacker_k8s_mgmt.hooks.instance_view import ClusterSummary
from tacker_k8s_mgmt.hooks.v2 import connections, stack
from tacker_k8s_mgmt.hooks.v2.call import HookCall
from tacker_k8s_mgmt.hooks.v2.connections import VimEntry
from tacker_k8s_mgmt.hooks.v2.hook import V2Hook, V2Site
from tacker_k8s_mgmt.model.nodes import Count
from tacker_k8s_mgmt.model.plan import Plan
from tacker_k8s_mgmt.model.vim import ClusterIdentity
from tacker_k8s_mgmt.model.yaml_text import dig
from tacker_k8s_mgmt.remote.kubernetes import api_login
from tacker_k8s_mgmt.remote.readonly_site import NoSuchInstance, ReadOnlySite
from tacker_k8s_mgmt.request import reader
from tacker_k8s_mgmt.request.reader import ClusterRequest, names_parameters

_WAY_OUT = Advice(
    (),
    "Send a heal or scale request that repeats what is missing; what it gives is known "
    "from then on.",
)
_REMEDY = "The next heal of a VNFC has Tacker count them again."


def registered(context: Any) -> Iterator[tuple[str, str]]:
    """The clusters that are recorded, and those that VNF instances name as VIMs.

    :param context: of an administrator.
    :returns: id of each VNF instance, and URL of the API. What is not recorded, a user
        may have written: see :func:`identity`.
    """
    objects.register_all()
    for instance in objects.VnfInstanceV2.get_all(context):
        if known := cluster_identity(instance.id):
            yield instance.id, known.endpoint
        for vim in VimEntry(instance.to_dict()).registered():
            yield instance.id, vim.auth_url


def cluster_identity(vnf_id: str) -> ClusterIdentity | None:
    """Which cluster a VNF instance is; None if this conductor has not recorded it."""
    return connections.read(_state_path(), vnf_id)


def identity(context: Any, vnf_id: str) -> ClusterIdentity | None:
    """Which cluster a VNF instance is; recorded at the first use if it is not yet.

    Earlier releases recorded none, and a hook on another conductor may have registered
    the cluster since, with another address or certificate.

    :param context: of an administrator.
    :returns: None if nothing is recorded, and its entry is not one that the driver can
        have made.
    :raises RemoteError: nothing is recorded, and the cluster does not answer.
    """
    known = cluster_identity(vnf_id)
    instance = objects.VnfInstanceV2.get_by_id(context, vnf_id)
    entry = VimEntry(instance.to_dict()).entry() if instance else {}
    if known and (not entry or _is_of(entry["interfaceInfo"], known)):
        return known
    try:
        found = api_login.identify(entry)
    except errors.RemoteError:
        if known is None:
            raise
        return known
    if found:
        connections.write(_state_path(), vnf_id, found)
    return found or known


def _is_of(interface: Mapping[str, Any], known: ClusterIdentity) -> bool:
    return (interface.get("endpoint"), interface.get("ssl_ca_cert")) == (
        known.endpoint,
        known.ca_certificate,
    )


def _state_path() -> str:
    config.register(cfg.CONF)
    return config.state_path(cfg.CONF)


def named(name: str) -> list[str]:
    """Ids of the VNF instances of this name."""
    objects.register_all()
    context = tacker_context.get_admin_context()
    found = objects.VnfInstanceV2.get_by_filter(context, vnfInstanceName=name)
    return [str(one.id) for one in found]


def listed() -> Iterator[ClusterSummary]:
    """The clusters of this API, of all projects."""
    objects.register_all()
    context = tacker_context.get_admin_context()
    for instance in objects.VnfInstanceV2.get_all(context):
        operations = _operations(context, instance.id)
        call = HookCall("", {}, instance.to_dict(), {}, package="")
        given = (json.dumps(row.get("operationParams")) for row in operations)
        if call.concerns_us or any(map(names_parameters, given)):
            shown = instance_view.to_show(operations, lambda row: row["operationState"])
            yield _listed(call, shown or {})


def _listed(call: HookCall, last: Mapping[str, Any]) -> ClusterSummary:
    """A cluster in short.

    :param last: its operation to show; empty if there was none.
    """
    own = VimEntry(call.instance).registered()
    return ClusterSummary(
        call.vnf_id,
        call.vnf_name,
        "v2",
        str(call.instance["instantiationState"]),
        own[0].name if own else "",
        own[0].auth_url if own else "",
        Counter(str(vnfc["vduId"]) for vnfc in call.resources()),
        *(str(last.get(key, "")) for key in ("operation", "operationState", "id")),
    )


def _operations(context: Any, vnf_id: str) -> list[Mapping[str, Any]]:
    """The operations on a VNF instance, the last one at the end."""
    found = objects.VnfLcmOpOccV2.get_by_filter(context, vnfInstanceId=vnf_id)
    found.sort(key=lambda occurrence: occurrence.startTime)
    return [occurrence.to_dict() for occurrence in found]


def operation_state(context: Any, occurrence: str) -> str:
    """The state of an LCM operation occurrence; "" if this API has none of this id."""
    objects.register_all()
    found = objects.VnfLcmOpOccV2.get_by_id(context, occurrence)
    return str(found.operationState) if found else ""


def vnfd_of(vnfd_id: str) -> Any:
    """Tacker's object of a VNFD, with the directory of its package.

    Tacker's own way there takes a lock, for which it writes into its state directory;
    the packages that it has itself are read without.
    """
    context, client = tacker_context.get_admin_context(), nfvo_client.NfvoClient()
    found = client.nfvo if client.is_local else client
    return found.get_vnfd(context, vnfd_id)


class _CommandSite(V2Site):
    """The site of a command, to which Tacker passes no copy of the package."""

    def _package_root(self) -> str:
        return str(vnfd_of(self._call.instance["vnfdId"]).csar_dir)


class Command(V2Hook):
    """A command, in place of a call of a hook."""

    # It may be named after a hook of a CNF.
    instantiates = False

    def site(self, params: ClusterRequest) -> V2Site:
        """What it may touch."""
        return _CommandSite(self, params)


class SeenV2Site(ReadOnlySite, _CommandSite):
    """The site of a VNF instance of the v2 API, read-only."""

    def counts(self) -> tuple[Count, ...]:
        """How many VMs each VDU has, in Heat and in Tacker's list.

        Tacker scales by its list, whatever the scale level is
        (``userdata_default.py``).
        """
        heat = Counter(
            server.name for server in stack.servers_of(self._call, failed=False)
        )
        tacker = Counter(str(vnfc["vduId"]) for vnfc in self._call.resources())
        names = dict.fromkeys((*tacker, *heat))
        return tuple(Count(name, heat[name], tacker[name], _REMEDY) for name in names)


class V2Record:
    """A VNF instance and its operations in Tacker's database.

    :ivar open_operation: those that are not over, as text; "" if there is none.
    :ivar under_way: the id of the one that Tacker works on; "" if there is none.
    :raises NoSuchInstance: there is none with this id.
    """

    view = SeenV2Site

    def __init__(self, vnf_id: str) -> None:
        objects.register_all()
        context = tacker_context.get_admin_context()
        instance = objects.VnfInstanceV2.get_by_id(context, vnf_id)
        if instance is None:
            raise NoSuchInstance(vnf_id)
        self._instance: dict[str, Any] = instance.to_dict()
        self._operations = _operations(context, vnf_id)
        unfinished = [
            (row["operation"], row["id"], row["operationState"])
            for row in self._operations
            if row["operationState"] not in instance_view.ENDED
        ]
        self.open_operation = instance_view.described(unfinished)
        self.under_way = instance_view.under_way(unfinished)

    def command(self, name: str) -> tuple[V2Hook, ClusterRequest]:
        """What a command works with, in place of a call of a hook.

        :param name: the command's, for the cluster's lock and the journal.
        :raises TackerError: the VNF instance is not a cluster.
        :raises ParamError: this release does not accept its parameters.
        """
        call = HookCall(name, {}, self._instance, {}, package="")
        if self._instance["instantiationState"] != "INSTANTIATED":
            raise errors.TackerError(
                detail=f"The VNF instance {call.vnf_id} is not instantiated."
            )
        if call.state is None:
            raise errors.TackerError(
                detail=f"The VNF instance {call.vnf_id} is no cluster: its metadata do "
                "not name one."
            )
        hook = Command(call, cfg.CONF)
        return hook, hook.with_former_secrets(self.carried_out, _WAY_OUT)

    def change_of_package(self, vnfd_id: str, version: str | None) -> dict[str, Any]:
        """The body of a request that changes the package, as a user would send it.

        :param version: of Kubernetes; None: only the package changes.
        """
        made = next(
            (r for r in self._operations if r["operation"] == "INSTANTIATE"), {}
        )
        given = dig(made, "operationParams", "additionalParams") or {}
        names = (reader.PATH, reader.CLASS)
        additional: dict[str, Any] = {"upgrade_type": "RollingUpdate", "vdu_params": []}
        additional |= {name: given[name] for name in names if given.get(name)}
        if version:
            additional[reader.ATTRIBUTE] = {"cluster": {"kubernetes_version": version}}
        return {"vnfdId": vnfd_id, "additionalParams": additional}

    def plan(self, operation: str, body: Mapping[str, Any]) -> Plan:
        """The plan of an operation; see :func:`.planning.plan`."""
        # Imported late: it brings Tacker's conductor.
        from tacker_k8s_mgmt.hooks.v2 import planning

        copied = copy.deepcopy(self._instance)
        return planning.plan(copied, operation, body, self.carried_out)

    def carried_out(self) -> list[Mapping[str, Any]]:
        """``additionalParams`` of the operations that succeeded, latest first."""
        return [
            (row.get("operationParams") or {}).get("additionalParams") or {}
            for row in reversed(self._operations)
            if row["operationState"] == instance_view.COMPLETED
        ]
