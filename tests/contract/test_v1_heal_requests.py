# SPDX-License-Identifier: Apache-2.0
"""What Tacker's v1 API makes of ``vnfcInstanceId`` in a heal request."""

import json
import types
import uuid

import pytest

pytest.importorskip("tacker", reason="the contract is with an installed Tacker")

from tacker import objects
from tacker.api.vnflcm.v1 import controller
from tacker.common import utils

from tacker_k8s_mgmt import errors
from tacker_k8s_mgmt.hooks.v1 import database
from tacker_k8s_mgmt.hooks.v1.instance import V1Instance
from tests.contract.v1_instances import GOOD, instance, steps_of
from tests.helpers.fakes.clock import FakeClock
from tests.helpers.fakes.site import FakeSite
from tests.helpers.operations import dependencies
from tests.helpers.requests import params

objects.register_all()
VNFC = "0c9d5b8e-6a3f-4d17-9f42-5e1b7c80a2d6"
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
def test_empty_list_is_refused_before_anything_is_done(
    monkeypatch, operations, body, refused
):
    vnf = instance(GOOD)
    vnf.instantiated_vnf_info.vnfc_resource_info = []
    request, kept = received(body)
    operations(vnf.id, kept)
    # Others do not matter.
    operations(vnf.id, json.dumps(EMPTY), state="COMPLETED")
    operations(str(uuid.uuid4()), json.dumps(EMPTY))
    cluster = dependencies(params(), FakeSite(), FakeClock())

    def steps():
        return steps_of(monkeypatch, "heal_start", cluster, vnf, request)

    if not refused:
        assert steps()
        return
    with pytest.raises(errors.UnsupportedOperation, match="is an empty list") as caught:
        steps()
    assert "nothing was changed" in str(caught.value)


def test_vnf_without_our_parameters_is_left_to_tacker(monkeypatch, operations):
    vnf = instance()
    operations(vnf.id, json.dumps(EMPTY))
    request = types.SimpleNamespace(vnfc_instance_id=[])
    assert steps_of(monkeypatch, "heal_start", None, vnf, request) == []
    assert V1Instance(None, vnf).names_no_vnfc()
