"""The table of the hooks of Tacker's v1 API, and the class behind the frozen shim.

What Tacker passes to each hook and when: ``tacker/vnflcm/vnflcm_driver.py``. One
driver object serves all threads of a conductor, so it has no state.
"""

from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

from tacker.vnfm.mgmt_drivers import vnflcm_abstract_driver

from tacker_k8s_mgmt.hooks import hints, table
from tacker_k8s_mgmt.hooks.table import Plan
from tacker_k8s_mgmt.hooks.v1 import (
    checkpoint,
    group_size,
    requests,
    rollback,
    scale_level,
    stale_stack,
    terminate,
)
from tacker_k8s_mgmt.hooks.v1.context import V1Hook, V1Site
from tacker_k8s_mgmt.lifecycle.connectivity import ConnectivityEnd
from tacker_k8s_mgmt.lifecycle.connectivity_check import connectivity_start
from tacker_k8s_mgmt.lifecycle.heal import HealEnd, HealStart
from tacker_k8s_mgmt.lifecycle.instantiate import Instantiate
from tacker_k8s_mgmt.lifecycle.scale_in import ScaleIn
from tacker_k8s_mgmt.lifecycle.scale_out import ScaleOut
from tacker_k8s_mgmt.lifecycle.state import Dependencies
from tacker_k8s_mgmt.lifecycle.steps import preflight
from tacker_k8s_mgmt.lifecycle.terminate import terminate_end, terminate_start
from tacker_k8s_mgmt.request.params import InstallParams

TYPE = "mgmt-drivers-kubespray"
_Entry = table.Entry[V1Hook, V1Site]
_SCALE_OUT = hints.Advice(
    "Send `fail` for this operation: the new VMs stay, and the next scale-out or heal "
    "joins them.",
    refused=hints.CONTROL_PLANES_GO,
)
_CONNECTIVITY_END = hints.Advice(
    "`retry` goes on from here; after `fail`, the same request sent again does."
)


def _instantiate_start(hook: V1Hook, deps: Dependencies, site: V1Site) -> Plan:
    stack = partial(checkpoint.save, hook.context, hook.instance, checkpoint.STACK)
    return Plan((preflight.step(deps), stale_stack.step(site)), after=stack)


def _instantiate_end(hook: V1Hook, deps: Dependencies, site: V1Site) -> Plan:
    return Plan.of(Instantiate(deps))


def _for_workers(hook: V1Hook, wrong: str) -> InstallParams | None:
    params = hook.merged(wrong)
    if params is not None:
        requests.refuse_control_planes(params, hook.request)
    return params


def _scale_in(hook: V1Hook, deps: Dependencies, site: V1Site) -> Plan:
    return Plan.of(ScaleIn(deps, stacks=hook.stacks))


def _scale_out(hook: V1Hook, deps: Dependencies, site: V1Site) -> Plan:
    work = ScaleOut(deps, stacks=hook.stacks)

    def advise(error: Exception) -> str:
        aspect, before = hook.request.aspect_id, work.workers_before()
        return rollback.way_on(hook.context, hook.instance, aspect, before)

    follow = partial(scale_level.follow_scale_out, site)
    return Plan.of(work, advice=advise, after=follow)


def _heal_start(hook: V1Hook, deps: Dependencies, site: V1Site) -> Plan:
    if not hook.request.vnfc_instance_id:
        return Plan(
            (
                preflight.step(deps),
                *terminate_start(site.vims),
                *terminate_end(deps.vnf_id, site.vims, site),
            )
        )
    work = HealStart(deps, servers=requests.servers(hook.instance, hook.request))
    return Plan((scale_level.step(site), *work.steps()), work.left)


def _heal_end(hook: V1Hook, deps: Dependencies, site: V1Site) -> Plan:
    if not hook.request.vnfc_instance_id:
        return Plan.of(Instantiate(deps), advice=hints.HEAL_OF_ALL)
    servers = requests.servers(hook.instance, hook.request)
    return Plan.of(HealEnd(deps, servers=servers))


def _connectivity_start(hook: V1Hook, deps: Dependencies, site: V1Site) -> Plan:
    points = requests.attachments(hook.request)
    return Plan((*connectivity_start(deps, points), group_size.step(site)))


