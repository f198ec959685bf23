# SPDX-License-Identifier: Apache-2.0
"""What Tacker's heal would change of the VMs that its request does not name.

Tacker's v1 API heals by an update of the stack with the templates of the VNF package
that the instance has now, and with that VNFD's flavours and images for the VDUs of the
healed VNFCs (``OpenStack.heal_vnf``). After a modification to another package Heat so
rebuilds, or resizes, every VM of such a VDU, and no hook has drained the others.

It heals in a stack that is complete only, and afterwards looks for each VNFC in the
stack that it was in (``OpenStack.post_heal_vnf``).
"""

import json
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any
from uuid import UUID

from oslo_log import log as logging
from tacker.manager import TackerManager
from tacker.vnflcm import utils as vnflcm_utils
from tacker.vnfm.infra_drivers.openstack.openstack import OpenStack

from tacker_k8s_mgmt import errors
from tacker_k8s_mgmt.hooks.v1 import database, stack
from tacker_k8s_mgmt.hooks.v1.instance import V1Instance, V1Request
from tacker_k8s_mgmt.model.yaml_text import parse_yaml
from tacker_k8s_mgmt.operations.step import Step
from tacker_k8s_mgmt.topology.scaling_groups import UNHEALTHY
from tacker_k8s_mgmt.topology.stack_resources import StackResource

LOG = logging.getLogger(__name__)

_SERVER = "OS::Nova::Server"
_HEALABLE = ("CREATE_COMPLETE", "UPDATE_COMPLETE")


def step(site: Any, request: V1Request) -> Step:
    """Refuse a heal that Tacker could not end, or with which other VMs would change.

    :param site: has :meth:`changes_of_heal`.
    """

    def act() -> None:
        changed: Mapping[str, Sequence[str]] = site.changes_of_heal(request)
        if not changed:
            return
        listed = "; ".join(f"{vdu}: {', '.join(changed[vdu])}" for vdu in changed)
        raise errors.UnsupportedOperation(
            detail="Tacker's heal would have Heat update the stack with what the VNF "
            "package has now, which changes all VMs of a VDU, not only those of the "
            f"request: {listed}. No VM and no node was touched.",
            hint="Modify the VNF instance back to the package of which its VMs were "
            "built (vnfPkgId), then heal; or heal all VNFCs of these VDUs in one "
            "request; or heal without vnfcInstanceId, which builds the whole cluster "
            "again.",
        )

    name = "check that the heal changes no other VM"
    return Step("check-heal-changes", name, act, reads=True)


def refuse_hopeless(
    instance: V1Instance,
    status: str,
    resources: Sequence[StackResource],
    request: V1Request,
) -> None:
    """Refuse a heal that Tacker could not end.

    :param status: of the VNF instance's stack.
    :param resources: of it and of all stacks nested in it.
    :raises UnsupportedOperation: it is one.
    """
    top = instance.stack_id
    if status not in _HEALABLE:
        raise errors.UnsupportedOperation(
            detail=f"The stack {top} is {status} in Heat. Tacker heals VNFCs only in "
            f"one that is {' or '.join(_HEALABLE)}. No VM and no node was touched.",
            hint="An update of the stack completes it, once what `openstack stack "
            f"failures list --long {top}` shows is fixed: `openstack stack update "
            f"--existing --wait {top}`. It also builds again, without a drain, what is "
            f"{UNHEALTHY}; `openstack stack resource mark unhealthy --reset` before it "
            "keeps what is healthy.",
        )
    present = {top, *(one.nested_stack_id for one in resources)}
    for vnfc, own in instance.stacks_of_vnfcs().items():
        if vnfc not in request.vnfcs or own in present:
            continue
        raise errors.UnsupportedOperation(
            detail=f"Heat no longer has the stack {own}, in which Tacker looks for the "
            f"VNFC {vnfc} after its heal: Heat has built all of it again at another "
            "time. No VM and no node was touched.",
            hint="Heal without vnfcInstanceId, which builds the whole cluster again. Or"
            " drain the node, have Heat build the VM again with `openstack stack "
            "resource mark unhealthy` and `openstack stack update --existing --wait "
            f"{top}`, and let the next scale-out or heal join it.",
        )


