# SPDX-License-Identifier: Apache-2.0
"""The table of the hooks of Tacker's v1 API, and the class behind the frozen shim.

What Tacker passes to each hook and when: ``tacker/vnflcm/vnflcm_driver.py``. One
driver object serves all threads of a conductor, so it has no state.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

from tacker.vnfm.mgmt_drivers import vnflcm_abstract_driver

from tacker_k8s_mgmt.hooks import hints, modification
from tacker_k8s_mgmt.hooks.entry import Entry, Plan
from tacker_k8s_mgmt.hooks.v1 import (
    checkpoint,
    group_size,
    heal_update,
    metadata_patch,
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
from tacker_k8s_mgmt.lifecycle.instantiate import (
    Instantiate,
    WholeHealEnd,
    WholeHealStart,
)
from tacker_k8s_mgmt.lifecycle.modify import Modify
from tacker_k8s_mgmt.lifecycle.runner import Step
from tacker_k8s_mgmt.lifecycle.scale_in import ScaleIn
from tacker_k8s_mgmt.lifecycle.scale_out import ScaleOut
from tacker_k8s_mgmt.lifecycle.state import Dependencies
from tacker_k8s_mgmt.lifecycle.steps import preflight
from tacker_k8s_mgmt.request import user_data
from tacker_k8s_mgmt.request.params import InstallParams

TYPE = "mgmt-drivers-kubespray"
_Entry = Entry[V1Hook, V1Site]
_SCALE_OUT_ADVICE = hints.Advice(
    "Send `fail` for this operation: the new VMs stay, and the next scale-out or heal "
    "joins them.",
    refused=hints.SEND_ROLLBACK_ONLY,
)
_CONNECTIVITY_END_ADVICE = hints.Advice(
    "`retry` goes on from here; after `fail`, the same request sent again does."
)
# Tacker has neither a retry nor a rollback of it.
_MODIFY_START_ADVICE = hints.Advice(
    "Send `fail` for this operation; when that is mended, or with a corrected request, "
    "modify the VNF instance again."
)
_MODIFY_END_ADVICE = hints.Advice(
    "Tacker has stored what the request wants. Send `fail` for this operation; the "
    "same request sent again goes on, and one with the former values takes it back."
)


def _instantiate_start(hook: V1Hook, deps: Dependencies, site: V1Site) -> Plan:
    stack = partial(
        checkpoint.save, hook.context, hook.instance, checkpoint.STACK_POINT
    )
    former = Step(
        "remove the VIM of an abandoned instantiation",
        site.vims.remove,
        probe=lambda: not site.vims.registered() and not site.vims.of_tenants(),
    )
    check = preflight.step(deps, partial(_names, hook, site))
    # Refused while VNFs use that VIM, before their cluster is deleted.
    return Plan((check, former, stale_stack.step(site)), after=stack)


def _names(hook: V1Hook, site: V1Site) -> Sequence[str]:
    """Names that the stack will not have; without user data Tacker makes its own."""
    if not user_data.path(hook.request.additional_params):
        return ()
    return site.base_hot_findings(hook.request.flavour_id)


def _instantiate_end(hook: V1Hook, deps: Dependencies, site: V1Site) -> Plan:
    return Plan.of(Instantiate(deps))


def _params_of_scale_in(hook: V1Hook, advice: str) -> InstallParams | None:
    return _for_workers(hook, hook.merged(advice))


def _params_of_scale_out(hook: V1Hook, advice: str) -> InstallParams | None:
    # Tacker ends a retry of a scale-out without calling the hook.
    return _for_workers(hook, hook.merged(advice, retried=False))


def _for_workers(hook: V1Hook, params: InstallParams | None) -> InstallParams | None:
    if params is not None:
        requests.refuse_control_planes(params, hook.request)
    return params


def _scale_in(hook: V1Hook, deps: Dependencies, site: V1Site) -> Plan:
    return Plan.of(ScaleIn(deps, stacks=hook.stacks))


def _scale_out(hook: V1Hook, deps: Dependencies, site: V1Site) -> Plan:
    work = ScaleOut(deps, stacks=hook.stacks)

    def advice(error: Exception) -> str:
        aspect, before = hook.request.aspect_id, work.workers_before()
        return rollback.way_on(hook.context, hook.instance, aspect, before)

    follow = partial(scale_level.follow_scale_out, site)
    return Plan.of(work, advice=advice, after=follow)


def _params_of_heal(hook: V1Hook, advice: str) -> InstallParams | None:
    params = hook.merged(advice)
    if params is not None and not hook.request.vnfc_instance_id:
        requests.refuse_empty_heal(hook.context, hook.instance)
    return params


def _heal_start(hook: V1Hook, deps: Dependencies, site: V1Site) -> Plan:
    if not hook.request.vnfc_instance_id:
        listed = requests.vnfcs(hook.instance).values()
        return Plan.of(WholeHealStart(deps, listed=listed))
    work = HealStart(deps, servers=requests.servers(hook.instance, hook.request))
    same = heal_update.step(site, hook.request)
    return Plan((same, scale_level.step(site), *work.steps()), work.left)


def _heal_end(hook: V1Hook, deps: Dependencies, site: V1Site) -> Plan:
    if not hook.request.vnfc_instance_id:
        return Plan.of(WholeHealEnd(deps), advice=hints.V1_HEAL_OF_ALL)
    servers = requests.servers(hook.instance, hook.request)
    return Plan.of(HealEnd(deps, servers=servers))


def _connectivity_start(hook: V1Hook, deps: Dependencies, site: V1Site) -> Plan:
    points = requests.attachments(hook.request)
    return Plan((*connectivity_start(deps, points), group_size.step(site)))


def _connectivity_end(hook: V1Hook, deps: Dependencies, site: V1Site) -> Plan:
    work = ConnectivityEnd(deps, points=requests.attachments(hook.request))
    return Plan(work.steps(), after=partial(checkpoint.clear, hook.instance))


def _params_of_modification(hook: V1Hook, advice: str) -> InstallParams | None:
    if not requests.is_cluster(hook.instance):
        return None
    hook.patch = metadata_patch.read(hook)
    concerned = modification.concerns(hook.patch)
    return hook.merged(advice, retried=False) if concerned else None


def _modify_start(hook: V1Hook, deps: Dependencies, site: V1Site) -> Plan:
    return Plan(_modify(hook, deps).start_steps())


def _modify_end(hook: V1Hook, deps: Dependencies, site: V1Site) -> Plan:
    return Plan.of(_modify(hook, deps))


def _modify(hook: V1Hook, deps: Dependencies) -> Modify:
    return Modify(deps, modification.concerns(hook.patch))


@dataclass(frozen=True)
class _Method:
    """The driver's method for a hook.

    :param request: Tacker's name of the argument with the operation's request.
    :param hook: what is called.
    :param stores_vnf: whether Tacker has not stored yet what it passes as ``vnf``.
    """

    request: str
    hook: Callable[[V1Hook], None]
    stores_vnf: bool = False


HOOKS: Mapping[str, _Method] = {
    "instantiate_start": _Method(
        "instantiate_vnf_request",
        _Entry(
            V1Hook.parsed,
            _instantiate_start,
            param_advice=hints.UNCHANGED_SEND_ROLLBACK,
            advice=hints.NO_VM_YET,
            followed_by="instantiate_end",
        ),
    ),
    # A package need not name instantiate_start, which would have refused.
    "instantiate_end": _Method(
        "instantiate_vnf_request",
        _Entry(
            V1Hook.parsed,
            _instantiate_end,
            param_advice=hints.SEND_ROLLBACK,
            advice=hints.VMS_EXIST,
        ),
        stores_vnf=True,
    ),
    "terminate_start": _Method("terminate_vnf_request", terminate.start),
    "terminate_end": _Method("terminate_vnf_request", terminate.end),
    # Called for scale-in only, with the ids of the stacks of the group's members
    # (``VnfLcmDriver._scale_vnf_pre``).
    "scale_start": _Method(
        "scale_vnf_request",
        _Entry(_params_of_scale_in, _scale_in, param_advice=hints.UNCHANGED_SEND_FAIL),
    ),
    # Called for scale-out only, with those of the new ones (``_scale_vnf_post``).
    "scale_end": _Method(
        "scale_vnf_request",
        _Entry(
            _params_of_scale_out,
            _scale_out,
            param_advice=hints.SEND_ROLLBACK,
            advice=_SCALE_OUT_ADVICE,
        ),
    ),
    "heal_start": _Method(
        "heal_vnf_request",
        _Entry(
            _params_of_heal,
            _heal_start,
            param_advice=hints.UNCHANGED_SEND_FAIL,
            followed_by="heal_end",
        ),
    ),
    "heal_end": _Method(
        "heal_vnf_request",
        _Entry(V1Hook.merged, _heal_end, param_advice=hints.SEND_FAIL),
    ),
    "change_external_connectivity_start": _Method(
        "change_ext_conn_request",
        _Entry(
            V1Hook.merged,
            _connectivity_start,
            param_advice=hints.UNCHANGED_SEND_FAIL,
            advice=hints.CHECK,
            followed_by="change_external_connectivity_end",
        ),
    ),
    "change_external_connectivity_end": _Method(
        "change_ext_conn_request",
        _Entry(
            V1Hook.merged,
            _connectivity_end,
            param_advice=hints.SEND_FAIL,
            advice=_CONNECTIVITY_END_ADVICE,
        ),
    ),
    "modify_information_start": _Method(
        "modify_vnf_request",
        _Entry(
            _params_of_modification,
            _modify_start,
            param_advice=hints.UNCHANGED_SEND_FAIL,
            advice=_MODIFY_START_ADVICE,
            followed_by="modify_information_end",
        ),
    ),
    "modify_information_end": _Method(
        "modify_vnf_request",
        _Entry(
            _params_of_modification,
            _modify_end,
            param_advice=hints.SEND_FAIL,
            advice=_MODIFY_END_ADVICE,
        ),
    ),
}


def _method(name: str, row: _Method) -> Callable[..., None]:
    """The method that Tacker calls for a hook."""

    def method(
        self: Any, context: Any, vnf_instance: Any, request: Any = None, **passed: Any
    ) -> None:
        vnf = passed.get("vnf") if row.stores_vnf else None
        stacks = passed.get("scale_out_id_list", ())
        request = passed.get(row.request, request)
        row.hook(V1Hook(name, context, vnf_instance, request, stacks, vnf))

    return method


# Before the driver's class: of Tacker's, which is abstract, no method may be missing.
_Methods: Any = type(
    "_Methods", (), {name: _method(name, HOOKS[name]) for name in HOOKS}
)


class MgmtDriver(_Methods, vnflcm_abstract_driver.VnflcmMgmtAbstractDriver):  # type: ignore[misc]
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
