# SPDX-License-Identifier: Apache-2.0
"""Tenants on fakes: made, changed, removed, refused; faults at every step."""

import base64
import copy
from dataclasses import replace

import pytest

from tacker_k8s_mgmt import errors
from tacker_k8s_mgmt.features.table import FEATURES
from tacker_k8s_mgmt.operations.cluster_check import ClusterInspection
from tacker_k8s_mgmt.operations.connectivity import ConnectivityEnd
from tacker_k8s_mgmt.operations.instantiate import Instantiate
from tacker_k8s_mgmt.operations.modify import Modify
from tacker_k8s_mgmt.request.reader import TENANTS
from tests.helpers.fakes.site import FakeSite
from tests.helpers.operations import instantiated, run
from tests.helpers.requests import VNF, params

BLUE = {
    "name": "blue",
    "quota": {"pods": 3, "requests.cpu": "0.5"},
    "limits": {"default": {"memory": "512Mi"}},
}
RED = {"name": "red", "vim_name": "of-red", "pod_security": "restricted"}
CALLS = [
    "cluster.nodes",
    "vims.of_tenants",
    "manifests.get namespaces",
    "manifests.check",
    "manifests.apply",
    "manifests.present",
    "vims.register",
    "manifests.content",
    "vims.remove_tenant",
    "manifests.owned",
    "manifests.delete",
]


def wanting(*tenants):
    return params(tenants=list(tenants))


def modify(site, *tenants, **arguments):
    return run(Modify, site, wanting(*tenants), patch=[TENANTS], **arguments)


def with_tenants(*tenants):
    return instantiated(wanting(*tenants))


def named(site, namespace=""):
    return {
        f"{kind} {name}" for kind, where, name in site.objects if where == namespace
    }


def outcomes(journal):
    ends = [one for one in journal.records if one["event"] == "step-end"]
    return {one["step"]: one["outcome"] for one in ends}


def problem(site, *tenants):
    before = dict(site.objects), dict(site.tenant_vims)
    with pytest.raises(errors.StepFailed) as caught:
        modify(site, *tenants)
    assert (site.objects, site.tenant_vims) == before
    return str(caught.value)


class TestMade:
    def test_with_the_cluster(self):
        site = with_tenants(BLUE, RED)
        assert named(site) == {
            *("Namespace blue", "Namespace red", "Namespace tacker-k8s-mgmt-tenants"),
            *(
                f"{kind} tacker-k8s-mgmt-tenant:{name}"
                for kind in ("ClusterRole", "ClusterRoleBinding")
                for name in ("blue", "red")
            ),
            *(
                f"ValidatingAdmissionPolicy{kind} tacker-k8s-mgmt-tenant-{name}"
                for kind in ("", "Binding")
                for name in ("blue", "red")
            ),
        }
        assert named(site, "blue") == {
            "LimitRange tacker-k8s-mgmt-tenant",
            "NetworkPolicy tacker-k8s-mgmt-tenant",
            "ResourceQuota tacker-k8s-mgmt-tenant",
            "Role tacker-k8s-mgmt-tenant",
            "RoleBinding tacker-k8s-mgmt-tenant",
        }
        blue, red = site.tenant_vims["blue"], site.tenant_vims["red"]
        assert blue.token.get_secret_value() == "token of blue"
        assert blue.auth_url == red.auth_url == site.vim.auth_url
        assert (blue.name, red.name) == (f"kubernetes_vim_{VNF}_blue", "of-red")
        assert blue.helm is None

    def test_a_cluster_without_tenants_is_not_asked_for_any(self):
        site = FakeSite()
        run(Instantiate, site)
        assert not [call for call in site.calls if call.startswith("manifests")]

    def test_a_name_that_is_taken_is_seen_before_there_is_a_vm(self):
        site = FakeSite()
        site.foreign_vims = {"of-red"}
        with pytest.raises(
            errors.StepFailed, match="tenant red: vim_name: a VIM named"
        ):
            run(Instantiate, site, wanting(RED))
        assert "machines" not in site.calls

    def test_later(self):
        site = instantiated()
        modify(site, BLUE)
        assert set(site.tenant_vims) == {"blue"}
        assert "Namespace blue" in named(site)

    def test_a_second_time_changes_nothing(self):
        site = with_tenants(BLUE, RED)
        journal = modify(site, BLUE, RED)
        assert site.changes == []
        assert set(list(outcomes(journal).values())[1:]) == {"nothing to do"}

    def test_they_follow_the_address_of_the_load_balancer(self):
        site = with_tenants(BLUE)
        site.tenant_vims["blue"] = replace(site.vim, auth_url="https://former:6443")
        run(ConnectivityEnd, site, wanting(BLUE))
        assert site.tenant_vims["blue"].auth_url == site.vim.auth_url


