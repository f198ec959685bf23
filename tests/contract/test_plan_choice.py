# SPDX-License-Identifier: Apache-2.0
"""Plans with Tacker's own choice of what leaves, and the operations after them.

In the v2 API the conductor's own code makes the grant request and runs our script; in
the v1 API its infra driver chooses the members. :mod:`.test_plan` has the rest.
"""

import contextlib
import copy
import types

import pytest

pytest.importorskip("tacker", reason="the contract is with an installed Tacker")

from oslo_config import cfg
from tacker.manager import TackerManager
from tacker.sol_refactored.common import exceptions as sol_ex

from tacker_k8s_mgmt import config, errors
from tacker_k8s_mgmt.hooks.v1 import planning as v1
from tacker_k8s_mgmt.hooks.v1.instance import V1Instance
from tacker_k8s_mgmt.hooks.v2 import planning as v2
from tacker_k8s_mgmt.hooks.v2 import stack
from tacker_k8s_mgmt.hooks.v2.connections import VimEntry
from tacker_k8s_mgmt.request.reader import ATTRIBUTE
from tests.contract.heat_groups import GROUP, HOT, announced, group, named
from tests.contract.v2_operations import (
    EIGHT,
    FIFTY_FIVE,
    REPEATED,
    heal,
    instantiate,
    scale,
)


@pytest.fixture
def cluster(tacker, quick_hooks):
    instantiate(tacker)
    scale(tacker, "SCALE_OUT")
    return tacker


@pytest.fixture
def plan(cluster, monkeypatch):
    """Return a function: the plan of an operation of the v2 API."""
    config.register(cfg.CONF)
    monkeypatch.setattr(v2, "VnfLcmDriverV2", lambda: cluster.driver)
    monkeypatch.setattr(v2, "vnfd_of", lambda _: cluster._vnfd)

    def made(operation, **body):
        site, instance = cluster.site, copy.deepcopy(cluster.instance)

        def opened(hook, _params):
            site.vims = VimEntry(hook.call.instance)
            return contextlib.nullcontext(site)

        monkeypatch.setattr(v2._Hook, "site", opened)
        monkeypatch.setattr(stack, "resources_of", lambda *_: site.resources())
        return v2.plan(instance, operation, body, lambda: [REPEATED])

    return made


def scales(kind, **more):
    request = {"type": kind, "aspectId": "worker_instance", "numberOfSteps": 1}
    return {**request, "additionalParams": REPEATED, **more}


def nodes(found):
    return [(one.node, one.change) for one in found.nodes]


class TestV2:
    def test_the_newest_leaves(self, cluster, plan):
        found = plan("scale", **scales("SCALE_IN"))
        assert nodes(found) == [(EIGHT, "leaves")]
        assert found.refusal is None
        scale(cluster, "SCALE_IN")
        assert EIGHT not in cluster.site.members

    def test_a_failed_member_is_refused_by_both(self, cluster, plan):
        with cluster.world() as site:
            site.unfinished.add(site.workers[0].server_id)
        found = plan("scale", **scales("SCALE_IN"))
        assert nodes(found) == []
        with pytest.raises(sol_ex.MgmtDriverExecutionFailed) as caught:
            scale(cluster, "SCALE_IN")
        assert found.refusal.text.split(":")[0] in caught.value.detail

    def test_new_workers(self, cluster, plan):
        found = plan("scale", **scales("SCALE_OUT"))
        assert nodes(found) == [("1 new", "joins")]
        before = set(cluster.site.members)
        scale(cluster, "SCALE_OUT")
        assert len(set(cluster.site.members) - before) == 1

    def test_a_heal(self, cluster, plan):
        server = cluster.site.workers[0].server_id
        vnfc = f"workerNode-{server}"
        with cluster.world() as site:
            site.kill(server)
        found = plan("heal", vnfcInstanceId=[vnfc], additionalParams=REPEATED)
        assert nodes(found) == [(FIFTY_FIVE, "is rebuilt")]
        assert found.nodes[0].why == "no drain: it does not answer"
        heal(cluster, vnfc)
        (node,) = (n for n in cluster.site.cluster_nodes if n.name == FIFTY_FIVE)
        assert node.machine_id == f"{server}-new"

    def test_secrets_that_the_request_lacks_are_missed_by_both(self, cluster, plan):
        found = plan("scale", **scales("SCALE_IN", additionalParams={}))
        with pytest.raises(sol_ex.MgmtDriverExecutionFailed) as caught:
            scale(cluster, "SCALE_IN", {})
        assert "k8s_cluster_installation_param has" in found.refusal.text
        assert found.refusal.text[:60] in caught.value.detail

    def test_parameters_that_the_request_changes(self, cluster, plan):
        ours = REPEATED[ATTRIBUTE]
        worker = {**ours["worker_node"], "password": "an0ther-secret"}
        given = {ATTRIBUTE: {**ours, "drain": {"timeout": 9}, "worker_node": worker}}
        found = plan("scale", **scales("SCALE_IN", additionalParams=given))
        assert [(one.what, one.former, one.wanted) for one in found.differences] == [
            ("drain.timeout", None, "9"),
        ]
        assert "an0ther" not in repr(found)
        kept = copy.deepcopy(cluster.instance["metadata"]["k8s_mgmt"]["parameters"])
        scale(cluster, "SCALE_IN", given)
        # They are for the one operation.
        assert cluster.instance["metadata"]["k8s_mgmt"]["parameters"] == kept

    def test_an_aspect_that_tacker_does_not_know(self, plan):
        with pytest.raises(errors.TackerError, match="cannot be told"):
            plan("scale", **scales("SCALE_IN", aspectId="others"))


class TestV1:
    @pytest.mark.parametrize("steps", [1, 2])
    def test_the_members_are_those_that_tacker_announces(self, monkeypatch, steps):
        states = ["CREATE_COMPLETE", "CREATE_FAILED", *["CREATE_COMPLETE"] * 3]
        one = named(group(states, "UPDATE_COMPLETE", [2, 0, 1, 4, 3]))
        ids, _ = announced(monkeypatch, one, steps)
        vnf = {"instance_id": "the-stack", "attributes": {"heat_template": HOT}}
        plugin = types.SimpleNamespace(get_vnf=lambda *_: vnf)
        monkeypatch.setattr(
            TackerManager, "get_service_plugins", lambda: {"VNFM": plugin}
        )
        monkeypatch.setattr(V1Instance, "vim_access", lambda _: {})
        sent = types.SimpleNamespace(aspect_id=GROUP, number_of_steps=steps)
        instance = V1Instance(None, types.SimpleNamespace(id="vnf"))
        assert set(v1.announced(instance, sent)) == set(ids)
        assert len(ids) == steps

    def test_where_heat_does_not_answer(self, monkeypatch):
        monkeypatch.setattr(TackerManager, "get_service_plugins", dict)
        sent = types.SimpleNamespace(aspect_id=GROUP, number_of_steps=1)
        instance = V1Instance(None, types.SimpleNamespace(id="vnf"))
        with pytest.raises(errors.RemoteError, match="cannot be told"):
            v1.announced(instance, sent)
