# SPDX-License-Identifier: Apache-2.0
"""Parameters of scale and heal requests, on top of those of the instantiation."""

import copy

import pytest

from tacker_k8s_mgmt.errors import ParamError
from tacker_k8s_mgmt.model.playbooks import Means
from tacker_k8s_mgmt.request import reader, structure
from tacker_k8s_mgmt.request.reader import ClusterRequest
from tacker_k8s_mgmt.request.structure import CHANGEABLE, Fixed, later
from tests.helpers.samples import (
    KEY,
    REMOVED,
    SIMPLE,
    camelised,
    changed,
    parsed,
    refused,
    request,
    updated,
)

PATH = "/etc/tacker/k8s-mgmt/keys/worker"
TACKERS_OWN = {"is_reverse": "False", "is_auto": "False"}


def merged(change, stored=None) -> ClusterRequest:
    made = updated(request(stored or SIMPLE), {**TACKERS_OWN, **request(change)})
    assert made is not None
    # What is compared here are the parameters, not how they came about.
    return made.model_copy(update={"changed_logins": frozenset()})


def problems(change, stored=None) -> tuple[str, ...]:
    return refused(merged, change, stored)


class TestWithoutOverrides:
    @pytest.mark.parametrize("override", [None, {}, TACKERS_OWN])
    def test_the_stored_parameters_hold(self, override):
        assert updated(request(SIMPLE), override) == parsed()

    @pytest.mark.parametrize("stored", [None, {}, {"lcm-operation-user-data": "x"}])
    def test_a_vnf_without_ours_is_left_alone(self, stored):
        assert reader.RequestReader().update(stored, TACKERS_OWN) is None

    def test_parameters_for_a_vnf_without_ours_are_refused(self):
        with pytest.raises(ParamError, match="when the VNF was instantiated"):
            updated({}, request({"drain": {"timeout": 60}}))

    def test_a_wrong_attribute_is_refused(self):
        with pytest.raises(ParamError, match="must be a structure"):
            updated(request(SIMPLE), request("text"))


class TestMerging:
    def test_one_attribute_leaves_the_others(self):
        made = merged({"worker_node": {"password": "new-s3cret"}})
        expected = parsed({"worker_node.password": "new-s3cret"})
        assert made == expected

    def test_every_changeable_attribute_arrives(self):
        change = {
            "ansible": {
                "ip_address": "ansible.example.org",
                "port": 2222,
                "username": "other",
                "password": "p1",
                "kubespray_root_path": "/opt/other",
                "venv_path": "/opt/other-venv",
                "allow_unknown_release": True,
                "forks": 30,
                "strategy": "linear",
                "resolve_downloads": False,
            },
            "master_node": {"username": "core", "password": "p2"},
            "worker_node": {"username": "core", "private_key": KEY},
            "external_lb_param": {
                "ssh_username": "core",
                "ssh_private_key": PATH,
                "ssh_private_key_passphrase": "p3",
                "script_path": "Scripts/other.sh",
            },
            "drain": {"timeout": 60, "on_failure": "force"},
            "kubespray_vars": {"calico_mtu": 1400},
        }
        made = merged(change)
        assert (made.ansible.host, made.ansible.port) == ("ansible.example.org", 2222)
        assert made.ansible.kubespray_root == "/opt/other"
        assert made.ansible.venv == "/opt/other-venv"
        assert made.ansible.allow_unknown_release
        assert made.ansible.forks == 30
        assert made.means == Means("linear", resolves=False)
        assert made.ansible.directory == "/home/ansible/clusters/simple"
        assert [account.username for account in made.accounts()] == [
            *("other", "core", "core", "core")
        ]
        assert made.load_balancer.script_path == "Scripts/other.sh"
        assert (made.drain.timeout, made.drain.on_failure) == (60, "force")
        assert made.drain.parallel == 5
        assert made.kubespray_vars == {"calico_mtu": 1400}

    def test_variables_are_merged_by_name(self):
        stored = changed({"kubespray_vars": {"calico_mtu": 1450, "helm_enabled": True}})
        made = merged({"kubespray_vars": {"calico_mtu": 1400}}, stored)
        assert made.kubespray_vars == {"calico_mtu": 1400, "helm_enabled": True}

    @pytest.mark.parametrize("shown", [SIMPLE, camelised(SIMPLE)])
    @pytest.mark.parametrize("spell", [dict, camelised])
    def test_both_spellings_meet(self, shown, spell):
        change = spell({"external_lb_param": {"ssh_password": "new-s3cret"}})
        made = merged(change, shown)
        assert made == parsed({"external_lb_param.ssh_password": "new-s3cret"})

    @pytest.mark.parametrize("name", ["k8sClusterInstallationParam"])
    def test_the_attribute_itself_may_be_spelled_either_way(self, name):
        change = {"workerNode": {"password": "new-s3cret"}}
        made = updated(request(SIMPLE), {name: change})
        assert made.workers == parsed({"worker_node.password": "new-s3cret"}).workers

    def test_nothing_that_was_given_is_changed(self):
        stored, change = request(SIMPLE), request({"worker_node": {"password": "x"}})
        before = copy.deepcopy((stored, change))
        updated(stored, change)
        assert (stored, change) == before

    @pytest.mark.parametrize("nothing", [None, "", " "])
    def test_null_and_blank_attributes_change_nothing(self, nothing):
        change = {
            "worker_node": {"password": nothing, "private_key": nothing},
            "ansible": {"venv_path": nothing, "ip_address": nothing},
            "vim_name": nothing,
            "drain": None,
        }
        assert merged(change) == parsed()

    def test_a_variable_may_be_emptied(self):
        stored = changed({"kubespray_vars": {"files_repo": "http://mirror"}})
        made = merged({"kubespray_vars": {"files_repo": ""}}, stored)
        assert made.kubespray_vars == {"files_repo": ""}