class TestChanged:
    def test_quota_and_level(self):
        site = with_tenants(BLUE)
        modify(site, {**BLUE, "quota": {"pods": 7}, "pod_security": "privileged"})
        quota = site.objects["ResourceQuota", "blue", "tacker-k8s-mgmt-tenant"]
        assert quota["spec"]["hard"] == {"pods": "7"}
        labels = site.objects["Namespace", "", "blue"]["metadata"]["labels"]
        assert labels["pod-security.kubernetes.io/enforce"] == "privileged"

    def test_what_is_not_wanted_any_more_goes(self):
        site = with_tenants(BLUE)
        modify(site, {"name": "blue", "isolated": False})
        assert named(site, "blue") == {
            "Role tacker-k8s-mgmt-tenant",
            "RoleBinding tacker-k8s-mgmt-tenant",
        }

    def test_what_others_have_changed_comes_back(self):
        site = with_tenants(BLUE)
        name = ("NetworkPolicy", "blue", "tacker-k8s-mgmt-tenant")
        whole = site.objects.pop(name)
        role = ("Role", "blue", "tacker-k8s-mgmt-tenant")
        site.objects[role]["rules"] = []
        modify(site, BLUE)
        assert site.objects[name] == whole
        assert site.objects[role]["rules"]

    def test_the_name_of_a_vim_stays(self):
        site = with_tenants(RED)
        text = problem(site, {**RED, "vim_name": "other"})
        assert "tenant red: vim_name cannot change while the tenant is there" in text


class TestLeaving:
    def test_nothing_stays_behind(self):
        site = with_tenants(BLUE, RED)
        modify(site, RED)
        assert set(site.tenant_vims) == {"red"}
        assert not {one for one in named(site) if "blue" in one}
        assert named(site, "tacker-k8s-mgmt-tenants") == {
            "ServiceAccount red",
            "Secret red",
        }
        modify(site)
        assert (site.tenant_vims, site.objects) == ({}, {})

    def test_of_others_nothing_goes(self):
        site = with_tenants(BLUE)
        theirs = {"kind": "Namespace", "metadata": {"name": "theirs", "labels": {}}}
        site.objects["Namespace", "", "theirs"] = theirs
        modify(site)
        assert named(site) == {"Namespace theirs"}

    def test_refused_while_there_are_cnfs(self):
        site = with_tenants(BLUE, RED)
        site.tenants_in_use = {"blue"}
        put(site, "apps/v1", "Deployment", "web", "red")
        text = problem(site)
        assert "have 2 problem(s)" in text
        assert "tenant blue cannot leave: VNFs use its VIM" in text
        assert "tenant red cannot leave: its namespace has Deployment red/web" in text

    def test_refused_in_a_rollback_too(self):
        site = with_tenants(BLUE)
        put(site, "v1", "Service", "web", "blue")
        with pytest.raises(errors.StepFailed, match="blue cannot leave"):
            modify(site, checked=False)
        assert set(site.tenant_vims) == {"blue"}
        assert "Namespace blue" in named(site)

    def test_an_object_of_a_custom_kind_keeps_a_tenant(self):
        site = with_tenants(BLUE)
        put(site, "snapshot.storage.k8s.io/v1", "VolumeSnapshot", "backup", "blue")
        assert "its namespace has VolumeSnapshot blue/backup; " in problem(site)

    @pytest.mark.parametrize(
        ("version", "kind"),
        [
            *(("v1", kind) for kind in ("ConfigMap", "Secret", "ServiceAccount")),
            ("rbac.authorization.k8s.io/v1", "Role"),
        ],
    )
    def test_configuration_and_rights_go_along(self, version, kind):
        site = with_tenants(BLUE)
        put(site, version, kind, "theirs", "blue")
        modify(site)
        assert site.objects == {}

    def test_a_kind_that_cannot_be_listed_keeps_a_tenant_that_leaves_only(self):
        site = with_tenants(BLUE)
        site.unlisted = {"volumesnapshots.snapshot.storage.k8s.io": "no webhook"}
        modify(site, BLUE, RED)
        assert set(site.tenant_vims) == {"blue", "red"}
        text = problem(site)
        assert "tenant red cannot leave: its namespace may have objects of " in text
        assert "volumesnapshots.snapshot.storage.k8s.io (no webhook)" in text

    def test_one_whose_removal_was_cut_off_is_waited_for(self):
        site = with_tenants(BLUE)
        space = copy.deepcopy(site.objects["Namespace", "", "blue"])
        space["metadata"]["deletionTimestamp"] = "2026-01-01T00:00:00Z"
        site.objects["Namespace", "", "blue"] = space
        with pytest.raises(errors.StepFailed, match="Still there"):
            modify(site, BLUE)


