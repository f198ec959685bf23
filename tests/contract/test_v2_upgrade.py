# SPDX-License-Identifier: Apache-2.0
"""The hooks of "change current VNF package" with what Tacker's v2 API passes."""

import copy
import json
import zipfile

import pytest

pytest.importorskip("tacker", reason="the contract is with an installed Tacker")

from tacker_k8s_mgmt import errors
from tacker_k8s_mgmt.hooks.planning import UPGRADE, Planning, PlanningHook
from tacker_k8s_mgmt.hooks.v2 import driver
from tacker_k8s_mgmt.hooks.v2 import hook as context
from tacker_k8s_mgmt.hooks.v2.call import HookCall
from tacker_k8s_mgmt.hooks.v2.hook import read
from tacker_k8s_mgmt.hooks.v2.planning import call_hooks
from tacker_k8s_mgmt.request import reader as parameters
from tacker_k8s_mgmt.tools.csar import parts
from tacker_k8s_mgmt.tools.csar.build import build
from tacker_k8s_mgmt.tools.csar.tacker_api import V2
from tests.contract import v2_world
from tests.helpers import upgrades
from tests.helpers.requests import VNF
from tests.helpers.upgrades import NEW, OLD


def start(hook):
    driver.V2Driver(hook).change_current_package_start()


def end(hook):
    driver.V2Driver(hook).change_current_package_end()


def rollback_start(hook):
    driver.V2Driver(hook).change_current_package_rollback_start()


def rollback_end(hook):
    driver.V2Driver(hook).change_current_package_rollback_end()


IMAGE = "ubuntu-24.04-server-cloudimg-amd64"
SAMPLE = parts.samples(V2) / "requests" / "change-vnfpkg.json"
#: A later request repeats what is not kept.
REPEATED = upgrades.stored()["k8s_cluster_installation_param"]


class Site(upgrades.UpgradingSite):
    """A fake site that is used as the hooks use the real one."""

    def __enter__(self):
        return self

    def __exit__(self, *_):
        pass


@pytest.fixture(scope="module")
def package(tmp_path_factory):
    root = tmp_path_factory.mktemp("package")
    built = build("simple", root / "simple.zip", api=V2).path
    with zipfile.ZipFile(built) as opened:
        opened.extractall(root / "csar")
    return root / "csar"


@pytest.fixture
def site():
    return Site()


@pytest.fixture
def made(package, site, tmp_path, monkeypatch):
    """Makes a hook of a request that asks for these parameters; None for no ours."""
    config = tmp_path / "tacker.conf"
    config.write_text(f"[k8s_mgmt]\nstate_path = {tmp_path}/state\n")
    monkeypatch.setenv("TACKER_K8S_MGMT_CONFIG", str(config))
    monkeypatch.setattr(context, "V2Site", lambda *_: site)
    kept = parameters.without_secrets(upgrades.stored())
    vnfcs = [
        {
            "id": f"{vdu}-1",
            "vduId": vdu,
            "computeResource": {"resourceId": f"{vdu}-server"},
            "metadata": {f"image-{vdu}": IMAGE},
        }
        for vdu in ("masterNode", "workerNode", "externalLB")
    ]
    state = {"version": 1, "parameters": kept["k8s_cluster_installation_param"]}
    instance = {
        "id": VNF,
        "vimConnectionInfo": {"vim1": v2_world.VIM},
        "instantiatedVnfInfo": {"flavourId": "simple", "vnfcResourceInfo": vnfcs},
        "metadata": {"k8s_mgmt": state},
    }

    def make(name, ours=None, **more):
        request = json.loads(SAMPLE.read_text())
        request["additionalParams"].update(more)
        if ours is not None:
            request["additionalParams"]["k8s_cluster_installation_param"] = ours
        call = HookCall(
            operation=f"change_current_package_{name}",
            request=request,
            instance=copy.deepcopy(instance),
            grant_request={},
            package=str(package),
        )
        return context.V2Hook(call, read())

    return make


def asked(**changes):
    cluster = {"kubernetes_version": NEW}
    return {**REPEATED, "cluster": cluster, **changes}


def test_the_hooks_check_upgrade_and_keep_what_later_operations_need(made, site):
    checking = made("start", asked())
    start(checking)
    assert site.versions == {OLD}
    ansible = {**REPEATED["ansible"], "kubespray_root_path": "/opt/newer"}
    ending = made("end", asked(ansible=ansible))
    end(ending)
    assert site.versions == {NEW}
    kept = ending.call.stored["k8s_cluster_installation_param"]
    assert kept["cluster"] == {"kubernetes_version": NEW}
    assert kept["ansible"]["kubespray_root_path"] == "/opt/newer"
    assert kept["ansible"]["password"] == {"not_kept": True}
    assert (
        kept["worker_node"] == checking.call.stored[parameters.ATTRIBUTE]["worker_node"]
    )


