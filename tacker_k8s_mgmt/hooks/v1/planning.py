# SPDX-License-Identifier: Apache-2.0
"""Plans of operations of Tacker's v1 API: its own choice, then the driver's own hooks.

Which members of a group leave at a scale-in, Tacker chooses when it has begun
(``OpenStack.get_scale_in_ids``); that code is asked here.
"""

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any

from tacker import manager, objects
from tacker.common import utils
from tacker.plugins.common import constants
from tacker.vnfm.infra_drivers.openstack.openstack import OpenStack

from tacker_k8s_mgmt import errors
from tacker_k8s_mgmt.hooks.planning import HEAL, SCALE, Planning, PlanningHook
from tacker_k8s_mgmt.hooks.v1 import group_sizes
from tacker_k8s_mgmt.hooks.v1.driver import MgmtDriver
from tacker_k8s_mgmt.hooks.v1.hook import V1Hook
from tacker_k8s_mgmt.hooks.v1.instance import V1Instance
from tacker_k8s_mgmt.hooks.v1.lookup import Command, SeenV1Site
from tacker_k8s_mgmt.model.plan import Plan
from tacker_k8s_mgmt.request.reader import ClusterRequest


class PlannedInstance(V1Instance):
    """The VNF instance, of which nothing is stored.

    :param body: of the request.
    """

    def __init__(self, context: Any, record: Any, body: Mapping[str, Any]) -> None:
        super().__init__(context, record)
        self._body = body

    def save(self) -> None:
        """Store nothing."""

    def checkpoint(self, point: int, vnf: Mapping[str, Any] | None = None) -> str:
        """Store nothing."""
        return ""

    def names_no_vnfc(self) -> bool:
        """Whether the heal names an empty list of VNFCs."""
        return self._body.get("vnfcInstanceId") == []

    def requested_metadata(self) -> Mapping[str, Any]:
        """``metadata`` of the request."""
        return self._body.get("metadata") or {}


class _Hook(PlanningHook, Command):
    """A call of a hook that plans.

    :param body: of the request.
    """

    def __init__(
        self, planning: Planning, body: Mapping[str, Any], name: str, *passed: Any
    ) -> None:
        super().__init__(name, *passed)
        one, self.planning = self.instance, planning
        self.instance = PlannedInstance(one.context, one.record, body)

    def site(self, request: ClusterRequest) -> SeenV1Site:
        """What is read."""
        return SeenV1Site(self, request)


class PlanningDriver(MgmtDriver):
    """The hooks of Tacker's v1 API, which plan.

    :param make: makes the call of a hook, of its name and what Tacker passes.
    """

    def __init__(self, make: Callable[..., V1Hook]) -> None:
        self._hook = make  # type: ignore[method-assign]


class V1Plans:
    """The plans of operations, by the hooks that Tacker calls for each.

    :param make: see :class:`PlanningDriver`; its hooks add to *planning*.
    """

    def __init__(
        self, planning: Planning, instance: V1Instance, make: Callable[..., V1Hook]
    ) -> None:
        self._planning, self._instance = planning, instance
        self._driver = PlanningDriver(make)

    def scale(self, sent: Any, chosen: Callable[[], Sequence[str]]) -> None:
        """Plan a scale.

        :param sent: Tacker's object of the request.
        :param chosen: asks Tacker for the ids of the stacks that leave.
        """
        if sent.type == "SCALE_IN":
            self._planning.call(lambda: self._scale_in(sent, chosen()))
            return
        self._call("scale_end", sent, scale_out_id_list=())
        step = group_sizes.step_size(self._instance, sent.aspect_id)
        self._planning.create(step * (sent.number_of_steps or 1))

    def _scale_in(self, sent: Any, ids: Sequence[str]) -> None:
        if not ids:
            raise errors.UnsupportedOperation(
                detail="Tacker announces no member of the group for this scale-in: it "
                "keeps as many of those that have not failed in Heat as the group's "
                "min_size. So it would not call the driver, and send Heat the signal "
                "all the same.",
                hint="Heal the VNFCs whose members have failed, then scale in.",
            )
        self._call("scale_start", sent, scale_out_id_list=ids)

    def heal(self, sent: Any) -> None:
        """Plan a heal, until Heat rebuilds the VMs."""
        self._call("heal_start", sent)

    def modify(self) -> None:
        """Plan a modification."""
        self._call("modify_information_start", None)
        self._call("modify_information_end", None)

    def _call(self, name: str, sent: Any, **passed: Any) -> None:
        hook, one = getattr(self._driver, name), self._instance
        self._planning.call(lambda: hook(one.context, one.record, sent, **passed))


def plan(instance: V1Instance, operation: str, body: Mapping[str, Any]) -> Plan:
    """The plan of an operation.

    :param operation: as :mod:`tacker_k8s_mgmt.hooks.planning` names it.
    :param body: of its request.
    """
    planning, context = Planning(), instance.context
    plans = V1Plans(planning, instance, partial(_Hook, planning, body))
    given = utils.convert_camelcase_to_snakecase(dict(body))
    if operation == SCALE:
        given = {"number_of_steps": 1, "additional_params": {}, **given}
        sent = objects.ScaleVnfRequest.obj_from_primitive(given, context=context)
        plans.scale(sent, lambda: announced(instance, sent))
    elif operation == HEAL:
        plans.heal(objects.HealVnfRequest(context=context, **given))
    else:
        plans.modify()
    return planning.plan


def announced(instance: V1Instance, sent: Any) -> Sequence[str]:
    """The ids of the stacks that Tacker chooses for a scale-in, by its own code.

    :raises RemoteError: Heat, or Tacker, does not say.
    """
    try:
        plugin = manager.TackerManager.get_service_plugins()[constants.VNFM]
        vnf = plugin.get_vnf(instance.context, instance.vnf_id)
        vnf["policy_name"] = sent.aspect_id
        ids, *_ = OpenStack().get_scale_in_ids(
            plugin=None,
            context=instance.context,
            vnf_dict=vnf,
            is_reverse=None,
            auth_attr=instance.vim_access(),
            # Whatever the VIM has: Tacker looks for it under another key.
            region_name=None,
            number_of_steps=sent.number_of_steps,
        )
    except Exception as error:
        # Keystone's client, Heat's and Tacker raise many kinds.
        raise errors.RemoteError(
            detail="Which members Tacker would remove cannot be told, for Heat or "
            f"Tacker does not say: {error or type(error).__name__}."
        ) from error
    return tuple(map(str, ids))
