# SPDX-License-Identifier: Apache-2.0
"""Heals and scales that Tacker's Prometheus plugin starts, by Tacker's own code.

From the message of an Alertmanager to the hooks; only the database and the queue
between API and conductor are left out.
"""

import copy
import json
import sys
import threading
import types
from pathlib import Path

import pytest
import yaml

pytest.importorskip("tacker", reason="the contract is with an installed Tacker")

from tacker import context as tacker_context
from tacker.common import coordination
from tacker.sol_refactored import objects
from tacker.sol_refactored.api import validator
from tacker.sol_refactored.api.schemas import prometheus_plugin_schemas, vnflcm_v2
from tacker.sol_refactored.common import exceptions as sol_ex
from tacker.sol_refactored.common import (
    lcm_op_occ_utils,
    prometheus_plugin,
    vnf_instance_utils,
)
from tacker.sol_refactored.conductor import prometheus_plugin_driver

from tests.contract.v2_operations import (
    EIGHT,
    FIFTY_FIVE,
    FIVE,
    MASTER,
    heal,
    instantiate,
    no_secrets,
    referring,
    scale,
)
from tests.helpers import alerts
from tests.helpers.requests import VNF
from tests.tree import ROOT

MONITORING = ROOT / "samples" / "v2" / "monitoring"
VNFD = (
    ROOT / "samples/v2/vnfd/simple/Definitions/kubernetes_df_simple.yaml"
).read_text()
PASTE = Path(sys.prefix) / "etc" / "tacker" / "api-paste.ini"

LITERAL = (
    "ansible.password",
    "master_node.password",
    "worker_node.password",
    "external_lb_param.ssh_password",
)
BOTH = {"isAutohealEnabled": True, "isAutoscaleEnabled": True}

pytestmark = pytest.mark.usefixtures("quick_hooks")


class Plugin:
    """The plugin in Tacker's API and its part in the conductor.

    :ivar timers: the heals that are collected, by VNF instance.
    :ivar lock: held by whatever operates on the VNF instance.
    """

    def __init__(self, tacker, monkeypatch):
        self._tacker = tacker
        self.lock = threading.Lock()
        coordinator = types.SimpleNamespace(
            start=lambda: None, get_lock=lambda _: self.lock
        )
        for where, name, instead in (
            (vnf_instance_utils, "get_inst", self._instance),
            (lcm_op_occ_utils, "check_lcmocc_in_progress", lambda *_: None),
            (objects.VnfLcmOpOccV2, "create", lambda *_: None),
            (coordination, "COORDINATOR", coordinator),
        ):
            monkeypatch.setattr(where, name, instead)
        conductor = types.SimpleNamespace(start_lcm_op_internal=self._start)
        driver = prometheus_plugin_driver.PrometheusPluginDriver(conductor)
        # Longer than any test: each ends the collection when it has seen it.
        driver.expiration_time = 3600
        self._driver, self.timers = driver, driver.timer_map
        self._request = types.SimpleNamespace(
            context=tacker_context.get_admin_context()
        )

    def _instance(self, _, vnf_id):
        if vnf_id != VNF:
            raise sol_ex.VnfInstanceNotFound(inst_id=vnf_id)
        return objects.VnfInstanceV2.from_dict(copy.deepcopy(self._tacker.instance))

    def _start(self, _, lcmocc):
        assert lcmocc.isAutomaticInvocation
        self._tacker.operate(lcmocc.operation, lcmocc.operationParams.to_dict())

    def post(self, message):
        """Send a message to the receiver that its first alert is for."""
        heals = message["alerts"][0]["labels"]["function_type"] == "auto_heal"
        kind, callback = (
            (prometheus_plugin.PrometheusPluginAutoHealing, self._driver.enqueue_heal)
            if heals
            else (
                prometheus_plugin.PrometheusPluginAutoScaling,
                self._driver.trigger_scale,
            )
        )
        plugin = object.__new__(kind)
        plugin.set_callback(callback)
        # As alert() does, without dropping every error.
        plugin._alert(self._request, body=message)

    def expire(self):
        """Let the time of the collected heals pass."""
        for timer in list(self.timers.values()):
            timer.expire()

    def forget(self):
        """Start none of them."""
        for vnf_id in list(self.timers):
            self._driver.dequeue_heal(vnf_id)


@pytest.fixture
def plugin(tacker, monkeypatch):
    made = Plugin(tacker, monkeypatch)
    yield made
    made.forget()


