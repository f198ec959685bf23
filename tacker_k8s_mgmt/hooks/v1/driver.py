# SPDX-License-Identifier: Apache-2.0
"""The hooks of Tacker's v1 API: their table, and the class behind the frozen shim.

What Tacker passes to each hook and when: ``tacker/vnflcm/vnflcm_driver.py``. One
driver object serves all threads of a conductor, so it has no state.

The hooks of terminate do not fit the table: the VMs go anyway. So wrong parameters only
stop what cannot be removed without them.

Tacker passes the request that modifies a VNF instance to no hook. Tacker 16 stores it
with the operation, as the text of a Python value (``VnfLcmController.update``). Where
the API shows the operation it expects JSON, and answers with an error 500
(``views/vnf_lcm.py``), so the hook corrects the text.

The Heat stack of an abandoned instantiation is deleted. Tacker 16's v1 API keeps it
after ``fail``, and after the rollback of an operation whose conductor was killed while
Heat created the VMs. A later instantiation gives its stack the same name
(``OpenStack._create_stack_with_user_data``), which Heat would refuse.
"""

import ast
import json
from collections.abc import Callable, Mapping, Sequence
from contextlib import nullcontext
from dataclasses import dataclass
from functools import partial
from typing import Any

from oslo_log import log as logging
from sqlalchemy.orm import Session
from tacker import context as tacker_context
from tacker import objects
from tacker.db import api as db_api
from tacker.db.db_sqlalchemy import api, models
from tacker.vnfm.mgmt_drivers import vnflcm_abstract_driver

from tacker_k8s_mgmt import errors
from tacker_k8s_mgmt.features.table import FEATURES
from tacker_k8s_mgmt.hooks.advice import (
    CHECK,
    NO_VM_YET,
    SEND_FAIL,
    SEND_ROLLBACK,
    SEND_ROLLBACK_ONLY,
    UNCHANGED_SEND_FAIL,
    UNCHANGED_SEND_ROLLBACK,
    V1_HEAL_OF_ALL,
    VMS_EXIST,
    Advice,
)
from tacker_k8s_mgmt.hooks.hook import SERVER_ONLY, Entry, Plan
from tacker_k8s_mgmt.hooks.v1 import (
    database,
    group_sizes,
    heal_update,
    instance,
    stack,
    vim_registry,
)
from tacker_k8s_mgmt.hooks.v1.hook import V1Hook, V1Site
from tacker_k8s_mgmt.operations import preconditions
from tacker_k8s_mgmt.operations.connectivity import ConnectivityEnd, connectivity_start
from tacker_k8s_mgmt.operations.heal import HealEnd, HealStart
from tacker_k8s_mgmt.operations.instantiate import (
    Instantiate,
    WholeHealEnd,
    WholeHealStart,
)
from tacker_k8s_mgmt.operations.modify import Modify, concerned
from tacker_k8s_mgmt.operations.scale import ScaleIn, ScaleOut
from tacker_k8s_mgmt.operations.state import ClusterState, OperationContext
from tacker_k8s_mgmt.operations.step import Step
from tacker_k8s_mgmt.operations.terminate import (
    terminate_end,
    terminate_start,
)
from tacker_k8s_mgmt.remote.timing import Backoff
from tacker_k8s_mgmt.request import reader
from tacker_k8s_mgmt.request import reader as parameters
from tacker_k8s_mgmt.request.reader import ClusterRequest
from tacker_k8s_mgmt.request.secrets import SECRET_REF

_UNDER_WAY = (
    ("operation", "==", "MODIFY_INFO"),
    ("operation_state", "==", "PROCESSING"),
)


def read(hook: V1Hook) -> Mapping[str, Any]:
    """``metadata`` of the request that modifies the VNF instance now.

    The hook gets a context of its own. After a failure Tacker changes a row in the
    session of the request's, and does not commit (``revert_update_lcm``): the row would
    be locked as long as anything refers to that context. So that session commits each
    statement by itself from now on.
    """
    database.release(hook.context)
    engine = db_api.get_engine().execution_options(isolation_level="AUTOCOMMIT")
    hook.context._session = Session(engine)
    own = tacker_context.Context.from_dict(hook.context.to_dict())
    hook.context = own
    hook.instance = objects.VnfInstance.get_by_id(own, hook.instance.id)
    rows = instance.occurrences(own, hook.instance.id, *_UNDER_WAY)
    latest = max(rows, key=lambda row: row.start_time, default=None)
    if latest is None or not latest.operation_params:
        return {}
    try:
        body = json.loads(latest.operation_params)
    except ValueError:
        body = ast.literal_eval(latest.operation_params)
        _store(own, latest.id, json.dumps(body))
    metadata = body.get("metadata")
    return metadata if isinstance(metadata, Mapping) else {}


