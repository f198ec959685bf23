# SPDX-License-Identifier: Apache-2.0
"""The records in the cluster's directory on the Ansible server.

Each file is read and checked here. A damaged one (cut off, emptied, overwritten) is an
error that names the file and the way out; :mod:`.compare` rebuilds those whose content
can be had from Heat, the cluster and the inventory.

The records of a heal are for its later hooks and for operations after a failure. They
are in the cluster's directory, because the hooks may run in different conductors. That
of a heal of VNFCs has the names of the control plane that is rebuilt, which is not in
the inventory meanwhile; that of a heal of the whole VNF has the servers that Heat is to
replace.
"""

import json
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Protocol, TypeVar

from oslo_log import log as logging
from pydantic import TypeAdapter

from tacker_k8s_mgmt import errors
from tacker_k8s_mgmt.kubespray import inventory, variables
from tacker_k8s_mgmt.model import untrusted
from tacker_k8s_mgmt.model.exposure import Exposure
from tacker_k8s_mgmt.model.load_balancer import ExposedService
from tacker_k8s_mgmt.model.nodes import Machine, Node, Role
from tacker_k8s_mgmt.operations import upgrade_plan
from tacker_k8s_mgmt.remote.ansible.cluster_directory import ClusterDirectory
from tacker_k8s_mgmt.remote.vms import MACHINES_FILE
from tacker_k8s_mgmt.topology.heat_stack import Machines

HEALING_FILE = "healing.json"
WHOLE_FILE = "whole_heal.json"
_NAMES = ("name", "server_id", "ssh_address", "address", "etcd_member_name")


@dataclass(frozen=True)
class Healing:
    """A heal that is under way, or was abandoned.

    :param rebuilt: names of the nodes that Heat rebuilds.
    :param addresses: their addresses in the cluster, and those of nodes whose VMs had
        been replaced before; the new VMs keep them.
    :param not_ready: names of the nodes that were not Ready for another reason.
    :param plane: the control plane that is taken out, until it has joined again.
    :param first: it was the first control plane of the inventory, which another one has
        to become.
    :param balancer: id of the load balancer's server that is rebuilt, until the new one
        is complete; what it exposed is recorded.
    """

    rebuilt: tuple[str, ...] = ()
    not_ready: tuple[str, ...] = ()
    plane: Node | None = None
    first: bool = False
    balancer: str = ""
    addresses: tuple[str, ...] = ()

    def ended(self) -> "Healing":
        """The record after the heal: only what is still out of the cluster."""
        return replace(self, rebuilt=(), not_ready=(), addresses=())

    def text(self) -> str:
        """The content of the file."""
        values: dict[str, Any] = {}
        if self.rebuilt or self.not_ready:
            values |= {"rebuilt": self.rebuilt, "not_ready": self.not_ready}
        if self.addresses:
            values["addresses"] = self.addresses
        if self.balancer:
            values["load_balancer"] = self.balancer
        if self.plane is not None:
            names = {name: getattr(self.plane, name) for name in _NAMES}
            values["control_plane"] = {**names, "first": self.first}
        return json.dumps(values, indent=2) + "\n"


def parse(text: str | None) -> Healing:
    """Parse a record file; an empty record without a file."""
    values = untrusted.parse_json(text or "{}")
    healing = Healing(
        tuple(values.get("rebuilt", ())),
        tuple(values.get("not_ready", ())),
        balancer=values.get("load_balancer", ""),
        addresses=tuple(values.get("addresses", ())),
    )
    if not (plane := values.get("control_plane")):
        return untrusted.checked(healing)
    node = Node(role=Role.CONTROL_PLANE, **{name: plane[name] for name in _NAMES})
    return untrusted.checked(replace(healing, plane=node, first=plane["first"]))


@dataclass(frozen=True)
class WholeHeal:
    """A heal of the whole VNF that is under way, or was abandoned.

    :param former: ids of the servers that it replaces.
    :param cleared: whether the records of their cluster and its VIM are removed.
    :param addresses: of the nodes and the load balancer in the cluster, which the new
        VMs keep where Heat has kept their ports.
    """

    former: Collection[str] = ()
    cleared: bool = False
    addresses: Collection[str] = ()

    def text(self) -> str:
        """The content of the file."""
        values = {"former": sorted(self.former), "cleared": self.cleared}
        if self.addresses:
            values["addresses"] = sorted(self.addresses)
        return json.dumps(values, indent=2) + "\n"