class TestLogins:
    BY_KEY = {
        "worker_node.password": REMOVED,
        "worker_node.private_key": KEY,
        "worker_node.private_key_passphrase": "old passphrase",
    }

    @pytest.mark.parametrize(
        ("change", "stored", "password", "key", "passphrase"),
        [
            # A key drops the stored password, and a password the key.
            ({"private_key": PATH}, {}, None, PATH, None),
            ({"password": "new-s3cret"}, BY_KEY, "new-s3cret", None, None),
            # The passphrase was that of the key before.
            ({"private_key": PATH}, BY_KEY, None, PATH, None),
            ({"private_key_passphrase": "new"}, BY_KEY, None, KEY, "new"),
            ({"private_key": PATH, "password": "p"}, {}, "p", PATH, None),
            ({"username": "core"}, BY_KEY, None, KEY, "old passphrase"),
        ],
    )
    def test_what_is_left_of_a_login(self, change, stored, password, key, passphrase):
        made = merged({"worker_node": change}, changed(stored)).workers
        given = (made.password, made.private_key, made.private_key_passphrase)
        assert [one and one.get_secret_value() for one in given] == [
            *(password, key, passphrase)
        ]

    def test_of_the_load_balancer_too(self):
        made = merged({"external_lb_param": {"ssh_private_key": KEY}})
        assert made.load_balancer.password is None

    @pytest.mark.parametrize(
        ("change", "expected"),
        [
            ({"worker_node": {"password": "new-s3cret"}}, {"worker_node"}),
            ({"worker_node": {"password": "worker-s3cret"}}, set()),
            ({"worker_node": {"username": "core"}}, {"worker_node"}),
            ({"external_lb_param": {"ssh_private_key": KEY}}, {"external_lb_param"}),
            ({"external_lb_param": {"script_path": "Scripts/x"}}, set()),
            ({"ansible": {"password": "x"}, "drain": {}}, {"ansible"}),
            (camelised({"master_node": {"private_key": KEY}}), {"master_node"}),
        ],
    )
    def test_the_nodes_whose_login_changed_are_reported(self, change, expected):
        made = updated(request(SIMPLE), request(change))
        assert made.changed_logins == expected
        assert parsed().changed_logins == frozenset()

    def test_the_old_secrets_are_not_looked_for_any_more(self):
        secrets = merged({"worker_node": {"password": "new-s3cret"}}).secrets()
        assert "new-s3cret" in secrets
        assert "worker-s3cret" not in secrets