def _store(context: Any, operation_id: str, params: str) -> None:
    with db_api.context_manager.writer.using(context):
        rows = api.model_query(context, models.VnfLcmOpOccs).filter_by(id=operation_id)
        rows.update({"operation_params": params}, synchronize_session=False)


LOG = logging.getLogger(__name__)

_FORCEFUL = "FORCEFUL"
_DIRECTORY_STAYS = (
    "Nothing was changed. Send `fail` for this operation, then a terminate request "
    "with other secrets in its additionalParams, or a FORCEFUL one, which leaves the "
    "inventory directory on the Ansible server."
)


def start(hook: V1Hook) -> None:
    """Refuse while other VNFs run on the cluster, or if a part of it would stay."""
    if not instance.is_cluster(hook.instance):
        return
    params = _refuse_leftovers(hook)
    if params:
        params = hook.with_logins(params, lambda: hook.merged(_DIRECTORY_STAYS))
    hook.begin()
    steps = terminate_start(vim_registry.VimRegistry(hook.context, hook.instance))
    secrets = params.secrets() if params else ()
    with hook.site(params) if params else nullcontext() as site:
        if params and site:
            state = ClusterState(hook.dependencies(params, site))
            steps = (*steps, *state.terminating(forced=False))
        hook.run(steps, secrets, CHECK, followed_by="terminate_end")
    _keep_vim(hook)


def end(hook: V1Hook) -> None:
    """Remove what the driver has created; also the rollback of an instantiation."""
    if not instance.is_cluster(hook.instance):
        return
    hook.begin()
    vims = vim_registry.VimRegistry(hook.context, hook.instance)
    params = _server_login_if_any(hook)
    secrets = params.secrets() if params else ()
    with hook.site(params) if params else nullcontext() as site:
        steps = terminate_end(hook.instance.id, vims, site)
        hook.run(steps, secrets, advice(params, hook.request is None))
    stack.forget_vim(hook.instance)
    instance.keep(hook.instance, None)


def _refuse_leftovers(hook: V1Hook) -> ClusterRequest | None:
    """Refuse to terminate if the directory, which holds logins, could not be deleted.

    Returns the parameters of a termination that is refused while CNFs are exposed.
    A rollback, which has no request, and the deletion of a VNF with wrong parameters go
    on: these parameters may be why nothing was created.
    """
    if getattr(hook.request, "termination_type", _FORCEFUL) == _FORCEFUL:
        return None
    try:
        find_profile = hook.find_profile(SERVER_ONLY)
        parameters.RequestReader(
            find_profile=find_profile, find_server=hook.find_server
        ).read(instance.stored(hook.instance))
    except errors.ParamError:
        return None
    return hook.merged(_DIRECTORY_STAYS, SERVER_ONLY)


def _keep_vim(hook: V1Hook) -> None:
    """Keep the VIM for ``terminate_end``, if the Ansible server's login is in Barbican.

    Wrong parameters do not matter here: they do not resolve later either.
    """
    try:
        read = hook.merged(_DIRECTORY_STAYS, SERVER_ONLY, lambda _: None)
    except errors.ParamError:
        return
    if read is not None and any(
        use.reference.kind == SECRET_REF and use.location[0] in SERVER_ONLY
        for use in read.references
    ):
        stack.keep_vim(hook.instance)


def _server_login_if_any(hook: V1Hook) -> ClusterRequest | None:
    """The parameters with the Ansible server's login, or None without it.

    They were refused before anything was created, or an older release accepted them;
    what does not depend on them must still be removed.
    """
    try:
        return hook.merged(_DIRECTORY_STAYS, SERVER_ONLY)
    except errors.ParamError as error:
        LOG.warning(
            "VNF instance %s: an inventory directory, if there is any, stays on the "
            "Ansible server, since its place or the login is not known: %s",
            hook.instance.id,
            "; ".join(error.problems),
        )
        return None


def advice(params: ClusterRequest | None, is_rollback: bool) -> Advice:
    """What to send when ``terminate_end`` has failed: `fail` would leave the rest.

    :param is_rollback: of an instantiation.
    """
    verb = "rollback" if is_rollback else "retry"
    directory = (
        f" and the directory {params.ansible.directory} on {params.ansible.host}"
        if params
        else ""
    )
    text = (
        f"`{verb}` goes on from here. Do not send `fail`: Tacker would not call the "
        f"driver again, and the VIM{directory} would stay."
    )
    return Advice(text, refused=text)


_LIMIT = 600.0  # seconds for Heat to delete it
_FAILED = "DELETE_FAILED"