@pytest.mark.parametrize("ours", [None, REPEATED])
def test_without_a_version_that_is_new_the_cluster_stays(made, site, ours):
    hook = made("end", ours)
    start(made("start", ours))
    end(hook)
    assert site.runs == []
    assert hook.call.stored["k8s_cluster_installation_param"]["cluster"] == {
        "kubernetes_version": OLD
    }


def test_a_version_that_may_not_follow_is_refused_before_anything_moves(made, site):
    wanted = asked(cluster={"kubernetes_version": "1.36.0"})
    with pytest.raises(errors.StepFailed, match="more than one minor release"):
        start(made("start", wanted))
    assert site.changes == []


@pytest.mark.parametrize(
    ("more", "reason"),
    [
        ({"vdu_params": [{"vdu_id": "workerNode"}]}, "vdu_params must be []"),
        ({"lcm-operation-user-data": ""}, "must have lcm-operation-user-data as"),
    ],
)
def test_what_would_touch_vms_is_refused(made, more, reason):
    with pytest.raises(errors.UnsupportedOperation) as caught:
        start(made("start", asked(), **more))
    assert reason in str(caught.value)


@pytest.mark.parametrize(
    ("image", "refused"),
    [(IMAGE, False), ("debian", True), ("0b8dd3f5-2d0e-4c52-9d0a-6f6c6a3b1e11", False)],
)
def test_a_package_with_another_image_is_refused(made, image, refused):
    hook = made("start")
    worker = hook.call.instance["instantiatedVnfInfo"]["vnfcResourceInfo"][1]
    worker["metadata"] = {"image-workerNode": image}
    if not refused:
        start(hook)
        return
    with pytest.raises(errors.UnsupportedOperation, match="for workerNode, whose VMs"):
        start(hook)


def test_a_rollback_is_possible_until_the_first_node_has_moved(made, site):
    rollback_start(made("rollback_start", asked()))
    site.faults = {"upgrade control-plane-10-10-0-4"}
    with pytest.raises(errors.StepFailed):
        end(made("end", asked()))
    with pytest.raises(errors.UnsupportedOperation, match="cannot go back"):
        rollback_start(made("rollback_start", asked()))


def test_a_rollback_keeps_the_scale_levels(made):
    """Tacker recreates the information about the VNF, without them."""
    before = made("rollback_start")
    levels = [{"aspectId": "worker_instance", "scaleLevel": 1}]
    before.call.instance["instantiatedVnfInfo"]["scaleStatus"] = levels
    rollback_start(before)
    after = made("rollback_end")
    after.call.between.update(before.call.between)
    rollback_end(after)
    assert after.call.instance["instantiatedVnfInfo"]["scaleStatus"] == levels
    assert after.call.between == {}


class TestPlan:
    """The plan of an upgrade, by the hooks, and the upgrade after it."""

    def plan(self, made, site, ours):
        planning, copied = Planning(), copy.deepcopy(site)

        class Planned(PlanningHook, context.V2Hook):
            def site(self, _):
                return copied

        def make(call):
            hook = Planned(call, read())
            hook.planning = planning
            return hook

        call = made("start", ours).call
        call_hooks(planning, UPGRADE, call.instance, call, make)
        assert copied.versions == site.versions
        return planning.plan

    def test_nodes_versions_and_parameters(self, made, site):
        found = self.plan(made, site, asked())
        assert [(one.what, one.former, one.wanted) for one in found.differences] == [
            ("cluster.kubernetes_version", OLD, NEW)
        ]
        assert {one.change for one in found.nodes} == {"is upgraded"}
        start(made("start", asked()))
        end(made("end", asked()))
        order = [call.split()[1] for call in site.calls if call[:8] == "upgrade "]
        assert [one.node for one in found.nodes] == order

    def test_a_package_alone_changes_nothing_of_the_cluster(self, made, site):
        assert self.plan(made, site, None).steps == ()

    def test_another_image_is_refused_by_both(self, made, site):
        hook = made("start", asked())
        (one, *_) = hook.call.instance["instantiatedVnfInfo"]["vnfcResourceInfo"]
        one["metadata"][f"image-{one['vduId']}"] = "another"
        with pytest.raises(errors.UnsupportedOperation) as caught:
            start(hook)
        planning = Planning()
        planning.call(lambda: start(hook))
        refusal = planning.plan.refusal
        assert refusal is not None
        assert refusal.text == str(caught.value)