KUBECTL = "nodes that are there would keep theirs; modify the VNF instance's metadata"
CONTROL_PLANE = (
    "it is set up on the control plane, which scale and heal of workers leave as it is"
)
FIXED = {
    "profile": ("starlingx", "what it stands for holds for life"),
    "tenants": (
        [{"name": "other"}],
        "modify the VNF instance's metadata: k8s_tenants has the new list",
    ),
    "applications": (
        [{"name": "other", "manifests": [{"path": "other.yaml"}]}],
        "modify the VNF instance's metadata: k8s_applications has the new list",
    ),
    "address_family": ("ipv6", "the cluster was built on it"),
    "master_node.pod_cidr": ("10.1.0.0/16", "the cluster was built on it"),
    "master_node.cluster_cidr": ("10.1.0.0/16", "the cluster was built on it"),
    **{
        f"{group}.{name}": ("other", "it names what is in the Heat stack")
        for group in ("master_node", "worker_node", "external_lb_param")
        for name in ("aspect_id", "ssh_cp_name", "nic_cp_name")
        if (group, name) != ("external_lb_param", "aspect_id")
    },
    "external_lb_param.api_port": (8443, "the nodes and the VIM reach the API there"),
    "ansible.transferring_inventory_path": (
        "/srv/clusters/other",
        "the cluster's inventory lies there",
    ),
    "proxy": ({"http_proxy": "http://p:3128"}, "it was set up on every node"),
    "vim_name": ("other", "the cluster is registered under it"),
    **{
        f"{group}.{name}": (value, KUBECTL)
        for group in ("master_node", "worker_node")
        for name, value in (("node_labels", ["a=b"]), ("node_taints", ["a:NoExecute"]))
    },
    "cluster.kubernetes_version": (
        "1.31.9",
        "another version comes with an upgrade only: a change of the VNF package",
    ),
    **{
        f"{role}.compute_host_label": ("CIS-node", KUBECTL)
        for role in ("master_node", "worker_node")
    },
    "worker_node.aspects": ([{"aspect_id": "video"}], KUBECTL),
    "cluster.container_manager": ("crio", "all nodes have the same"),
    "cluster.network": ({"plugin": "cilium"}, "the cluster was built on it"),
    "cluster.openstack": ({"region": "two"}, CONTROL_PLANE),
    "cluster.storage": ({"local_path": True}, CONTROL_PLANE),
    "cluster.authentication": ({"oidc": {}}, CONTROL_PLANE),
    "cluster.node_registry": ({"size": "20Gi"}, CONTROL_PLANE),
    **{
        f"cluster.{name}": (True, CONTROL_PLANE)
        for name in (
            *("helm", "local_registry", "metrics_server"),
            *("audit_log", "encrypt_secrets", "renew_certificates"),
        )
    },
}


def alone(name, value):
    outer, _, inner = name.partition(".")
    return {outer: {inner: value} if inner else value}