def step(site: V1Site) -> Step:
    """Delete the stack with the name of this VNF instance, which has none yet.

    :param site: on its Ansible server, a playbook may still run for the stack's VMs.
    """
    instance_id = site.instance.id
    name = f"vnflcm_{instance_id}"

    def ask(question: Any) -> Any:
        try:
            return question(stack.heat_of(site.context, site.instance))
        except Exception as error:
            # The client, its session and the renewal of tokens raise many kinds.
            raise errors.RemoteError(
                detail=f"Heat could not be asked for the stack {name}: "
                f"{error or type(error).__name__}.",
                hint="Check that Heat answers with the VIM's credentials.",
            ) from error

    def former() -> Any:
        return ask(lambda client: client.find_stack(name=name))

    def delete() -> None:
        if site.workdir.owner() == instance_id:
            # The operation that holds the lock still works on these VMs.
            site.lock()
            site.playbooks.stop()
        left = former()
        if left is None:
            return
        ask(lambda client: client.delete(left.id))
        waiting = Backoff(_LIMIT)
        while (left := former()) is not None:
            if left.stack_status == _FAILED or waiting.spent():
                raise errors.RemoteError(
                    detail=f"Heat did not delete the stack {name}, which an "
                    f"earlier instantiation left: it is {left.stack_status}.",
                    hint="Look why with `openstack stack failures list --long`, and "
                    "delete it with `openstack stack delete`.",
                )
            waiting.pause()

    return Step(
        "delete-abandoned-stack",
        "delete the stack of an abandoned instantiation",
        delete,
        probe=lambda: former() is None,
    )


TYPE = "mgmt-drivers-kubespray"
_Entry = Entry[V1Hook, V1Site]
_SCALE_OUT_ADVICE = Advice(
    "Send `fail` for this operation: the new VMs stay, and the next scale-out or heal "
    "joins them.",
    refused=SEND_ROLLBACK_ONLY,
)
_CONNECTIVITY_END_ADVICE = Advice(
    "`retry` goes on from here; after `fail`, the same request sent again does."
)
# Tacker has neither a retry nor a rollback of it.
_MODIFY_START_ADVICE = Advice(
    "Send `fail` for this operation; when that is mended, or with a corrected request, "
    "modify the VNF instance again."
)
_MODIFY_END_ADVICE = Advice(
    "Tacker has stored what the request wants. Send `fail` for this operation; the "
    "same request sent again goes on, and one with the former values takes it back."
)


def _instantiate_start(hook: V1Hook, deps: OperationContext, site: V1Site) -> Plan:
    after = partial(instance.save, hook.context, hook.instance, instance.STACK_POINT)
    former = Step(
        "remove-abandoned-vim",
        "remove the VIM of an abandoned instantiation",
        site.vims.remove,
        probe=lambda: not site.vims.registered() and not site.vims.of_tenants(),
    )
    check = preconditions.step(deps, partial(_names, hook, site))
    # Refused while VNFs use that VIM, before their cluster is deleted.
    return Plan((check, former, step(site)), after=after)


def _names(hook: V1Hook, site: V1Site) -> Sequence[str]:
    """Names that the stack will not have; without user data Tacker makes its own."""
    if not reader.path(hook.request.additional_params):
        return ()
    return site.base_hot_findings(hook.request.flavour_id)


def _instantiate_end(hook: V1Hook, deps: OperationContext, site: V1Site) -> Plan:
    return Plan.of(Instantiate(deps))


def _params_of_scale_in(hook: V1Hook, advice: str) -> ClusterRequest | None:
    return _for_workers(hook, hook.merged(advice))


def _params_of_scale_out(hook: V1Hook, advice: str) -> ClusterRequest | None:
    # Tacker ends a retry of a scale-out without calling the hook.
    return _for_workers(hook, hook.merged(advice, retried=False))


def _for_workers(hook: V1Hook, params: ClusterRequest | None) -> ClusterRequest | None:
    if params is not None:
        instance.refuse_control_planes(params, hook.request)
    return params


def _scale_in(hook: V1Hook, deps: OperationContext, site: V1Site) -> Plan:
    return Plan.of(ScaleIn(deps, stacks=hook.stacks))


def _scale_out(hook: V1Hook, deps: OperationContext, site: V1Site) -> Plan:
    work = ScaleOut(deps, stacks=hook.stacks)

    def advice(error: Exception) -> str:
        aspect, before = hook.request.aspect_id, work.workers_before()
        return group_sizes.advice_after_scale_out(
            hook.context, hook.instance, aspect, before
        )

    follow = partial(group_sizes.follow_scale_out, site)
    return Plan.of(work, advice=advice, after=follow)


def _params_of_heal(hook: V1Hook, advice: str) -> ClusterRequest | None:
    params = hook.merged(advice)
    if params is not None and not hook.request.vnfc_instance_id:
        instance.refuse_empty_heal(hook.context, hook.instance)
    return params


