# SPDX-License-Identifier: Apache-2.0
"""A cluster with a further role of nodes; run in a copy that has one.

:mod:`tests.unit.model.test_roles` makes the copy, of the recipe in the documentation.
"""

import json
from pathlib import Path
from typing import Any

import pytest
import yaml

from tacker_k8s_mgmt import errors
from tacker_k8s_mgmt.model.nodes import ROLES, Role
from tacker_k8s_mgmt.operations.instantiate import Instantiate
from tacker_k8s_mgmt.request.reader import ClusterRequest, RequestReader
from tacker_k8s_mgmt.tools.cli import request_input
from tacker_k8s_mgmt.tools.cli.base import UsageError
from tacker_k8s_mgmt.tools.csar import stack_preview
from tests.helpers.fakes.nodes import machine
from tests.helpers.fakes.site import FakeSite
from tests.helpers.operations import (
    FIFTY_FIVE,
    FIVE,
    MASTER,
    heal_end,
    heal_start,
    rebuild,
    run,
    scale_in,
    scale_out,
)
from tests.helpers.requests import additional_params, params

REFLECTOR = Role("route-reflector")
OLD, NEW = "n0de-secret", "another-one"
GIVEN = {"ssh_cp_name": "r_ssh", "username": "ubuntu", "password": OLD}
WANTED = params(calico_rr_node=GIVEN)
EIGHT, NINE = "route-reflector-10-10-0-8", "route-reflector-10-10-0-9"


def changed(**changes: Any) -> ClusterRequest:
    """Parameters of a later request."""
    before = additional_params(calico_rr_node=GIVEN)
    change = {"k8s_cluster_installation_param": changes}
    later = RequestReader().update(before, change)
    assert later is not None
    return later


@pytest.fixture
def site() -> FakeSite:
    site = FakeSite()
    site.workers.append(machine(REFLECTOR, 8))
    run(Instantiate, site, WANTED)
    return site


def hosts(site: FakeSite) -> Any:
    return yaml.safe_load(site.files["hosts.yaml"])["all"]


def group(site: FakeSite, name: str) -> list[str]:
    return [*hosts(site)["children"][name]["hosts"]]


def test_it_is_installed(site: FakeSite) -> None:
    assert group(site, "calico_rr") == [EIGHT]
    assert group(site, "kube_node") == [FIVE, FIFTY_FIVE]
    assert EIGHT in site.members
    variables = json.loads(site.files["vars.json"])
    assert variables["peer_with_calico_rr"] is True
    assert EIGHT not in [name for name, _ in site.routes]


def test_another_one_joins(site: FakeSite) -> None:
    site.runs.clear()
    site.workers.append(machine(REFLECTOR, 9))
    scale_out(site, "server-9", wanted=WANTED)
    assert group(site, "calico_rr") == [EIGHT, NINE]
    (joined,) = [one for one in site.runs if one.limit.split(",")[0] == NINE]
    assert joined.name == "cluster"


def test_one_is_healed(site: FakeSite) -> None:
    heal_start(site, "server-8", wanted=WANTED)
    heal_end(site, *rebuild(site, "server-8"), wanted=WANTED)
    assert group(site, "calico_rr") == [EIGHT]
    assert EIGHT in site.members
    assert "server-8-anew" in site.files["joined.json"]


def test_one_leaves_and_the_others_get_the_changed_login(site: FakeSite) -> None:
    site.workers.append(machine(REFLECTOR, 9))
    scale_out(site, "server-9", wanted=WANTED)
    scale_in(site, "server-9", wanted=changed(calico_rr_node={"password": NEW}))
    passwords = {n: h["ansible_password"] for n, h in hosts(site)["hosts"].items()}
    assert passwords == {MASTER: OLD, EIGHT: NEW, FIVE: OLD, FIFTY_FIVE: OLD}


def test_the_last_one_does_not_leave(site: FakeSite) -> None:
    calls = [*site.changes]
    with pytest.raises(errors.StepFailed, match="needs 1 VM") as caught:
        scale_in(site, "server-8", wanted=WANTED)
    assert "(calico_rr_node)" in str(caught.value)
    assert site.changes == calls


def test_none_is_too_few_for_an_installation() -> None:
    with pytest.raises(errors.StepFailed, match="would have 0"):
        run(Instantiate, FakeSite(), WANTED)
    site = FakeSite()
    site.workers.append(machine(REFLECTOR, 8))
    site.unfinished = {"server-8"}
    with pytest.raises(errors.StepFailed, match="No route-reflector VM is complete"):
        run(Instantiate, site, WANTED)


def test_the_previews_have_it(tmp_path: Path) -> None:
    seen = request_input.assumed(WANTED, 1, 2)
    assert [vm.role for vm in seen].count(REFLECTOR) == 1
    file = tmp_path / "machines.json"
    vms = [{"role": "route-reflector", "ssh_address": "192.0.2.8"}]
    file.write_text(json.dumps(vms))
    assert request_input.listed(str(file), WANTED)[0].role is REFLECTOR
    with pytest.raises(UsageError, match="no calico_rr_node"):
        request_input.listed(str(file), params())
    needed = stack_preview._NEEDED["calico_rr_node"]
    senders = {(sender, port) for sender, port, _ in needed}
    assert senders == {
        ("master_node", 10250),
        ("master_node", 179),
        ("worker_node", 179),
    }
    assert ROLES[REFLECTOR].ports[0][0] == 179
