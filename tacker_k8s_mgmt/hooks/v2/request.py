"""What Tacker's v2 API passes to a hook, and what the hook gives back.

Everything is plain dictionaries with the names of ETSI NFV-SOL 002 and 003. Nothing
here imports Tacker or much of this package: most VNFs are none of ours, and their hooks
shall cost nothing.
"""

import uuid
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from tacker_k8s_mgmt import errors

#: What is kept of a cluster in its VNF instance, and of an operation between its hooks.
KEY = "k8s_mgmt"
_VERSION = 1
# Between the hooks of a heal.
_HEALED = "healed"
_PARAMETERS = ("k8s_cluster_installation_param", "k8sClusterInstallationParam")

#: Where a server is: id of its stack, and its name there, which is the VDU's.
Place = tuple[str, str]


def cluster_vim_id(vnf_id: str) -> str:
    """The ``vimId`` of the cluster's entry in ``vimConnectionInfo``.

    :param vnf_id: id of the cluster's VNF instance, a UUID.
    """
    return str(uuid.uuid5(uuid.UUID(vnf_id), "kubernetes"))


@dataclass
class Call:
    """One call of a hook.

    :param operation: the hook's name, such as ``scale_start``.
    :param instance: the VNF instance; what is changed in it is stored if the whole
        operation ends well.
    :param package: directory of the VNF package.
    :param between: what the hooks of an operation tell each other; a user can see it.
        It also reaches the hooks of a retry and of a rollback.
    """

    operation: str
    request: Mapping[str, Any]
    instance: dict[str, Any]
    grant_request: Mapping[str, Any]
    package: str
    between: dict[str, Any] = field(default_factory=dict)

    @classmethod
    def read(cls, given: Mapping[str, Any]) -> "Call":
        """What Tacker has sent."""
        between = given.get("user_script_err_handling_data") or {}
        return cls(
            operation=given["operation"],
            request=given["request"] or {},
            instance=given["vnf_instance"],
            grant_request=given["grant_request"] or {},
            package=given["tmp_csar_dir"],
            between=dict(between.get(KEY) or {}),
        )

    def told(self) -> dict[str, Any]:
        """What a hook that has failed gives back."""
        return {"user_script_err_handling_data": {KEY: self.between}}

    def result(self) -> dict[str, Any]:
        """What a hook that went well gives back."""
        return {"vnf_instance": self.instance, **self.told()}

    # The request

    @property
    def given(self) -> Mapping[str, Any]:
        """``additionalParams`` of the request."""
        return self.request.get("additionalParams") or {}

    @property
    def concerns_us(self) -> bool:
        """Whether the VNF is a cluster, or is to become one."""
        return self.state is not None or self.names_parameters

    @property
    def names_parameters(self) -> bool:
        """Whether the request has parameters of ours."""
        return any(name in self.given for name in _PARAMETERS)

    # The VNF instance

    @property
    def vnf_id(self) -> str:
        """The id of the VNF instance."""
        return str(self.instance["id"])

    @property
    def vim(self) -> Mapping[str, Any]:
        """The OpenStack that the VMs are in: the first entry but for the cluster's."""
        infos = self.instance.get("vimConnectionInfo") or {}
        ours = cluster_vim_id(self.vnf_id)
        return next((one for one in infos.values() if one.get("vimId") != ours), {})

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

        :raises TackerError: they are not as this release keeps them.
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
        return {_PARAMETERS[0]: state["parameters"]}

    def store(self, additional_params: Mapping[str, Any]) -> None:
        """Keep parameters for the operations to come.

        :param additional_params: without secrets.
        """
        parameters = additional_params[_PARAMETERS[0]]
        state = {"version": _VERSION, "parameters": parameters}
        metadata = self.instance.get("metadata") or {}
        self.instance["metadata"] = {**metadata, KEY: state}

    def forget(self) -> None:
        """Keep nothing any more."""
        metadata = dict(self.instance.get("metadata") or {})
        metadata.pop(KEY, None)
        self.instance["metadata"] = metadata

    # Servers

    def resources(self) -> list[dict[str, Any]]:
        """``vnfcResourceInfo``: the servers that Tacker knows of."""
        return self._info.get("vnfcResourceInfo") or []

    def servers(self) -> list[str]:
        """Ids of all servers that Tacker knows of."""
        return [_server(vnfc) for vnfc in self.resources()]

    def images(self) -> dict[str, str]:
        """Name or id of the image of each VDU's VMs, where Tacker knows it."""
        found = ((one["vduId"], one.get("metadata") or {}) for one in self.resources())
        return {
            str(vdu): str(metadata[f"image-{vdu}"])
            for vdu, metadata in found
            if metadata.get(f"image-{vdu}")
        }

    def vdus(self, servers: Collection[str]) -> list[str]:
        """The VDUs that these servers are of."""
        return [one["vduId"] for one in self.resources() if _server(one) in servers]

    def added(self) -> list[str]:
        """The VDUs of the servers that the operation makes."""
        return [str(one["resourceTemplateId"]) for one in self._granted("addResources")]

    def removed(self) -> list[str]:
        """Ids of the servers that the operation takes away."""
        return [
            str(one["resource"]["resourceId"])
            for one in self._granted("removeResources")
            if "resource" in one
        ]

    def members(self) -> list[str]:
        """Ids of the stacks of these servers' group members.

        After a heal that was given up, Heat has other servers in them.
        """
        removed = set(self.removed())
        return [
            _place(vnfc)[0]
            for vnfc in self.resources()
            if _server(vnfc) in removed
            and "parent_stack_id" in (vnfc.get("metadata") or {})
        ]

    def uncounted(self, there: Iterable[tuple[str, Place]]) -> Counter[str]:
        """How many servers of each VDU Tacker does not know of.

        :param there: id and place of every server in the stack. What Heat has built
            anew in the place of a known one is no further one.
        """
        known, places = set(self.servers()), set(map(_place, self.resources()))
        return Counter(
            place[1]
            for server, place in there
            if server not in known and place not in places
        )

    def _granted(self, what: str) -> list[Mapping[str, Any]]:
        resources = self.grant_request.get(what) or ()
        return [one for one in resources if one.get("type") == "COMPUTE"]

    def healed(self) -> Iterator["Healed"]:
        """The VNFCs that a heal request names.

        Tacker's v2 API takes the ids of ``vnfcInfo`` (SOL002).
        """
        resources = {one["id"]: one for one in self.resources()}
        wanted = set(self.request.get("vnfcInstanceId") or ())
        for info in self._info.get("vnfcInfo") or ():
            vnfc = resources.get(str(info.get("vnfcResourceInfoId")))
            if info["id"] in wanted and vnfc is not None:
                yield Healed(str(info["id"]), _server(vnfc), _place(vnfc))

    def note_healed(self) -> None:
        """Keep for the ``_end`` hook which VNFCs are built anew.

        By then they have other ids, and the same places.
        """
        noted = [[one.vnfc_id, *one.place] for one in self.healed()]
        self.between[_HEALED] = noted

    def noted(self) -> dict[Place, str]:
        """The ids of the VNFCs that are built anew, by their places.

        :raises UnsupportedOperation: nobody has noted them.
        """
        if _HEALED not in self.between:
            raise errors.UnsupportedOperation(
                detail="Nobody has noted which VMs are built anew: the VNFD names "
                "heal_end and not heal_start.",
                hint="Change to a package that names both, and heal again.",
            )
        return {(stack, name): vnfc for vnfc, stack, name in self.between[_HEALED]}

    def connections(self) -> Iterator[tuple[str, str, frozenset[str]]]:
        """What a change of external connectivity asks for.

        :returns: name of each connection point, its network, its fixed addresses.
        """
        for link in self.request.get("extVirtualLinks") or ():
            for cp in link.get("extCps") or ():
                addresses = frozenset(_fixed_addresses(cp))
                yield str(cp["cpdId"]), str(link["resourceId"]), addresses

    @property
    def _info(self) -> Mapping[str, Any]:
        return self.instance.get("instantiatedVnfInfo") or {}


@dataclass(frozen=True)
class Healed:
    """A VNFC that is built anew.

    :param server_id: of its server as far as Tacker knows.
    :param place: id of the stack that the server is in, and its name there. A retry
        builds anew whichever server is there by then.
    """

    vnfc_id: str
    server_id: str
    place: Place


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