def _heal_start(hook: V1Hook, deps: OperationContext, site: V1Site) -> Plan:
    if not hook.request.vnfc_instance_id:
        listed = instance.vnfcs(hook.instance).values()
        return Plan.of(WholeHealStart(deps, listed=listed))
    work = HealStart(deps, servers=instance.servers(hook.instance, hook.request))
    same = heal_update.step(site, hook.request)
    return Plan((same, group_sizes.scale_level_step(site), *work.steps()), work.left)


def _heal_end(hook: V1Hook, deps: OperationContext, site: V1Site) -> Plan:
    if not hook.request.vnfc_instance_id:
        return Plan.of(WholeHealEnd(deps), advice=V1_HEAL_OF_ALL)
    servers = instance.servers(hook.instance, hook.request)
    return Plan.of(HealEnd(deps, servers=servers))


def _connectivity_start(hook: V1Hook, deps: OperationContext, site: V1Site) -> Plan:
    points = instance.attachments(hook.request)
    return Plan((*connectivity_start(deps, points), group_sizes.group_size_step(site)))


def _connectivity_end(hook: V1Hook, deps: OperationContext, site: V1Site) -> Plan:
    work = ConnectivityEnd(deps, points=instance.attachments(hook.request))
    return Plan(work.steps(), after=partial(instance.clear, hook.instance))


def _params_of_modification(hook: V1Hook, advice: str) -> ClusterRequest | None:
    if not instance.is_cluster(hook.instance):
        return None
    hook.patch = read(hook)
    if not concerned(FEATURES, hook.patch):
        return None
    return hook.merged(advice, retried=False)


def _modify_start(hook: V1Hook, deps: OperationContext, site: V1Site) -> Plan:
    return Plan(_modify(hook, deps).start_steps())


def _modify_end(hook: V1Hook, deps: OperationContext, site: V1Site) -> Plan:
    return Plan.of(_modify(hook, deps))


def _modify(hook: V1Hook, deps: OperationContext) -> Modify:
    return Modify(deps, hook.patch)


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
            param_advice=UNCHANGED_SEND_ROLLBACK,
            advice=NO_VM_YET,
            followed_by="instantiate_end",
        ),
    ),
    # A package need not name instantiate_start, which would have refused.
    "instantiate_end": _Method(
        "instantiate_vnf_request",
        _Entry(
            V1Hook.parsed,
            _instantiate_end,
            param_advice=SEND_ROLLBACK,
            advice=VMS_EXIST,
        ),
        stores_vnf=True,
    ),
    "terminate_start": _Method("terminate_vnf_request", start),
    "terminate_end": _Method("terminate_vnf_request", end),
    # Called for scale-in only, with the ids of the stacks of the group's members
    # (``VnfLcmDriver._scale_vnf_pre``).
    "scale_start": _Method(
        "scale_vnf_request",
        _Entry(_params_of_scale_in, _scale_in, param_advice=UNCHANGED_SEND_FAIL),
    ),
    # Called for scale-out only, with those of the new ones (``_scale_vnf_post``).
    "scale_end": _Method(
        "scale_vnf_request",
        _Entry(
            _params_of_scale_out,
            _scale_out,
            param_advice=SEND_ROLLBACK,
            advice=_SCALE_OUT_ADVICE,
        ),
    ),
    "heal_start": _Method(
        "heal_vnf_request",
        _Entry(
            _params_of_heal,
            _heal_start,
            param_advice=UNCHANGED_SEND_FAIL,
            followed_by="heal_end",
        ),
    ),
    "heal_end": _Method(
        "heal_vnf_request",
        _Entry(V1Hook.merged, _heal_end, param_advice=SEND_FAIL),
    ),
    "change_external_connectivity_start": _Method(
        "change_ext_conn_request",
        _Entry(
            V1Hook.merged,
            _connectivity_start,
            param_advice=UNCHANGED_SEND_FAIL,
            advice=CHECK,
            followed_by="change_external_connectivity_end",
        ),
    ),
    "change_external_connectivity_end": _Method(
        "change_ext_conn_request",
        _Entry(
            V1Hook.merged,
            _connectivity_end,
            param_advice=SEND_FAIL,
            advice=_CONNECTIVITY_END_ADVICE,
        ),
    ),
    "modify_information_start": _Method(
        "modify_vnf_request",
        _Entry(
            _params_of_modification,
            _modify_start,
            param_advice=UNCHANGED_SEND_FAIL,
            advice=_MODIFY_START_ADVICE,
            followed_by="modify_information_end",
        ),
    ),
    "modify_information_end": _Method(
        "modify_vnf_request",
        _Entry(
            _params_of_modification,
            _modify_end,
            param_advice=SEND_FAIL,
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
