# SPDX-License-Identifier: Apache-2.0
"""What Tacker's v2 API passes to a hook, and what the hook returns.

Everything is plain dictionaries with the names of ETSI NFV-SOL 002 and 003. This module
does not import Tacker or much of this package: most VNFs are not clusters, and their
hooks have to be quick.

The scale levels are restored after a rollback. When Tacker 16 rolls back a change of
package or of external connectivity, it rebuilds ``instantiatedVnfInfo`` and stores it
without ``scaleStatus`` and ``maxScaleLevels`` (``conductor_v2.py``,
``_rollback_lcm_op``; after other operations ``_make_inst_info_common`` restores them).
It then refuses every scaling.
"""

import uuid
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from tacker_k8s_mgmt import errors
from tacker_k8s_mgmt.hooks.instance_view import PARAMETERS, has_parameters

#: What is kept of a cluster in its VNF instance, and of an operation between its hooks.
KEY = "k8s_mgmt"
_VERSION = 1
# Between the hooks of a heal.
_HEALED = "healed"
# Between the hooks of any operation.
_PLACES = "places"
# Between those of an instantiation, and then among what is kept.
_PROFILE = "profile"
# Begins the entries of the metadata that are settings of one VNFC.
_OF_VNFC = "k8s_nodes:vnfc:"
# Between those of a rollback.
_SCALE_STATUS = "scale_status"
_SCALE_FIELDS = ("scaleStatus", "maxScaleLevels", "localizationLanguage")

#: Where a server is: id of its stack, and its name there, which is the VDU's.
Place = tuple[str, str]


def cluster_vim_id(vnf_id: str) -> str:
    """The ``vimId`` of the cluster's entry in ``vimConnectionInfo``.

    :param vnf_id: id of the cluster's VNF instance, a UUID.
    """
    return str(uuid.uuid5(uuid.UUID(vnf_id), "kubernetes"))