class TestWhatStays:
    @pytest.mark.parametrize("name", sorted(FIXED))
    def test_it_is_refused_with_its_reason(self, name):
        value, reason = FIXED[name]
        expected = f"{name}: cannot be changed after instantiation; {reason}"
        assert problems(alone(name, value)) == (expected,)

    def test_every_attribute_is_either_changeable_or_has_a_reason(self):
        for outer, nested in structure.border_names(ClusterRequest).items():
            rule = later(ClusterRequest)[outer]
            if not nested or isinstance(rule, Fixed) or rule == CHANGEABLE:
                assert rule == CHANGEABLE or outer in FIXED
            else:
                for inner, own in later(nested).items():
                    dotted = f"{outer}.{inner}"
                    assert own == CHANGEABLE or dotted in FIXED, dotted

    def test_where_images_come_from_may_change_for_nodes_of_later(self):
        registries = [{"prefix": "r", "username": "u", "password": "new-s3cret"}]
        change = {"cluster": {"registries": registries, "offline": {}}}
        for stored in (SIMPLE, changed({"cluster.registries": [{"prefix": "r"}]})):
            made = merged(change, stored)
            assert (
                made.cluster.registries
                == parsed({"cluster.registries": registries}).cluster.registries
            )

    def test_the_rest_of_the_cluster_stays_beside_them(self):
        stored = changed({"cluster.helm": True, "cluster.network.plugin": "cilium"})
        made = merged({"cluster": {"registries": [{"prefix": "r"}]}}, stored)
        assert (made.cluster.helm, made.cluster.network_plugin) == (True, "cilium")

    def test_whole_structures_may_be_sent_as_they_were(self):
        body = changed({"worker_node.password": "new-s3cret"})
        assert merged(body) == parsed({"worker_node.password": "new-s3cret"})

    def test_a_load_balancer_cannot_be_added(self):
        stored = changed({"external_lb_param": REMOVED})
        expected = (
            "external_lb_param: cannot be changed after instantiation; the cluster was "
            "built without a load balancer",
        )
        change = {"external_lb_param": {"ssh_password": "x"}}
        assert problems(change, stored) == expected

    def test_all_problems_come_at_once_in_the_users_spelling_without_values(self):
        found = problems(
            {
                "vimName": "Pa55-w0rd",
                "workerNode": {"sshCpName": "Pa55-w0rd", "pasword": "Pa55-w0rd"},
                "drain": {"timeout": "Pa55-w0rd"},
                "ansible": {"ip_address": "Pa55-w0rd/8"},
                "kubespray_vars": {"no_proxy": "x"},
            }
        )
        assert sorted(found) == [
            "ansible.ip_address: must be one address or host name, not a network",
            "drain.timeout: must be a whole number",
            "kubespray_vars.no_proxy: cannot be set here; use proxy.no_proxy",
            "vimName: cannot be changed after instantiation; the cluster is registered "
            "under it",
            "workerNode.pasword: is not a known attribute; did you mean password?",
            "workerNode.sshCpName: cannot be changed after instantiation; it names "
            "what is in the Heat stack",
        ]

    def test_what_only_both_together_show_is_found(self):
        found = problems({"ansible": {"venv_path": f"{parsed().ansible.directory}/v"}})
        assert found == (
            "ansible.transferring_inventory_path: is deleted with the cluster, so "
            "ansible.venv_path must not be in it",
        )


class TestUpgrade:
    """Requests that may ask for another Kubernetes version."""

    STORED = changed({"cluster": {"kubernetes_version": "1.31.9"}})

    @staticmethod
    def upgraded(change, stored) -> ClusterRequest:
        made = reader.RequestReader().update(
            request(stored), request(change), upgrade=True
        )
        assert made is not None
        return made

    def test_the_version_may_change(self):
        change = {"cluster": {"kubernetes_version": "1.32.8"}}
        made = self.upgraded(change, self.STORED)
        assert made.cluster.kubernetes_version == "1.32.8"

    def test_it_takes_the_place_of_the_variable(self):
        stored = changed(
            {"kubespray_vars": {"kube_version": "1.31.9", "helm_enabled": True}}
        )
        change = {"cluster": {"kubernetes_version": "1.32.8"}}
        made = self.upgraded(change, stored)
        assert made.cluster.kubernetes_version == "1.32.8"
        assert made.kubespray_vars == {"helm_enabled": True}

    @pytest.mark.parametrize(
        "change", [{"cluster": {"helm": True}}, {"vim_name": "other"}]
    )
    def test_nothing_else_may(self, change):
        with pytest.raises(ParamError, match="cannot be changed"):
            self.upgraded(change, self.STORED)

    def test_the_variable_may_not_change(self):
        change = {"kubespray_vars": {"kube_version": "1.32.8"}}
        (problem,) = problems(change, changed({"kubespray_vars": {"x": 1}}))
        assert problem.startswith("kubespray_vars.kube_version: cannot be changed")

    @pytest.mark.parametrize("upgrade", [False, True])
    def test_the_variable_may_not_appear_first_in_a_later_request(self, upgrade):
        change = request({"kubespray_vars": {"kube_version": "1.32.8"}})
        expected = "kubespray_vars.kube_version: cannot be changed after instantiation"
        with pytest.raises(ParamError, match=expected):
            reader.RequestReader().update(request(SIMPLE), change, upgrade=upgrade)

    def test_the_variable_may_not_be_emptied(self):
        stored = changed({"kubespray_vars": {"kube_version": "1.31.9"}})
        made = merged({"kubespray_vars": {"kube_version": ""}}, stored)
        assert made.kubespray_vars == {"kube_version": "1.31.9"}

    def test_repeating_the_variable_is_no_change(self):
        stored = changed({"kubespray_vars": {"kube_version": "1.31.9"}})
        change = {"kubespray_vars": {"kube_version": "1.31.9"}}
        assert merged(change, stored).kubespray_vars == {"kube_version": "1.31.9"}
