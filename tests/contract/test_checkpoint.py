# SPDX-License-Identifier: Apache-2.0
"""How far an operation is, in Tacker's own tables."""

import io
import logging
import types
import uuid
from datetime import datetime

import pytest

pytest.importorskip("tacker", reason="the contract is with an installed Tacker")

from oslo_config import cfg
from oslo_log import formatters, log
from oslo_utils import timeutils
from tacker import context as tacker_context
from tacker import manager, objects
from tacker.db.nfvo import nfvo_db_plugin
from tacker.db.vnfm import vnfm_db
from tacker.objects import fields
from tacker.plugins.common import constants

from tacker_k8s_mgmt.hooks.v1 import vim_registry
from tacker_k8s_mgmt.hooks.v1.instance import (
    END_POINT,
    STACK_POINT,
    START_POINT,
    V1Instance,
)

objects.register_all()

POINTS = (START_POINT, STACK_POINT, END_POINT)


@pytest.fixture
def context():
    return tacker_context.get_admin_context()


@pytest.fixture
def plugin(monkeypatch):
    plugins = {"VNFM": vnfm_db.VNFMPluginDb()}
    monkeypatch.setattr(manager.TackerManager, "get_service_plugins", lambda: plugins)


class Instance(types.SimpleNamespace):
    def __init__(self):
        super().__init__(id=str(uuid.uuid4()), saved=0)

    def save(self):
        self.saved += 1


def operation(context, instance, state, error_point=fields.ErrorPoint.INITIAL):
    now = timeutils.utcnow()
    one = objects.VnfLcmOpOcc(
        context=context,
        id=str(uuid.uuid4()),
        operation_state=state,
        state_entered_time=now,
        start_time=now,
        vnf_instance_id=instance.id,
        operation="INSTANTIATE",
        is_automatic_invocation=False,
        is_cancel_pending=False,
        error=None,
        resource_changes=None,
        changed_info=None,
        changed_ext_connectivity=None,
        error_point=error_point,
        tenant_id="tenant",
    )
    one.create()
    return one.id


def point(context, operation_id):
    return objects.VnfLcmOpOcc.get_by_id(context, operation_id).error_point


@pytest.mark.parametrize("wanted", POINTS)
def test_retry_will_go_on_from_the_point_that_was_saved(context, wanted):
    """See the conditions on ``before_error_point`` in ``vnflcm_driver``."""
    one = Instance()
    under_way = operation(context, one, fields.LcmOccsOperationState.PROCESSING)
    operation(context, one, fields.LcmOccsOperationState.COMPLETED)
    assert V1Instance(context, one).checkpoint(wanted) == under_way
    assert point(context, under_way) == wanted
    assert one.saved == 0


@pytest.mark.parametrize("state", ["FAILED_TEMP", "ROLLING_BACK"])
def test_operations_that_tacker_may_go_on_with_stay(context, state):
    one = Instance()
    failed = operation(context, one, state, error_point=END_POINT)
    found = V1Instance(context, one).checkpoint(START_POINT)
    assert point(context, failed) == END_POINT
    assert found == (failed if state == "ROLLING_BACK" else "")


def test_operations_of_other_instances_stay(context):
    other = operation(context, Instance(), fields.LcmOccsOperationState.PROCESSING)
    V1Instance(context, Instance()).checkpoint(END_POINT)
    assert point(context, other) == fields.ErrorPoint.INITIAL


@pytest.mark.parametrize("state", ["COMPLETED", "FAILED", "ROLLED_BACK"])
def test_heal_replaces_vms_whichever_operation_tacker_takes_for_it(context, state):
    """It asks for any one: ``OpenStack.heal_vnf``, ``_resource_mark_unhealthy``."""
    one = Instance()
    for _ in range(4):
        operation(context, one, state, error_point=END_POINT)
    operation(context, one, fields.LcmOccsOperationState.PROCESSING)
    V1Instance(context, one).checkpoint(START_POINT)
    taken = objects.VnfLcmOpOcc.get_by_vnf_instance_id(context, one.id)
    assert taken.error_point <= fields.ErrorPoint.PRE_VIM_CONTROL


