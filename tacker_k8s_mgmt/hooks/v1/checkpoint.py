# SPDX-License-Identifier: Apache-2.0
"""Checkpoints of operations: stores what Tacker keeps in memory while a hook runs.

Tacker 16's v1 API writes an operation's error point, the Heat stack's id and the
scaling groups to its database only when the operation ends
(``tacker/conductor/conductor_server.py``), and our hooks may run for an hour before:

* A killed conductor leaves the operation PROCESSING, and ``cancel`` makes it
  FAILED_TEMP with error point 0. Then Tacker refuses ``retry``, and ``rollback`` keeps
  the stack.
* When ``instantiate_end`` has failed, a ``retry`` completes the operation without the
  scaling groups, and Tacker answers every later scale request with an error.
* The error point of an operation that is over stays. A heal uses that of any operation
  of the VNF instance as its own (``openstack.py``, ``heal_vnf``), and may then replace
  no VM at all.
"""

from collections.abc import Mapping
from typing import Any

from oslo_log import log as logging
from tacker import manager, objects
from tacker.objects import fields
from tacker.plugins.common import constants

from tacker_k8s_mgmt.hooks.operation_states import ENDED
from tacker_k8s_mgmt.hooks.v1 import database

LOG = logging.getLogger(__name__)

#: ``retry`` begins with the ``_start`` hook.
START_POINT = fields.ErrorPoint.VNF_CONFIG_START
#: ``retry`` updates the existing stack, and goes on.
STACK_POINT = fields.ErrorPoint.POST_VIM_CONTROL
#: ``retry`` calls the ``_end`` hook, nothing before it; ``rollback`` deletes the VMs.
END_POINT = fields.ErrorPoint.VNF_CONFIG_END

_PROCESSING = fields.LcmOccsOperationState.PROCESSING
# Without a constant in Tacker, as some in operation_states.
_ROLLING_BACK = "ROLLING_BACK"


def save(
    context: Any,
    vnf_instance: Any,
    point: int,
    vnf: Mapping[str, Any] | None = None,
) -> str:
    """Store the error point of a VNF instance's operation in progress.

    The error points of operations that are over are reset. A failure to store is logged
    and does not fail the operation.

    :param point: one of those above.
    :param vnf: what ``instantiate_end`` gets under this name; None for other hooks,
        before which Tacker stores it itself.
    :returns: the id of its operation occurrence; "" if that is not known.
    """
    problem = under_way = ""
    try:
        if vnf is not None:
            database.save(vnf_instance)
            database.ask(context, lambda own: _save_attributes(own, vnf))
        # Last: a retry relies on the rest.
        under_way = database.ask(
            context, lambda own: _save_point(own, vnf_instance.id, point)
        )
    except Exception as exc:
        # Not its text: a database's error quotes the values.
        problem = type(exc).__name__
    if problem:
        # Not above: oslo.log adds the text of the exception being handled.
        LOG.warning(
            "VNF instance %s: how far the operation is could not be stored (%s). If "
            "the conductor is killed now, `retry` will be refused",
            vnf_instance.id,
            problem,
        )
    return under_way


def clear(vnf_instance: Any) -> None:
    """Reset the error state after a retry has succeeded.

    A failed change of external connectivity sets it (``vnflcm_driver.py``,
    ``revert_to_error_task_state``), and Tacker then refuses to scale.
    """
    if vnf_instance.task_state is not None:
        vnf_instance.task_state = None
        database.save(vnf_instance)


def _save_point(context: Any, vnf_id: str, point: int) -> str:
    filters = {
        "field": "vnf_instance_id",
        "model": "VnfLcmOpOccs",
        "value": vnf_id,
        "op": "==",
    }
    occurrences = objects.VnfLcmOpOccList.get_by_filters(
        context, read_deleted="no", filters=filters
    )
    under_way = ""
    for occurrence in occurrences.objects:
        state = occurrence.operation_state
        if state in (_PROCESSING, _ROLLING_BACK):
            under_way = str(occurrence.id)
        wanted = point if state == _PROCESSING else fields.ErrorPoint.INITIAL
        if state in (_PROCESSING, *ENDED) and occurrence.error_point != wanted:
            occurrence.error_point = wanted
            occurrence.save()
    return under_way


def _save_attributes(context: Any, vnf: Mapping[str, Any]) -> None:
    plugin = manager.TackerManager.get_service_plugins()[constants.VNFM]
    with context.session.begin(nested=True):
        for key, value in vnf["attributes"].items():
            plugin._vnf_attribute_update_or_create(context, vnf["id"], key, value)
        context.session.commit()