def parse_whole(text: str) -> WholeHeal:
    """Parse a record file of a heal of the whole VNF."""
    values = untrusted.parse_json(text)
    former, cleared = values["former"], values["cleared"]
    addresses = values.get("addresses", [])
    texts = (*former, *addresses)
    if not isinstance(cleared, bool) or not all(isinstance(s, str) for s in texts):
        raise TypeError("no record of a heal")
    return WholeHeal(frozenset(former), cleared, frozenset(addresses))


LOG = logging.getLogger(__name__)

VARIABLES_FILE = "vars.json"


#: The smallest MTU of the nodes' interfaces when the cluster was made.
MTU_FILE = "nic_mtu.json"
#: Ids of the servers that are full members of the cluster.
JOINED_FILE = "joined.json"
#: Host keys of servers that move to another address, by server id.
MOVING_FILE = "moving.json"
#: The services that the load balancer exposed when its status was last read.
SERVICES_FILE = "services.json"
#: The ports of CNFs that the load balancer exposes; also while it is rebuilt.
EXPOSURES_FILE = "exposures.json"
#: A copy of the inventory as last written.
KEPT_INVENTORY = "hosts.last.yaml"

_WHOLE = "heal the whole VNF, which rebuilds the cluster"
_HINTS = {
    inventory.FILE_NAME: f"Restore it, or {_WHOLE}.",
    HEALING_FILE: "If no heal is under way and none was abandoned, delete it. "
    f"Else restore it, or delete it and {_WHOLE}.",
    upgrade_plan.FILE_NAME: "The nodes do not all have the same version, so it cannot "
    'be rebuilt. Restore it, or write {"aim": "VERSION"} into it, with the version '
    "that the upgrade was to bring, and send the request for that upgrade again.",
    EXPOSURES_FILE: "Delete it: it is rebuilt by what the load balancer reports. If "
    "that is to be healed, heal each CNF after that, which exposes it again.",
    SERVICES_FILE: "Delete it; when the operation has ended, expose again what the "
    "load balancer exposed.",
}
_DELETE = "Delete it."
# What parsers raise on damaged texts.
_MISREAD = (ValueError, LookupError, TypeError, AttributeError, errors.ClusterError)

Content = TypeVar("Content")


class _Holder(Protocol):
    @property
    def workdir(self) -> ClusterDirectory: ...


