"""A VNF instance of Tacker's v2 API, to be looked at only.

What is kept of its parameters has no literal secrets. The requests of its operations,
which Tacker keeps, have them.
"""

from collections import Counter
from collections.abc import Mapping
from functools import partial
from typing import Any

from tacker import context as tacker_context
from tacker.sol_refactored import objects
from tacker.sol_refactored.nfvo import nfvo_client

from tacker_k8s_mgmt import errors
from tacker_k8s_mgmt.hooks import hints
from tacker_k8s_mgmt.hooks.secrets import Secrets
from tacker_k8s_mgmt.hooks.v2.heat import login_of
from tacker_k8s_mgmt.hooks.v2.request import Call
from tacker_k8s_mgmt.hooks.v2.scale import healthy_servers
from tacker_k8s_mgmt.hooks.v2.site import PROJECT, V2Site
from tacker_k8s_mgmt.remote.readonly_site import Instance, NoSuchInstance, SeenSite
from tacker_k8s_mgmt.request import params as parameters
from tacker_k8s_mgmt.request.params import InstallParams
from tacker_k8s_mgmt.status.facts import Count

_KEPT = "COMPLETED"  # Tacker stores what an operation has changed if it ended so
_OVER = (_KEPT, "FAILED", "ROLLED_BACK")
_WAY_OUT = (
    "Send a heal or scale request that repeats what is missing; what it gives is known "
    "from then on."
)


_COUNTED = "The next heal of a VNFC has Tacker count them anew."


class SeenV2Site(SeenSite, V2Site):
    """The site of a VNF instance of the v2 API."""

    def counts(self) -> tuple[Count, ...]:
        """How many VMs each VDU has, in Heat and as Tacker lists them.

        Tacker scales by what it lists, whatever the scale level is
        (``userdata_default.py``).
        """
        heat = Counter(one.name for one in healthy_servers(self._call))
        tacker = Counter(str(one["vduId"]) for one in self._call.resources())
        names = dict.fromkeys((*tacker, *heat))
        return tuple(Count(name, heat[name], tacker[name], _COUNTED) for name in names)

    def _package_root(self) -> str:
        context = tacker_context.get_admin_context()
        vnfd_id = self._call.instance["vnfdId"]
        return str(nfvo_client.NfvoClient().get_vnfd(context, vnfd_id).csar_dir)


class Record:
    """What Tacker's database has of a VNF instance.

    :raises NoSuchInstance: there is none.
    """

    def __init__(self, vnf_id: str) -> None:
        objects.register_all()
        context = tacker_context.get_admin_context()
        found = objects.VnfInstanceV2.get_by_id(context, vnf_id)
        if found is None:
            raise NoSuchInstance(vnf_id)
        self._instance: dict[str, Any] = found.to_dict()
        occurrences = objects.VnfLcmOpOccV2.get_by_filter(context, vnfInstanceId=vnf_id)
        occurrences.sort(key=lambda one: one.startTime)
        self._operations: list[Mapping[str, Any]] = [
            one.to_dict() for one in occurrences
        ]

    def opened(self, options: Any, state_path: str) -> Instance:
        """The cluster.

        :raises TackerError: it is none.
        :raises ParamError: its parameters are none that this release takes.
        """
        call = Call("cluster check", {}, self._instance, {}, package="")
        params = self._params(call, options)
        view = SeenV2Site(call, params, options, state_path, call.operation)
        name = str(self._instance.get("vnfInstanceName") or "")
        open_ones = ", ".join(
            f"{one['operation']} {one['id']} is {one['operationState']}"
            for one in self._operations
            if one["operationState"] not in _OVER
        )
        return Instance(call.vnf_id, name, open_ones, params, view)

    def _params(self, call: Call, options: Any) -> InstallParams:
        if self._instance["instantiationState"] != "INSTANTIATED":
            raise errors.TackerError(
                detail=f"The VNF instance {call.vnf_id} is not instantiated."
            )
        if call.state is None:
            raise errors.TackerError(
                detail=f"The VNF instance {call.vnf_id} is no cluster: its metadata do "
                "not name one."
            )
        secrets = Secrets(partial(login_of, call.vim), options, project_id=PROJECT)
        with hints.told(_WAY_OUT, retried=False):
            return parameters.completed(call.stored, self._given(), secrets)

    def _given(self) -> list[Mapping[str, Any]]:
        """``additionalParams`` of the requests that were carried out, latest first."""
        return [
            (one.get("operationParams") or {}).get("additionalParams") or {}
            for one in reversed(self._operations)
            if one["operationState"] == _KEPT
        ]