def _connectivity_end(hook: V1Hook, deps: Dependencies, site: V1Site) -> Plan:
    work = ConnectivityEnd(deps, points=requests.attachments(hook.request))
    return Plan(work.steps(), after=partial(checkpoint.clear, hook.instance))


HOOKS: Mapping[str, Callable[[V1Hook], None]] = {
    "instantiate_start": _Entry(
        V1Hook.parsed,
        hints.ROLLBACK,
        _instantiate_start,
        hints.NO_VM_YET,
        followed_by="instantiate_end",
    ),
    # A package need not name instantiate_start, which would have refused.
    "instantiate_end": _Entry(
        V1Hook.parsed, hints.VMS_GO, _instantiate_end, hints.VMS_EXIST
    ),
    "terminate_start": terminate.start,
    "terminate_end": terminate.end,
    # Called for scale-in only, with the ids of the stacks of the group's members
    # (``VnfLcmDriver._scale_vnf_pre``).
    "scale_start": _Entry(_for_workers, hints.FAIL, _scale_in),
    # Called for scale-out only, with those of the new ones (``_scale_vnf_post``).
    "scale_end": _Entry(_for_workers, hints.VMS_GO, _scale_out, _SCALE_OUT),
    "heal_start": _Entry(
        V1Hook.merged,
        hints.FAIL,
        _heal_start,
        followed_by="heal_end",
    ),
    "heal_end": _Entry(V1Hook.merged, hints.FAIL_ALREADY, _heal_end),
    "change_external_connectivity_start": _Entry(
        V1Hook.merged,
        hints.FAIL,
        _connectivity_start,
        hints.CHECK,
        followed_by="change_external_connectivity_end",
    ),
    "change_external_connectivity_end": _Entry(
        V1Hook.merged, hints.FAIL_ALREADY, _connectivity_end, _CONNECTIVITY_END
    ),
    "modify_information_start": lambda hook: None,
    "modify_information_end": lambda hook: None,
}


def _hook(name: str, keyword: str) -> Callable[..., None]:
    """The method that Tacker calls for a hook.

    :param keyword: argument with the operation's request.
    """

    def method(
        self: Any, context: Any, vnf_instance: Any, request: Any = None, **passed: Any
    ) -> None:
        # Tacker passes it to other hooks too, but has stored it before those.
        vnf = passed.get("vnf") if name == "instantiate_end" else None
        stacks = passed.get("scale_out_id_list", ())
        request = passed.get(keyword, request)
        HOOKS[name](V1Hook(name, context, vnf_instance, request, stacks, vnf))

    return method


class MgmtDriver(vnflcm_abstract_driver.VnflcmMgmtAbstractDriver):  # type: ignore[misc]
    """Tacker's v1 management-driver interface, implemented by :data:`HOOKS`."""

    def get_type(self) -> str:
        """The name in ``[tacker] vnflcm_mgmt_driver`` and in the VNFD."""
        return TYPE

    def get_name(self) -> str:
        """The same as the type."""
        return TYPE

    def get_description(self) -> str:
        """One line about the driver."""
        return "Kubernetes cluster VNF with kubespray"

    instantiate_start = _hook("instantiate_start", "instantiate_vnf_request")
    instantiate_end = _hook("instantiate_end", "instantiate_vnf_request")
    terminate_start = _hook("terminate_start", "terminate_vnf_request")
    terminate_end = _hook("terminate_end", "terminate_vnf_request")
    scale_start = _hook("scale_start", "scale_vnf_request")
    scale_end = _hook("scale_end", "scale_vnf_request")
    heal_start = _hook("heal_start", "heal_vnf_request")
    heal_end = _hook("heal_end", "heal_vnf_request")
    change_external_connectivity_start = _hook(
        "change_external_connectivity_start", "change_ext_conn_request"
    )
    change_external_connectivity_end = _hook(
        "change_external_connectivity_end", "change_ext_conn_request"
    )
    modify_information_start = _hook("modify_information_start", "modify_vnf_request")
    modify_information_end = _hook("modify_information_end", "modify_vnf_request")