def changes(
    instance: V1Instance,
    request: V1Request,
    resources: Sequence[StackResource],
    client: stack.Heat,
) -> dict[str, list[str]]:
    """By VDU with VMs that are not healed, what an update would change of all of them.

    :param resources: of the VNF instance's stack and of all stacks nested in it.
    :raises UnsupportedOperation: Tacker could not end the heal.
    :raises RemoteError: Heat did not answer as it should.
    :raises TackerError: Tacker cannot make the update.
    """
    others, stack_id = instance.vdus(without=request.vnfcs), instance.stack_id
    with _asking(stack_id):
        top = client.stacks.get(stack_id)
        # Heat redirects a request that has one of them alone.
        identity = f"{top.stack_name}/{stack_id}"
    refuse_hopeless(instance, str(top.stack_status), resources, request)
    try:
        parameters, templates = database.ask(
            instance.context, lambda own: _update(own, instance, request)
        )
    except Exception as error:
        # Its own code, the package and the user data raise many kinds.
        raise errors.TackerError(
            detail="What Tacker's heal would have Heat change cannot be found out: "
            f"{error or type(error).__name__}."
        ) from error
    with _asking(stack_id):
        files = client.stacks.files(identity) or {}
        nested = [parse_yaml(text) for text in files.values()]
        template = client.stacks.template(identity)
    found: dict[str, list[str]] = {}
    for vdu, text in (
        *_parameters(_values(top.parameters), _values(parameters)),
        *_servers([template, *nested], templates),
    ):
        if vdu in others and text not in found.setdefault(vdu, []):
            found[vdu].append(text)
    return {vdu: found[vdu] for vdu in sorted(found) if found[vdu]}


@contextmanager
def _asking(stack_id: str) -> Iterator[None]:
    try:
        yield
    except Exception as error:
        # Heat's client, its session and the renewal of tokens raise many kinds.
        raise errors.RemoteError(
            detail=f"Heat could not be asked for the stack {stack_id}: "
            f"{error or type(error).__name__}.",
            hint="Check that Heat answers with the VIM's credentials.",
        ) from error


def _update(
    context: Any, instance: V1Instance, request: V1Request
) -> tuple[Mapping[str, Any], list[Mapping[str, Any]]]:
    """The parameters and the templates of the update, by Tacker's own code."""
    info, heal = instance.info, request.sent
    plugin = TackerManager.get_service_plugins()["VNFM"]
    vnf = plugin.get_vnf(context, instance.vnf_id)
    sent = vnflcm_utils.get_stack_param(context, vnf, heal, info)
    if instance.parameters is not None:
        # It reads nothing of the driver object.
        driver = object.__new__(OpenStack)
        given = (info, vnf, instance.record, heal, sent, instance.parameters)
        sent = driver._stack_param_update(context, *given, request_type="heal")
    top, nested = vnflcm_utils.get_base_nest_hot_dict(
        context, instance.flavour, vnf["vnfd_id"]
    )
    return sent, [one for one in (top, *nested.values()) if one]


def _values(parameters: Mapping[str, Any]) -> Mapping[str, Mapping[str, Any]]:
    """The values of the VDUs in a stack's parameters; Heat has them as a text."""
    nfv = parameters.get("nfv") or {}
    if isinstance(nfv, str):
        nfv = json.loads(nfv)
    values: Mapping[str, Mapping[str, Any]] = nfv.get("VDU") or {}
    return values


def _parameters(
    present: Mapping[str, Mapping[str, Any]], sent: Mapping[str, Mapping[str, Any]]
) -> Iterator[tuple[str, str]]:
    """VDU and difference of each value that the update changes."""
    for vdu, values in sent.items():
        for name, new in values.items():
            old = present.get(vdu, {}).get(name)
            if old is None or str(old) == str(new):
                continue
            if _is_id(old) != _is_id(new):
                # An orchestrator may have given the id of what the VNFD names.
                LOG.warning("%s of %s is %s in Heat, %s in Tacker", name, vdu, old, new)
                continue
            yield vdu, f"{name} is {old} in Heat and {new} in the package"


def _servers(
    present: list[Mapping[str, Any]], sent: list[Mapping[str, Any]]
) -> Iterator[tuple[str, str]]:
    """VDU and difference of each server that the templates have otherwise."""
    before: dict[str, list[str]] = {}
    for template in present:
        for name, text in _of_servers(template):
            before.setdefault(name, []).append(text)
    for template in sent:
        for name, text in _of_servers(template):
            if name in before and text not in before[name]:
                yield name, "its server in the Base HOT is not as in Heat's template"


def _of_servers(template: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    for name, one in (template.get("resources") or {}).items():
        if one.get("type") == _SERVER:
            yield name, json.dumps(one, sort_keys=True, default=str)


def _is_id(value: Any) -> bool:
    try:
        UUID(str(value))
    except ValueError:
        return False
    return True