def test_the_vnfs_on_a_vim_are_those_for_which_tacker_keeps_it(context, monkeypatch):
    ids = {name: str(uuid.uuid4()) for name in ("ours", "theirs", "free", "", "web")}
    rows = [("web", "ours"), ("", "ours"), ("elsewhere", "theirs"), ("gone", "free")]
    for name, vim in rows:
        one = {"id": ids.get(name) or str(uuid.uuid4()), "name": name}
        # Tacker keeps the rows of those that were deleted.
        one["deleted_at"] = timeutils.utcnow() if name == "gone" else datetime.min
        row = {**one, "tenant_id": "t", "vim_id": ids[vim], "status": "ACTIVE"}
        context.session.add(vnfm_db.VNF(**row))
    context.session.flush()
    plugin = object.__new__(nfvo_db_plugin.NfvoPluginDb)
    plugins = {constants.NFVO: plugin}
    monkeypatch.setattr(manager.TackerManager, "get_service_plugins", lambda: plugins)
    registry = vim_registry.VimRegistry(V1Instance(context, Instance()))
    monkeypatch.setattr(registry, "_ask", lambda question, *_: question(context))
    for vim, users in {"ours": {"web", ids[""]}, "free": set()}.items():
        monkeypatch.setattr(registry, "_find", lambda _, found=ids[vim]: found)
        assert set(registry.users("")) == users


def test_instance_and_scaling_groups_are_saved_first(context, plugin):
    one = Instance()
    under_way = operation(context, one, fields.LcmOccsOperationState.PROCESSING)
    row = dict.fromkeys(("id", "name", "vim_id", "tenant_id"), one.id)
    context.session.add(vnfm_db.VNF(status="PENDING", **row))
    context.session.flush()
    # Of this type is what Tacker's driver for Heat makes.
    vnf = {"id": one.id, "attributes": {"scale_group": b"{}", "stack_param": "{}"}}
    for _ in range(2):
        V1Instance(context, one).checkpoint(END_POINT, vnf)
    found = context.session.query(vnfm_db.VNFAttribute).filter_by(vnf_id=one.id)
    assert sorted(attribute.key for attribute in found) == sorted(vnf["attributes"])
    assert one.saved == 2
    assert point(context, under_way) == END_POINT


def test_what_cannot_be_saved_does_not_fail_the_operation(context, caplog):
    one = Instance()
    under_way = operation(context, one, fields.LcmOccsOperationState.PROCESSING)

    def refuse():
        raise RuntimeError("INSERT ... [parameters: ('pa55-word',)]")

    one.save = refuse
    V1Instance(context, one).checkpoint(END_POINT, {"id": one.id, "attributes": {}})
    assert point(context, under_way) == fields.ErrorPoint.INITIAL
    assert "could not be stored (RuntimeError)" in caplog.text
    assert "pa55-word" not in caplog.text


@pytest.fixture
def conductors_log():
    """The driver's lines as oslo.log writes them, with what it adds of itself."""
    conf, written = cfg.ConfigOpts(), io.StringIO()
    log.register_options(conf)
    conf([])
    handler = logging.StreamHandler(written)
    handler.setFormatter(formatters.ContextFormatter(config=conf))
    logger = logging.getLogger("tacker_k8s_mgmt")
    logger.addHandler(handler)
    yield written
    logger.removeHandler(handler)


@pytest.mark.parametrize("failing", ["instance", "attributes", "point"])
def test_secrets_that_an_error_quotes_are_not_logged(
    context, plugin, monkeypatch, conductors_log, failing
):
    def refuse(*_, **__):
        raise RuntimeError("INSERT ... [parameters: ('pa55-word',)]")

    one = Instance()
    if failing == "instance":
        one.save = refuse
    elif failing == "attributes":
        monkeypatch.setattr(
            vnfm_db.VNFMPluginDb, "_vnf_attribute_update_or_create", refuse
        )
    else:
        monkeypatch.setattr(objects.VnfLcmOpOccList, "get_by_filters", refuse)
    vnf = {"id": one.id, "attributes": {"stack_param": "{}"}}
    V1Instance(context, one).checkpoint(END_POINT, vnf)
    text = conductors_log.getvalue()
    assert f"VNF instance {one.id}: " in text
    assert "could not be stored (RuntimeError)" in text
    assert "pa55-word" not in text
