# SPDX-License-Identifier: Apache-2.0
"""Nodes trust private registries before a playbook configures them.

That no run is without it, the fake of playbooks asserts in all tests of operations.
"""

import pytest

from tacker_k8s_mgmt import errors
from tests.helpers.operations import grown, instantiated, scale_out, servers_of


def test_an_instantiation_prepares_all_nodes():
    site = instantiated()
    nodes = {vm.server_id for vm in (*site.control_planes, *site.workers)}
    assert site.trusting == nodes


def test_a_scale_out_prepares_the_new_workers_alone():
    site = grown(6, 7)
    site.trusting.clear()
    scale_out(site, "server-6", "server-7")
    assert site.trusting == {"server-6", "server-7"}
    assert set(servers_of(site)) > site.trusting


def test_a_node_that_cannot_be_prepared_is_named_and_no_playbook_runs(monkeypatch):
    site = grown(6)

    def refuse(nodes, members):
        if nodes:
            raise errors.RemoteError(detail=f"{nodes[0].name}: no space left")

    monkeypatch.setattr(site, "trust_registries", refuse)
    with pytest.raises(errors.StepFailed, match="worker-10-10-0-6: no space left"):
        scale_out(site, "server-6")
    assert "scale.yml" not in [run.playbook for run in site.runs]