@dataclass
class HookCall:
    """One call of a hook.

    :param operation: the hook's name, such as ``scale_start``.
    :param instance: the VNF instance; changes are stored if the whole operation ends
        well.
    :param package: directory of the VNF package.
    :param between: data that the hooks of an operation pass on, also to those of a
        retry and of a rollback; users can see it.
    :param listed: the resources of the Heat stack, once they were asked for; by
        whether servers have their attributes.
    """

    operation: str
    request: Mapping[str, Any]
    instance: dict[str, Any]
    grant_request: Mapping[str, Any]
    package: str
    between: dict[str, Any] = field(default_factory=dict)
    listed: dict[bool, tuple[Any, ...]] = field(default_factory=dict)

    @classmethod
    def read(cls, sent: Mapping[str, Any]) -> "HookCall":
        """The call that Tacker has sent."""
        between = sent.get("user_script_err_handling_data") or {}
        return cls(
            operation=sent["operation"],
            request=sent["request"] or {},
            instance=sent["vnf_instance"],
            grant_request=sent["grant_request"] or {},
            package=sent["tmp_csar_dir"],
            between=dict(between.get(KEY) or {}),
        )

    def failure(self) -> dict[str, Any]:
        """What a hook that has failed returns."""
        return {"user_script_err_handling_data": {KEY: self.between}}

    def result(self) -> dict[str, Any]:
        """What a hook that has succeeded returns."""
        return {"vnf_instance": self.instance, **self.failure()}

    # The request

    @property
    def additional_params(self) -> Mapping[str, Any]:
        """``additionalParams`` of the request."""
        return self.request.get("additionalParams") or {}

    @property
    def patch(self) -> Mapping[str, Any]:
        """``metadata`` of a request that modifies the VNF instance."""
        return self.request.get("metadata") or {}

    @property
    def concerns_us(self) -> bool:
        """Whether the VNF is a cluster, or is to become one."""
        return self.state is not None or self.names_parameters

    @property
    def names_parameters(self) -> bool:
        """Whether the request has parameters of ours."""
        return has_parameters(self.additional_params)

    def connections(self) -> Iterator[tuple[str, str, frozenset[str]]]:
        """What a change of external connectivity asks for.

        :returns: name of each connection point, its network, its fixed addresses.
        """
        for link in self.request.get("extVirtualLinks") or ():
            for cp in link.get("extCps") or ():
                addresses = frozenset(_fixed_addresses(cp))
                yield str(cp["cpdId"]), str(link["resourceId"]), addresses

    # The VNF instance

    @property
    def vnf_id(self) -> str:
        """The id of the VNF instance."""
        return str(self.instance["id"])

    @property
    def vnf_name(self) -> str:
        """Its name; "" if it has none."""
        return str(self.instance.get("vnfInstanceName") or "")

    @property
    def occurrence(self) -> str:
        """The id of the LCM operation occurrence; "" if it is not known."""
        # Of a rollback Tacker may have kept no grant request.
        return str(self.grant_request.get("vnfLcmOpOccId") or "")

    @property
    def vim(self) -> Mapping[str, Any]:
        """The VIM of the VMs: the first entry other than the cluster's."""
        infos = self.instance.get("vimConnectionInfo") or {}
        ours = cluster_vim_id(self.vnf_id)
        return next((info for info in infos.values() if info.get("vimId") != ours), {})

    @property
    def stack(self) -> str:
        """The Heat stack's name, with its id if that is known."""
        name = f"vnf-{self.vnf_id}"
        stack_id = (self._info.get("metadata") or {}).get("stack_id")
        return f"{name}/{stack_id}" if stack_id else name

    @property
    def state(self) -> dict[str, Any] | None:
        """What is kept of the cluster; None if it is none."""
        return (self.instance.get("metadata") or {}).get(KEY)

    @property
    def stored(self) -> dict[str, Any]:
        """The parameters that are kept, as ``additionalParams`` of a request.

        :raises TackerError: they are not in this release's format.
        """
        state = self.state
        if state is None:
            return {}
        if not isinstance(state, Mapping) or state.get("version") != _VERSION:
            raise errors.TackerError(
                detail=f"metadata.{KEY} of the VNF instance {self.vnf_id} is not as "
                "this release of tacker-k8s-mgmt keeps it.",
                hint="If a later release was in use, install that one again. Else give "
                "the metadata back what they were, with a request that modifies the "
                "VNF instance.",
            )
        return {PARAMETERS[0]: state["parameters"]}

    def store(self, additional_params: Mapping[str, Any]) -> None:
        """Keep parameters, and what their profile stands for, for later operations.

        :param additional_params: without secrets.
        """
        parameters = additional_params[PARAMETERS[0]]
        state: dict[str, Any] = {"version": _VERSION, "parameters": parameters}
        if self.profile is not None:
            state[_PROFILE] = self.profile
        metadata = self.instance.get("metadata") or {}
        self.instance["metadata"] = {**metadata, KEY: state}

    @property
    def profile(self) -> Any:
        """What is kept of the cluster's profile; None if nothing is."""
        state = self.state
        kept = state.get(_PROFILE) if isinstance(state, Mapping) else None
        return self.between.get(_PROFILE) if kept is None else kept

    def note_profile(self, kept: Mapping[str, Any]) -> None:
        """Keep what a profile stands for until the parameters are stored."""
        self.between[_PROFILE] = kept

    def forget(self) -> None:
        """Remove what is kept."""
        metadata = dict(self.instance.get("metadata") or {})
        metadata.pop(KEY, None)
        self.instance["metadata"] = metadata

    # Servers

    def resources(self) -> list[dict[str, Any]]:
        """``vnfcResourceInfo``: the servers that Tacker lists."""
        return self._info.get("vnfcResourceInfo") or []

    def servers(self) -> list[str]:
        """Ids of all servers that Tacker lists."""
        return [_server(vnfc) for vnfc in self.resources()]

    def places(self) -> set[Place]:
        """The places of all servers that Tacker lists."""
        return set(map(_place, self.resources()))

    def images(self) -> dict[str, str]:
        """Name or id of the image of each VDU's VMs, where Tacker knows it."""
        images = {}
        for vnfc in self.resources():
            vdu = str(vnfc["vduId"])
            if image := (vnfc.get("metadata") or {}).get(f"image-{vdu}"):
                images[vdu] = str(image)
        return images

    def vdus(self, servers: Collection[str]) -> set[str]:
        """The VDUs of these servers."""
        return {vnfc["vduId"] for vnfc in self.resources() if _server(vnfc) in servers}

    def added(self) -> list[str]:
        """The VDUs of the servers that the operation creates."""
        granted = self._granted("addResources")
        return [str(resource["resourceTemplateId"]) for resource in granted]

    def removed(self) -> list[str]:
        """Ids of the servers that the operation deletes, and of their members' stacks.

        After a heal that was abandoned, Heat has other servers in these stacks.
        """
        servers = [
            str(resource["resource"]["resourceId"])
            for resource in self._granted("removeResources")
            if "resource" in resource
        ]
        members = [
            _place(vnfc)[0]
            for vnfc in self.resources()
            if _server(vnfc) in servers
            and "parent_stack_id" in (vnfc.get("metadata") or {})
        ]
        return servers + members

    def size_after_scale_in(self) -> int:
        """The size that Tacker gives the group of the servers that it removes.

        ``common_script_utils.get_param_capacity``: what it lists, less what it removes.
        """
        removed = {
            str(resource["resource"]["resourceId"])
            for resource in self._granted("removeResources")
            if "resource" in resource
        }
        vdus = self.vdus(removed)
        listed = sum(vnfc["vduId"] in vdus for vnfc in self.resources())
        return max(listed - len(removed), 0)

    def uncounted(self, present: Iterable[tuple[str, Place]]) -> Counter[str]:
        """How many servers of each VDU Tacker does not list.

        :param present: id and place of every server in the stack. A server that Heat
            has rebuilt in the place of a listed one does not count.
        """
        listed, places = set(self.servers()), self.places()
        return Counter(
            place[1]
            for server, place in present
            if server not in listed and place not in places
        )

    def _granted(self, what: str) -> list[Mapping[str, Any]]:
        resources = self.grant_request.get(what) or ()
        return [resource for resource in resources if resource.get("type") == "COMPUTE"]

    # VNFCs

    def vnfcs(self) -> Iterator[tuple[str, str, Place]]:
        """The VNFCs of ``vnfcInfo``: id, id of the server as Tacker lists it, place."""
        resources = {vnfc["id"]: vnfc for vnfc in self.resources()}
        for info in self._info.get("vnfcInfo") or ():
            vnfc = resources.get(str(info.get("vnfcResourceInfoId")))
            if vnfc is not None:
                yield str(info["id"]), _server(vnfc), _place(vnfc)

    def note_places(self) -> None:
        """Keep the places of VNFCs that have settings, for :meth:`follow_places`."""
        named = {name.split(":")[2] for name in self._settings()}
        places = [[vnfc, *place] for vnfc, _, place in self.vnfcs() if vnfc in named]
        if places:
            self.between[_PLACES] = places

    def follow_places(self) -> None:
        """Give the settings of VNFCs the ids that these have now.

        Tacker makes an id of the server's, so a rebuilt VNFC has another one.
        """
        now = {vnfc: place for vnfc, _, place in self.vnfcs()}
        noted = {v: (stack, name) for v, stack, name in self.between.get(_PLACES) or ()}
        metadata = self.instance.get("metadata") or {}
        for entry in self._settings():
            prefix, scope, vnfc, *rest = entry.split(":")
            there = [one for one in now if now[one] == noted.get(vnfc)]
            # Without a stack of its own, its place may be that of several.
            if vnfc not in now and len(there) == 1:
                new = ":".join((prefix, scope, there[0], *rest))
                metadata[new] = metadata.pop(entry)

    def _settings(self) -> list[str]:
        """The entries of the metadata that are settings of single VNFCs."""
        metadata = self.instance.get("metadata") or {}
        return [entry for entry in metadata if entry.startswith(_OF_VNFC)]

    def note_scale_status(self) -> None:
        """Keep the scale levels for :meth:`restore_scale_status`."""
        self.between[_SCALE_STATUS] = {
            name: self._info[name] for name in _SCALE_FIELDS if name in self._info
        }

    def restore_scale_status(self) -> None:
        """Restore what Tacker has dropped."""
        info = self.instance.get("instantiatedVnfInfo")
        if info is not None:
            for name, value in self.between.pop(_SCALE_STATUS, {}).items():
                info.setdefault(name, value)

    # A heal

    def healed(self) -> Iterator[tuple[str, str, Place]]:
        """The VNFCs that a heal request names, which are rebuilt.

        Tacker's v2 API takes the ids of ``vnfcInfo`` (SOL002).

        :returns: id of each VNFC, id of its server as Tacker lists it, and its place. A
            retry rebuilds the server that is in this place by then.
        """
        wanted = set(self.request.get("vnfcInstanceId") or ())
        return (vnfc for vnfc in self.vnfcs() if vnfc[0] in wanted)

    def note_healed(self) -> None:
        """Keep the healed VNFCs for the ``_end`` hook.

        By then they have other ids, and the same places.
        """
        self.between[_HEALED] = [[vnfc, *place] for vnfc, _, place in self.healed()]

    def noted(self) -> dict[Place, str]:
        """The ids of the healed VNFCs, by their places.

        :raises UnsupportedOperation: ``heal_start`` was not called.
        """
        if _HEALED not in self.between:
            raise errors.UnsupportedOperation(
                detail="It is not recorded which VMs are rebuilt: the VNFD names "
                "heal_end and not heal_start.",
                hint="Change to a package that names both, and heal again.",
            )
        return {(stack, name): vnfc for vnfc, stack, name in self.between[_HEALED]}

    @property
    def _info(self) -> Mapping[str, Any]:
        return self.instance.get("instantiatedVnfInfo") or {}


def _server(vnfc: Mapping[str, Any]) -> str:
    return str(vnfc["computeResource"]["resourceId"])


def _place(vnfc: Mapping[str, Any]) -> Place:
    stack = (vnfc.get("metadata") or {}).get("stack_id") or ""
    # Tacker has "<name>/<id>" there.
    return str(stack).rpartition("/")[2], str(vnfc["vduId"])


def _fixed_addresses(cp: Mapping[str, Any]) -> Iterator[str]:
    for config in (cp.get("cpConfig") or {}).values():
        for protocol in config.get("cpProtocolData") or ():
            ethernet = protocol.get("ipOverEthernet") or {}
            for entry in ethernet.get("ipAddresses") or ():
                yield from entry.get("fixedAddresses") or ()