def put(site, version, kind, name, namespace):
    metadata = {"name": name, "namespace": namespace}
    made = {"apiVersion": version, "kind": kind, "metadata": metadata}
    site.objects[kind, namespace, name] = made


class TestToken:
    def renewed(self, site):
        """As by hand: the Secret is recreated, with another token."""
        where = next(
            key for key in site.objects if key[0] == "Secret" and "blue" in key
        )
        secret = copy.deepcopy(site.objects[where])
        secret["data"]["token"] = base64.b64encode(b"another").decode()
        site.objects[where] = secret

    def token(self, site):
        return site.tenant_vims["blue"].token.get_secret_value()

    def test_another_one_in_the_secret_is_written_into_the_vim(self):
        site = with_tenants(BLUE, RED)
        site.tenants_in_use = {"blue"}
        red = site.tenant_vims["red"]
        self.renewed(site)
        steps = outcomes(modify(site, BLUE, RED))
        assert steps["create the tenants' namespaces"] == "nothing to do"
        assert steps["register the tenants' VIMs"] == "done"
        assert self.token(site) == "another"
        assert site.tenant_vims["red"] == red

    def test_of_a_secret_that_the_operation_makes_again_likewise(self):
        site = with_tenants(BLUE)
        self.renewed(site)
        modify(site, BLUE)
        site.objects = {
            key: one for key, one in site.objects.items() if key[0] != "Secret"
        }
        modify(site, BLUE)
        assert self.token(site) == "token of blue"

    def test_check_names_it(self):
        site = with_tenants(BLUE, RED)
        self.renewed(site)
        report = ClusterInspection(
            wanting(BLUE, RED), VNF, site, features=FEATURES
        ).take()
        found = {row.name: [f.text for f in row.findings] for row in report.rows}
        assert {name: texts for name, texts in found.items() if texts} == {
            "tenant blue": [
                "its VIM has not the token of its account, so CNFs cannot use it"
            ]
        }


class TestRefused:
    def test_every_problem_in_one_error(self):
        site = instantiated()
        site.foreign_vims = {"of-red"}
        site.objects["Namespace", "", "blue"] = {
            "kind": "Namespace",
            "metadata": {"name": "blue"},
        }
        gold = {"storage": [{"name": "gold", "size": "10Gi"}]}
        text = problem(site, {**BLUE, **gold}, RED)
        assert "have 3 problem(s)" in text
        assert "tenant red: vim_name: a VIM named 'of-red' is registered" in text
        assert "tenant blue: Namespace blue is in the cluster already" in text
        assert "tenant blue: the cluster has no StorageClass gold; it has none" in text
        assert "Nothing was changed." in text


@pytest.mark.parametrize("fault", CALLS)
def test_a_second_try_after_a_fault_reaches_the_same_end(fault):
    expected = with_tenants(RED)
    modify(expected, BLUE)
    site = with_tenants(RED)
    site.faults.add(fault)
    with pytest.raises(errors.StepFailed, match=f"fault in {fault}"):
        modify(site, BLUE)
    modify(site, BLUE)
    assert (site.objects, site.tenant_vims) == (expected.objects, expected.tenant_vims)
