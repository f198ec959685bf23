# SPDX-License-Identifier: Apache-2.0
"""The list of tenants: what it takes, and what contradicts the cluster."""

import pytest

from tests.helpers.samples import parsed, refused

WEBHOOK = {"webhook": {"url": "https://192.0.2.7:8443/webhook"}}


def problems(*tenants, **changes):
    return refused(parsed, {"tenants": list(tenants), **changes})


def warnings(*tenants, **changes):
    return parsed({"tenants": list(tenants), **changes}).warnings


def test_defaults():
    (tenant,) = parsed({"tenants": [{"name": "blue"}]}).tenants
    assert (tenant.pod_security, tenant.isolated) == ("baseline", True)
    assert (tenant.quota, tenant.limits, tenant.rules) == ({}, None, ())


def test_numbers_are_quantities():
    (tenant,) = parsed({"tenants": [{"name": "blue", "quota": {"pods": 5}}]}).tenants
    assert tenant.quota == {"pods": "5"}


@pytest.mark.parametrize(
    ("tenant", "expected"),
    [
        ({}, "name: is missing"),
        ({"name": "Blue"}, "name: must be the name of a namespace"),
        ({"name": "-blue"}, "name: must be the name of a namespace"),
        ({"name": "b" * 49}, "name: must be the name of a namespace"),
        ({"name": "kube-system"}, "name: is the name of a namespace of"),
        ({"name": "default"}, "name: is the name of a namespace of"),
        ({"name": "tacker-k8s-mgmt-tenants"}, "name: is the name of a namespace of"),
        ({"name": "blue", "quota": {"pods": -1}}, "quota.pods: must be a"),
        ({"name": "blue", "quota": {"pods": True}}, "quota.pods: must be a"),
        ({"name": "blue", "quota": {"cpu": "4x"}}, "quota.cpu: must be a"),
        ({"name": "blue", "storage": [{}]}, "storage.0.name: is missing"),
        (
            {"name": "blue", "storage": [{"name": "gold", "volumes": -1}]},
            "storage.0.volumes: must be 0 or more",
        ),
        ({"name": "blue", "pod_security": "no"}, "pod_security: must be"),
        (
            {"name": "blue", "allowed": [{"direction": "egress"}]},
            "allowed.0: name tenants, namespaces or networks",
        ),
        (
            {"name": "blue", "allowed": [{"direction": "egress", "tenants": ["red"]}]},
            "allowed.0.tenants: there is no such tenant as red",
        ),
        (
            {
                "name": "blue",
                "isolated": False,
                "allowed": [{"direction": "egress", "networks": ["10.0.0.0/8"]}],
            },
            "allowed: is for a tenant that is isolated",
        ),
        (
            {"name": "blue", "keystone_project": "0a1b"},
            "keystone_project: needs k8s-keystone-auth",
        ),
    ],
)
def test_what_is_refused(tenant, expected):
    (found,) = problems(tenant)
    assert found.startswith(f"tenants.0.{expected}")


@pytest.mark.parametrize(
    "group", ["system:authenticated", "system:masters", "oidc:admins", ":", "a" * 129]
)
def test_no_group_of_kubernetes_is_a_project(group):
    found = problems({"name": "blue", "keystone_project": group})
    expected = "tenants.0.keystone_project: must be the id of a project in Keystone"
    assert expected in found


def test_names_that_are_given_twice():
    blue = {"name": "blue", "vim_name": "one"}
    assert problems(blue, blue) == (
        "tenants.1.name: the tenant is given twice",
        "tenants.1.vim_name: another VIM has this name",
    )
    (found,) = problems({"name": "red", "vim_name": "mine"}, vim_name="mine")
    assert found == "tenants.0.vim_name: another VIM has this name"


def test_a_project_with_the_webhook():
    tenant = {"name": "blue", "keystone_project": "0a1b"}
    made = parsed({"tenants": [tenant], "cluster.authentication": WEBHOOK})
    assert made.tenants[0].keystone_project == "0a1b"


class TestIsolation:
    @pytest.mark.parametrize("plugin", ["flannel", "macvlan"])
    def test_a_plugin_that_enforces_none(self, plugin):
        chosen = {"cluster.network": {"plugin": plugin}}
        (found,) = problems({"name": "blue"}, **chosen)
        text = f"tenants.0.isolated: the network plugin {plugin} enforces no Network"
        assert found.startswith(text)
        assert "isolated: false gives a tenant without isolation" in found
        made = parsed({"tenants": [{"name": "blue", "isolated": False}], **chosen})
        assert not made.tenants[0].isolated

    @pytest.mark.parametrize(
        ("plugin", "variable"),
        [
            ("calico", "enable_network_policy"),
            ("kube-router", "kube_router_run_firewall"),
            ("kube-ovn", "kube_ovn_enable_np"),
        ],
    )
    def test_a_plugin_that_is_kept_from_it(self, plugin, variable):
        chosen = {
            "cluster.network": {"plugin": plugin},
            "kubespray_vars": {variable: False},
        }
        (found,) = problems({"name": "blue"}, **chosen)
        assert f"kubespray_vars.{variable} keeps {plugin} from enforcing" in found
        parsed({"tenants": [{"name": "blue"}], "cluster.network": {"plugin": plugin}})

    def test_a_plugin_of_the_sites_own_is_warned_of(self):
        own = {"cluster.network": {"plugin": "cni"}}
        (found,) = warnings({"name": "blue"}, **own)
        assert found.startswith("tenants.0: whether NetworkPolicies are enforced")

    def test_privileged_pods_are_warned_of(self):
        (found,) = warnings({"name": "blue", "pod_security": "privileged"})
        assert found.startswith("tenants.0.pod_security: privileged pods can reach")