def enable(tacker, **properties):
    """Modify the VNF instance, as an operator does."""
    body = {"vnfConfigurableProperties": properties or BOTH}
    tacker.operate("MODIFY_INFO", body)


class TestReferences:
    @pytest.fixture
    def cluster(self, tacker, tmp_path):
        instantiate(tacker, **referring(tmp_path))
        enable(tacker)
        assert tacker.instance["vnfConfigurableProperties"] == BOTH
        return tacker

    def test_alerts_for_two_vnfcs_are_one_heal(self, cluster, plugin):
        dead = ("workerNode-server-5", "workerNode-server-55")
        plugin.post(alerts.heal(VNF, *dead))
        # Alertmanager repeats itself.
        plugin.post(alerts.heal(VNF, dead[0]))
        assert list(plugin.timers) == [VNF]
        plugin.expire()
        assert cluster.site.members == [MASTER, FIVE, FIFTY_FIVE]
        workers = {worker.server_id for worker in cluster.site.workers}
        assert workers == {"server-5-new", "server-55-new"}
        assert plugin.timers == {}
        no_secrets(cluster)

    def test_alert_about_the_vm_that_was_replaced_does_nothing(self, cluster, plugin):
        heal(cluster, "workerNode-server-5", params={})
        plugin.post(alerts.heal(VNF, "workerNode-server-5"))
        assert plugin.timers == {}

    def test_alert_scales_by_one_step(self, cluster, plugin):
        plugin.post(alerts.scale(VNF))
        assert cluster.site.members == [MASTER, FIVE, FIFTY_FIVE, EIGHT]
        plugin.post(alerts.scale(VNF, "IN"))
        assert cluster.site.members == [MASTER, FIVE, FIFTY_FIVE]
        no_secrets(cluster)

    def test_alerts_while_an_operation_runs_are_lost(self, cluster, plugin):
        plugin.post(alerts.heal(VNF, "workerNode-server-5"))
        before = cluster.site
        with plugin.lock:
            with pytest.raises(sol_ex.OtherOperationInProgress):
                plugin.expire()
            with pytest.raises(sol_ex.OtherOperationInProgress):
                plugin.post(alerts.scale(VNF))
        assert plugin.timers == {}
        assert cluster.site.calls == before.calls
        # Alertmanager repeats itself.
        plugin.post(alerts.heal(VNF, "workerNode-server-5"))
        plugin.expire()
        assert cluster.site.calls != before.calls

    @pytest.mark.parametrize("change", [{"status": "resolved"}, {"labels": {}}])
    def test_what_is_no_firing_alert_for_tacker_does_nothing(
        self, cluster, plugin, change
    ):
        message = alerts.heal(VNF, "workerNode-server-5", "workerNode-server-55")
        message["alerts"][0] |= change
        if "labels" in change:
            # One alert without the labels has Tacker refuse the whole message.
            message["alerts"].reverse()
            with pytest.raises(sol_ex.SolValidationError):
                plugin.post(message)
            assert plugin.timers == {}
        else:
            message["alerts"].pop()
            plugin.post(message)
            assert plugin.timers == {}

    def test_it_is_disabled_by_the_same_request(self, cluster, plugin):
        enable(cluster, isAutohealEnabled=False)
        plugin.post(alerts.heal(VNF, "workerNode-server-5"))
        assert plugin.timers == {}

    def test_vnf_instance_of_the_v1_api_is_unknown_to_it(self, cluster, plugin):
        plugin.post(alerts.heal("e0a4b0a1-0000-4000-8000-000000000001", "worker"))
        assert plugin.timers == {}


