"""What the driver keeps of a cluster in its directory on the Ansible server.

Each file is read and checked here. One that is not as it was written (cut off, emptied,
overwritten) is an error that names it and the way out; what Heat, the cluster and the
inventory tell again is rebuilt (:mod:`.rebuild`).
"""

import json
import logging
from collections.abc import Callable, Mapping, Sequence
from typing import Protocol, TypeVar

from oslo_log import log
from pydantic import TypeAdapter

from tacker_k8s_mgmt import errors
from tacker_k8s_mgmt.kubespray import inventory
from tacker_k8s_mgmt.lifecycle import ports
from tacker_k8s_mgmt.model.load_balancer import ExposedService
from tacker_k8s_mgmt.model.nodes import Node
from tacker_k8s_mgmt.topology import heal_record, upgrade_plan
from tacker_k8s_mgmt.topology.heal_record import Healing

LOG: logging.LoggerAdapter[logging.Logger] = log.getLogger(__name__)

VARIABLES_FILE = "vars.json"
#: Server id and SSH address of every VM whose host key is recorded.
MACHINES_FILE = "machines.json"
#: The smallest MTU of the nodes' interfaces when the cluster was made.
MTU_FILE = "nic_mtu.json"
#: Ids of the servers that were seen to be whole members of the cluster.
JOINED_FILE = "joined.json"
#: Host keys of servers that are on their way to another address, by server id.
MOVING_FILE = "moving.json"
#: What is exposed, as last seen: the load balancer's VM may be lost without a word.
SERVICES_FILE = "services.json"
#: The inventory once more, as it was written last.
KEPT_INVENTORY = "hosts.last.yaml"

_WHOLE = "heal the whole VNF, which builds the cluster anew"
_HINTS = {
    inventory.FILE_NAME: f"Restore it, or {_WHOLE}.",
    heal_record.FILE_NAME: "If no heal is under way and none was given up, delete it. "
    f"Else restore it, or delete it and {_WHOLE}.",
    upgrade_plan.FILE_NAME: "The nodes do not all have the same version, so it cannot "
    'be rebuilt. Restore it, or write {"aim": "VERSION"} into it, with the version '
    "that the upgrade was to bring, and send the request for that upgrade again.",
    SERVICES_FILE: "Delete it; when the operation has ended, expose again what the "
    "load balancer exposed.",
}
_DELETE = "Delete it."
# What a parser makes of a text that is not what it was written as.
_MISREAD = (ValueError, LookupError, TypeError, AttributeError, errors.ClusterError)

Content = TypeVar("Content")


class _Holder(Protocol):
    @property
    def workdir(self) -> ports.Records: ...


class ClusterRecords:
    """The files of one cluster's directory.

    :param holder: has the directory; asked for it each time, for sessions may break.
    :param host: the Ansible server, for error texts.
    """

    def __init__(self, holder: _Holder, host: str) -> None:
        self._holder = holder
        self._host = host

    def inventory(self) -> str | None:
        """The inventory's text, if it is one; None where there is no file.

        :raises SpoiledFile: it is there and no inventory of ours.
        """
        return self._read(inventory.FILE_NAME, _see_inventory)

    def kept_inventory(self) -> str | None:
        """The inventory as it was written last; None where that is not known."""
        try:
            return self._read(KEPT_INVENTORY, _see_inventory)
        except errors.SpoiledFile as error:
            LOG.warning("The copy of the inventory cannot be used: %s", error)
            return None

    def last_inventory(self) -> str | None:
        """The inventory, or its copy where it is lost; None where there is neither.

        :raises SpoiledFile: it is spoiled, and there is no copy.
        """
        try:
            text = self.inventory()
        except errors.SpoiledFile:
            text = self.kept_inventory()
            if text is None:
                raise
            return text
        return self.kept_inventory() if text is None else text

    def machines(self) -> dict[str, str] | None:
        """SSH addresses by server id; None where that was not recorded.

        :raises SpoiledFile: the file cannot be understood. So do all that follow.
        """
        return self._read(MACHINES_FILE, TypeAdapter(dict[str, str]).validate_json)

    def addresses(self) -> dict[str, str]:
        """As :meth:`machines`; none where that was not recorded."""
        return self.machines() or {}

    def joined(self) -> frozenset[str] | None:
        """Ids of the servers that are whole members; None where it was not recorded."""
        return self._read(JOINED_FILE, TypeAdapter(frozenset[str]).validate_json)

    def nic_mtus(self) -> tuple[int, ...] | None:
        """The smallest MTU, if it was known; None where it was not recorded."""
        return self._read(MTU_FILE, TypeAdapter(tuple[int, ...]).validate_json)

    def healing(self) -> Healing:
        """The heal that is under way or was given up."""
        return self._read(heal_record.FILE_NAME, heal_record.parse) or Healing()

    def upgrade(self) -> upgrade_plan.Record:
        """What is recorded of upgrades."""
        return (
            self._read(upgrade_plan.FILE_NAME, upgrade_plan.recorded)
            or upgrade_plan.Record()
        )

    def services(self) -> tuple[ExposedService, ...]:
        """What the load balancer exposed when it was asked last."""
        return self._read(SERVICES_FILE, _services) or ()

    def moving(self) -> Mapping[str, Sequence[Sequence[str]]]:
        """Host keys of servers on their way to another address, by server id."""
        kind = TypeAdapter(dict[str, list[list[str]]])
        return self._read(MOVING_FILE, kind.validate_json) or {}

    def api_address(self) -> str | None:
        """The load balancer's address in the variables of the last playbook."""
        return self._read(VARIABLES_FILE, _api_address)

    def _read(self, name: str, read: Callable[[str], Content]) -> Content | None:
        hint = _HINTS.get(name, _DELETE)
        try:
            text = self._holder.workdir.read(name)
        except errors.SpoiledFile as error:
            raise errors.SpoiledFile(hint=hint, **error.fields) from error
        if text is None:
            return None
        # No error is chained from here: a parser's may quote the text.
        try:
            if text.strip():
                return read(text)
            reason = "it is empty"
        except _MISREAD:
            reason = "its content cannot be understood"
        path = f"{self._holder.workdir.path}/{name}"
        raise errors.SpoiledFile(hint=hint, path=path, host=self._host, reason=reason)


def nodes_in(text: str | None) -> tuple[Node, ...]:
    """The nodes of an inventory's text; none where there is none."""
    return inventory.parse(text) if text else ()


def rebuilt(read: Callable[[], Content], how: str) -> Content | None:
    """What is read, or None of a spoiled file; the log says how that is rebuilt."""
    try:
        return read()
    except errors.SpoiledFile as error:
        LOG.warning("%s %s", error.what, how)
        return None


def _see_inventory(text: str) -> str:
    inventory.parse(text)
    return text


def _api_address(text: str) -> str | None:
    told = json.loads(text).get("loadbalancer_apiserver")
    return str(told["address"]) if told else None


def _services(text: str) -> tuple[ExposedService, ...]:
    return tuple(ExposedService(**one, servers=()) for one in json.loads(text))
