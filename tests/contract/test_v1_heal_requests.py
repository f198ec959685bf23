# SPDX-License-Identifier: Apache-2.0
"""What Tacker's v1 API makes of ``vnfcInstanceId`` in a heal request."""

import json
import types
import uuid
from typing import Any

import pytest

pytest.importorskip("tacker", reason="the contract is with an installed Tacker")

from tacker import context as tacker_context
from tacker import objects
from tacker.api.vnflcm.v1 import controller
from tacker.common import utils

from tacker_k8s_mgmt import errors
from tacker_k8s_mgmt.hooks.v1 import database, driver
from tacker_k8s_mgmt.hooks.v1.instance import refuse_empty_heal
from tests.contract.v1_instances import GOOD, instance

objects.register_all()
VNFC = str(uuid.uuid4())
LISTED = [objects.VnfcResourceInfo(id=VNFC, vdu_id="worker")]


def received(body):
    """The request that Tacker passes to the hooks, and what it keeps of the body."""
    kept = []
    one = types.SimpleNamespace(
        id="vnf",
        instantiated_vnf_info=types.SimpleNamespace(vnfc_resource_info=LISTED),
        save=lambda: None,
    )
    sent = []

    def notify(*words, **_):
        kept.append(json.dumps(words[4]))
        return "occ"

    api = types.SimpleNamespace(
        _notification_process=notify,
        _get_vnf_lcm_op_occs_href=lambda _: "",
        rpc_api=types.SimpleNamespace(heal=lambda *a: sent.append(a[3])),
    )
    vnf = {"before_error_point": 0, "status": "ACTIVE"}
    heal = controller.VnfLcmController._heal.__wrapped__
    heal(api, None, one, vnf, body)
    return sent[0], kept[0]


@pytest.fixture
def operations(monkeypatch):
    """The operations of VNF instances in Tacker's database."""
    rows = []

    def found(context, read_deleted, filters):
        conditions = filters["and"]
        return [
            row
            for row in rows
            if all(getattr(row, one["field"]) == one["value"] for one in conditions)
        ]

    listed = types.SimpleNamespace(get_by_filters=found)
    monkeypatch.setattr(objects, "VnfLcmOpOccList", listed)
    monkeypatch.setattr(database, "ask", lambda context, question: question(context))

    def add(vnf_id, params, operation="HEAL", state="PROCESSING"):
        row = types.SimpleNamespace(
            vnf_instance_id=vnf_id,
            operation=operation,
            operation_state=state,
            operation_params=params,
        )
        rows.append(row)

    return add


EMPTY, ALL, ONE = {"vnfcInstanceId": []}, {"cause": "test"}, {"vnfcInstanceId": [VNFC]}


def test_tacker_does_not_tell_an_empty_list_from_none():
    assert received(EMPTY)[0].vnfc_instance_id == []
    assert received(ALL)[0].vnfc_instance_id == []
    assert received(ONE)[0].vnfc_instance_id == [VNFC]
    assert utils.convert_camelcase_to_snakecase(EMPTY) == {"vnfc_instance_id": []}


@pytest.mark.parametrize(
    ("body", "refused"), [(EMPTY, True), (ALL, False), (ONE, False)]
)
def test_empty_list_is_refused_before_anything_is_done(operations, body, refused):
    vnf = instance(GOOD)
    request, kept = received(body)
    operations(vnf.id, kept)
    # Others do not matter.
    operations(vnf.id, json.dumps(EMPTY), state="COMPLETED")
    operations(str(uuid.uuid4()), json.dumps(EMPTY))
    context = tacker_context.get_admin_context()
    hook: Any = types.SimpleNamespace(
        context=context, instance=vnf, request=request, merged=lambda _: "params"
    )
    if not refused:
        assert driver._params_of_heal(hook, "") == "params"
        return
    with pytest.raises(errors.UnsupportedOperation, match="is an empty list") as caught:
        driver._params_of_heal(hook, "")
    assert "nothing was changed" in str(caught.value)


def test_vnf_without_our_parameters_is_left_to_tacker(operations):
    vnf = instance()
    operations(vnf.id, json.dumps(EMPTY))
    requests_of = types.SimpleNamespace(vnfc_instance_id=[])
    hook: Any = types.SimpleNamespace(
        context=None, instance=vnf, request=requests_of, merged=lambda _: None
    )
    assert driver._params_of_heal(hook, "") is None
    with pytest.raises(errors.UnsupportedOperation):
        refuse_empty_heal(None, vnf)