class TestSamples:
    """What the guide prints, held against Tacker's own schema, VNFD and paths."""

    RULES = [
        rule
        for group in yaml.safe_load((MONITORING / "rules.yaml").read_text())["groups"]
        for rule in group["rules"]
    ]

    @pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule["alert"])
    def test_rule_is_taken_by_tacker(self, rule):
        labels = rule["labels"]
        validated(alerts.message([labels]))
        assert labels["vnf_instance_id"] == "VNF_INSTANCE_ID"
        heals = labels["function_type"] == "auto_heal"
        if heals:
            vdu, template = labels["vnfc_info_id"].split("-", 1)
            assert vdu in VNFD
            assert template == "{{ $labels.system_uuid }}"
            assert "group_left (system_uuid)" in rule["expr"]
        else:
            assert labels["aspect_id"] in VNFD

    def test_paths_of_the_routes_are_tackers(self):
        config = yaml.safe_load((MONITORING / "alertmanager.yaml").read_text())
        hooks = [
            hook
            for receiver in config["receivers"]
            for hook in receiver.get("webhook_configs", ())
        ]
        assert len(hooks) == 2
        for hook in hooks:
            assert hook["send_resolved"] is False
            path = hook["url"].removeprefix("http://TACKER")
            assert f"\n{path}: " in PASTE.read_text()

    @pytest.mark.parametrize("name", ["heal", "scale"])
    def test_message_to_try_it_with_is_taken(self, name):
        validated(json.loads((MONITORING / f"{name}-alert.json").read_text()))

    @pytest.mark.parametrize("name", ["enable", "disable"])
    def test_request_to_modify_is_taken(self, tacker, name):
        body = json.loads((MONITORING / f"{name}.json").read_text())
        assert set(body["vnfConfigurableProperties"]) == set(BOTH)
        schema = vnflcm_v2.VnfInfoModificationRequest_V200
        validator.SolSchemaValidator(schema).validate(body)


def validated(message):
    """As the plugin does first."""
    schema = prometheus_plugin_schemas.AlertMessage
    validator.SolSchemaValidator(schema).validate(message)


class TestLiteralSecrets:
    """Nothing is deleted, and the error names each secret and the property."""

    def test_instantiation_that_enables_it_is_refused_before_a_vm_exists(self, tacker):
        tacker.instance["vnfConfigurableProperties"] = {"isAutohealEnabled": True}
        with pytest.raises(sol_ex.MgmtDriverExecutionFailed) as caught:
            instantiate(tacker)
        detail = caught.value.detail
        assert "instantiate_start failed" in detail
        assert f"{len(LITERAL)} problem(s)" in detail
        for name in (*LITERAL, "isAutohealEnabled", "Send `rollback`"):
            assert name in detail
        assert "isAutoscaleEnabled" not in detail
        assert tacker.site.calls == []
        tacker.rollback()

    @pytest.mark.parametrize("name", BOTH)
    def test_it_cannot_be_enabled_later(self, tacker, name):
        instantiate(tacker)
        with pytest.raises(sol_ex.MgmtDriverExecutionFailed) as caught:
            enable(tacker, **{name: True})
        for word in (*LITERAL, name, "modify_information_end failed"):
            assert word in caught.value.detail
        tacker.rollback()
        assert "vnfConfigurableProperties" not in tacker.instance
        enable(tacker, **{name: False})

    def test_references_in_their_place_let_it_be_enabled(
        self, tacker, plugin, tmp_path
    ):
        instantiate(tacker)
        named = {
            structure: {
                attribute: {"not_kept": None, **value}
                for attribute, value in values.items()
                if isinstance(value, dict)
            }
            for structure, values in referring(tmp_path).items()
        }
        body = {
            "metadata": {"k8s_mgmt": {"parameters": named}},
            "vnfConfigurableProperties": BOTH,
        }
        tacker.operate("MODIFY_INFO", body)
        plugin.post(alerts.scale(VNF))
        assert tacker.site.members == [MASTER, FIVE, FIFTY_FIVE, EIGHT]
        no_secrets(tacker)

    @pytest.fixture
    def enabled(self, tacker):
        """As with a package that does not name modify_information_end."""
        instantiate(tacker)
        tacker.instance["vnfConfigurableProperties"] = BOTH
        return tacker

    def test_heal_is_refused_with_the_reason(self, enabled, plugin):
        before = enabled.site
        plugin.post(alerts.heal(VNF, "workerNode-server-5"))
        with pytest.raises(sol_ex.MgmtDriverExecutionFailed) as caught:
            plugin.expire()
        detail = caught.value.detail
        assert "heal_start failed" in detail
        for word in (*LITERAL, "set isAutohealEnabled to false", "Send `fail`"):
            assert word in detail
        assert enabled.site.calls == before.calls
        assert enabled.site.workers == before.workers

    def test_scale_is_refused_with_the_reason(self, enabled, plugin):
        before = enabled.site
        with pytest.raises(sol_ex.MgmtDriverExecutionFailed) as caught:
            plugin.post(alerts.scale(VNF))
        assert "scale_start failed" in caught.value.detail
        assert "set isAutoscaleEnabled to false" in caught.value.detail
        assert enabled.site.calls == before.calls

    def test_operators_own_requests_with_secrets_work(self, enabled):
        scale(enabled, "SCALE_OUT")
        assert EIGHT in enabled.site.members