class ClusterRecords:
    """The files of one cluster's directory.

    All methods raise :class:`DamagedFile` for a file that cannot be understood.

    :param holder: has the directory; read again each time, because sessions may break.
    :param host: the Ansible server, for error texts.
    """

    def __init__(self, holder: _Holder, host: str) -> None:
        self._holder = holder
        self._host = host

    def inventory(self) -> str | None:
        """The inventory's text; None where there is no file."""
        return self._read(inventory.FILE_NAME, _checked_inventory)

    def last_inventory(self) -> str | None:
        """The inventory or, where it is lost or damaged, its copy; None without both.

        :raises DamagedFile: it is damaged, and there is no copy.
        """
        try:
            text = self.inventory()
        except errors.DamagedFile:
            if (copy := self._copied_inventory()) is None:
                raise
            return copy
        return self._copied_inventory() if text is None else text

    def _copied_inventory(self) -> str | None:
        try:
            return self._read(KEPT_INVENTORY, _checked_inventory)
        except errors.DamagedFile as error:
            LOG.warning("The copy of the inventory cannot be used: %s", error)
            return None

    def machines(self) -> dict[str, str] | None:
        """SSH addresses by server id; None where none are recorded."""
        return self._read(MACHINES_FILE, TypeAdapter(dict[str, str]).validate_json)

    def addresses(self) -> dict[str, str]:
        """As :meth:`machines`; empty where none are recorded."""
        return self.machines() or {}

    def joined(self) -> frozenset[str] | None:
        """Ids of the servers that are full members; None where none are recorded."""
        return self._read(JOINED_FILE, TypeAdapter(frozenset[str]).validate_json)

    def nic_mtus(self) -> tuple[int, ...] | None:
        """The smallest MTU, empty if not known; None where nothing is recorded."""
        return self._read(MTU_FILE, TypeAdapter(tuple[int, ...]).validate_json)

    def healing(self) -> Healing:
        """The heal that is under way or was abandoned."""
        return self._read(HEALING_FILE, parse) or Healing()

    def whole_heal(self) -> WholeHeal | None:
        """The heal of the whole VNF that is under way; None where none is recorded."""
        return self._read(WHOLE_FILE, parse_whole)

    def servers(self) -> frozenset[str]:
        """Ids of all servers in the records, as far as these can be read."""
        how = "The servers in it are not known."
        nodes = nodes_in(read_or_none(self.last_inventory, how))
        machines = read_or_none(self.machines, how) or {}
        joined = read_or_none(self.joined, how) or ()
        return frozenset((*(node.server_id for node in nodes), *machines, *joined))

    def upgrade(self) -> upgrade_plan.ClusterVersion:
        """The cluster's version and the upgrade that is under way."""
        recorded = self._read(upgrade_plan.FILE_NAME, upgrade_plan.parse_version)
        return recorded or upgrade_plan.ClusterVersion()

    def services(self) -> tuple[ExposedService, ...]:
        """The services that the load balancer exposed at its last status report."""
        return self._read(SERVICES_FILE, _services) or ()

    def exposures(self) -> tuple[Exposure, ...] | None:
        """The ports of CNFs on the load balancer; None where nothing is recorded."""
        kind = TypeAdapter(tuple[Exposure, ...])
        return self._read(EXPOSURES_FILE, kind.validate_json)

    def moving(self) -> Mapping[str, Sequence[Sequence[str]]]:
        """Host keys of servers that move to another address, by server id."""
        kind = TypeAdapter(dict[str, list[list[str]]])
        return self._read(MOVING_FILE, kind.validate_json) or {}

    def api_address(self) -> str | None:
        """The load balancer's address in the variables of the last playbook."""
        return self._read(VARIABLES_FILE, variables.api_address)

    def balancer(self, machines: Machines) -> Machine | None:
        """The load balancer at its recorded addresses; None where none is recorded.

        A damaged file counts as none: another step rebuilds it, or reports it.
        """
        api = read_or_none(self.api_address, "The next playbook's run has it written.")
        if not api:
            return None
        logins = read_or_none(self.addresses, "An operation rebuilds it.") or {}
        vm = machines.load_balancer or machines.incomplete_balancer()
        server_id = vm.server_id if vm else ""
        if not server_id:
            # Heat does not say which server it was; the others are nodes.
            nodes = {node.server_id for node in nodes_in(self.last_inventory())}
            server_id = min(logins.keys() - nodes, default="")
        return Machine(Role.LOAD_BALANCER, server_id, logins.get(server_id, api), api)

    def _read(self, name: str, read: Callable[[str], Content]) -> Content | None:
        hint = _HINTS.get(name, _DELETE)
        try:
            text = self._holder.workdir.read(name)
        except errors.DamagedFile as error:
            raise errors.DamagedFile(hint=hint, **error.fields) from error
        if text is None:
            return None
        # Not chained: the parser's error may quote the text.
        try:
            if text.strip():
                return read(text)
            reason = "it is empty"
        except _MISREAD:
            reason = "its content cannot be understood"
        path = f"{self._holder.workdir.path}/{name}"
        raise errors.DamagedFile(hint=hint, path=path, host=self._host, reason=reason)


def nodes_in(text: str | None) -> tuple[Node, ...]:
    """The nodes of an inventory's text; none where there is none."""
    return inventory.parse(text) if text else ()


def read_or_none(read: Callable[[], Content], how: str) -> Content | None:
    """What *read* returns; None for a damaged file, logging *how* it is rebuilt."""
    try:
        return read()
    except errors.DamagedFile as error:
        LOG.warning("%s %s", error.what, how)
        return None


def _checked_inventory(text: str) -> str:
    inventory.parse(text)
    return text


def _services(text: str) -> tuple[ExposedService, ...]:
    services = (
        ExposedService(**{**one, "sources": tuple(one.get("sources", ()))}, servers=())
        for one in untrusted.parse_json(text)
    )
    return untrusted.checked(tuple(services))
