# SPDX-License-Identifier: Apache-2.0
"""What a checkout says that it can install, and what of a request it cannot."""

import re

import pytest

from tacker_k8s_mgmt.kubespray import checkout, releases
from tacker_k8s_mgmt.kubespray.checkout import Checkout, Offer
from tests.helpers.full_request import rich
from tests.helpers.samples import parsed

CHECKSUMS = """kubelet_checksums:
  arm64:
    1.99.0: sha256:00
  amd64:
    1.34.3: sha256:aa
    1.34.10: sha256:ab
    1.33.7: sha256:bb
    1.33.0: sha256:cc
  ppc64le:
    1.98.0: sha256:00
kubectl_checksums:
"""
CHECKS = """- name: Fail if removed variables are used
  vars:
    # Always remove items from this list after the release in comments
    removed_vars:
      - kubelet_static_pod_path # 2.31.0
      - something_of_tomorrow
    removed_vars_found: "{{ query('varnames', removed_vars) }}"
- name: Stop if unsupported options selected
  assert:
    that:
      - kube_network_plugin in ['calico', 'kube-ovn', "custom_cni", 'none']
      - dns_mode in ['coredns']
"""
OFFER = Offer.from_texts(CHECKS, CHECKSUMS)


def found(changes, version="2.31.0", offer=OFFER) -> tuple[str, ...]:
    where = Checkout(True, version, None, offer)
    return checkout.findings(where, "2.18.1", True, parsed(changes))


class TestStatements:
    def test_everything_is_read_from_the_checkouts_own_words(self):
        assert (
            Offer(
                kube_versions=("1.34.10", "1.34.3", "1.33.7", "1.33.0"),
                network_plugins=frozenset({"calico", "kube-ovn", "custom_cni", "none"}),
                removed_variables=frozenset(
                    {"kubelet_static_pod_path", "something_of_tomorrow"}
                ),
            )
            == OFFER
        )

    def test_a_leading_v_is_not_part_of_a_version(self):
        text = "kubelet_checksums:\n  amd64:\n    v1.31.9: 00\n    v1.31.8: 00\n"
        assert Offer.from_texts("", text).kube_versions == ("1.31.9", "1.31.8")

    @pytest.mark.parametrize("text", ["", "other:\n  amd64:\n", "- removed_vars\n"])
    def test_a_checkout_that_states_nothing_is_not_judged(self, text):
        silent = Offer.from_texts(text, text)
        assert silent == Offer()
        assert found({"cluster.kubernetes_version": "1.99.9"}, offer=silent) == ()


class TestKubernetes:
    @pytest.mark.parametrize("version", ["1.33.0", "v1.34.10"])
    def test_one_that_it_has_is_taken(self, version):
        assert found({"cluster.kubernetes_version": version}) == ()

    @pytest.mark.parametrize(
        ("version", "rest"),
        [
            (
                "1.33.8",
                "1.33.0 to 1.34.10; of that minor release, 1.33.7 is the newest",
            ),
            ("1.35.0", "1.33.0 to 1.34.10"),
            ("1.32.9", "1.33.0 to 1.34.10"),
        ],
    )
    def test_one_that_it_has_not_is_refused_with_what_it_has(self, version, rest):
        assert found({"cluster.kubernetes_version": version}) == (
            f"cluster.kubernetes_version: kubespray 2.31.0 cannot install Kubernetes "
            f"{version}: it can install {rest}",
        )

    def test_the_variable_is_judged_in_the_same_way(self):
        (finding,) = found({"kubespray_vars": {"kube_version": "1.40.0"}})
        assert finding.startswith(
            "kubespray_vars.kube_version: kubespray 2.31.0 cannot"
        )


class TestPlugins:
    def test_the_checkouts_own_list_counts(self):
        expected = (
            "{}: kubespray 2.31.0 has no network plugin cilium; it has calico, "
            "custom_cni, kube-ovn, none"
        )
        name = "cluster.network.plugin"
        assert found({name: "cilium"}) == (expected.format(name),)
        name = "kubespray_vars.kube_network_plugin"
        assert found({name: "cilium"}) == (expected.format(name),)

    @pytest.mark.parametrize(
        ("version", "refused"), [("2.28.1", False), ("2.29.0", True)]
    )
    def test_without_one_the_table_does(self, version, refused):
        changes = {"cluster.network.plugin": "weave"}
        assert bool(found(changes, version, Offer())) is refused

    def test_an_unknown_release_that_states_nothing_has_no_finding(self):
        changes = {
            "ansible.allow_unknown_release": True,
            "cluster.network.plugin": "weave",
        }
        assert found(changes, "3.1.0", Offer()) == ()


SINCE = [
    (
        {"cluster.offline.files_repo": "https://files"},
        "2.25.0",
        "2.24.3",
        "takes no base URLs for downloads",
    ),
    (
        {"cluster.registries": [{"prefix": "r", "ca_file": "/etc/ca.pem"}]},
        "2.28.0",
        "2.27.1",
        "gives containerd no CA certificates",
    ),
    (
        {
            "private_registry_connection_info": [
                {"connection_type": 1, "server": "r", "certificate_path": "ca.crt"}
            ]
        },
        "2.28.0",
        "2.27.1",
        "gives containerd no CA certificates, which certificate_path of private_regi",
    ),
    (
        {
            "cluster.container_manager": "crio",
            "cluster.registries": [
                {"prefix": name, "username": "u", "password": "pppp"}
                for name in ("a", "b")
            ],
        },
        "2.30.0",
        "2.29.1",
        "logs CRI-O in to one registry only, and cluster.registries has 2 with a login",
    ),
    (
        {"cluster.storage.cephfs": {"monitors": ["m"], "admin_key": "kkkk"}},
        "2.27.1",
        "2.28.0",
        "has no provisioner for it since v2.28; install Ceph CSI",
    ),
]


@pytest.mark.parametrize(("changes", "able", "unable", "reason"), SINCE)
def test_what_only_some_releases_can_is_refused_by_the_others(
    changes, able, unable, reason
):
    assert found(changes, able, Offer()) == ()
    (finding,) = found(changes, unable, Offer())
    assert f"kubespray {unable} {reason}" in finding


def test_one_login_of_crio_is_always_possible():
    registry = {"prefix": "a", "username": "u", "password": "pppp"}
    changes = {
        "cluster.container_manager": "crio",
        "cluster.registries": [registry, {"prefix": "b"}],
    }
    assert found(changes, "2.24.3", Offer()) == ()


class TestRemovedVariables:
    @pytest.mark.parametrize(
        ("name", "version", "expected"),
        [
            (
                "kubeadm_version",
                "2.26.0",
                "kubespray 2.26.0 has no such variable; it is kube_version now",
            ),
            (
                "kubelet_node_custom_flags",
                "2.31.0",
                "kubespray 2.31.0 has no such variable since v2.27; it is "
                "kubelet_custom_flags now",
            ),
            (
                "ingress_nginx_enabled",
                "2.31.0",
                "kubespray 2.31.0 has no such variable; install an ingress controller "
                "once the cluster runs",
            ),
            ("krew_enabled", "2.28.0", "kubespray 2.28.0 has no such variable"),
            ("something_of_tomorrow", "2.31.0", "kubespray 2.31.0 has removed it"),
        ],
    )
    def test_each_is_named_with_what_is_there_instead(self, name, version, expected):
        changes = {"kubespray_vars": {name: "x", "retry_stagger": 5}}
        assert found(changes, version) == (f"kubespray_vars.{name}: {expected}",)

    @pytest.mark.parametrize(
        ("name", "version"),
        [
            ("kubeadm_version", "2.25.1"),
            ("ingress_nginx_enabled", "2.30.0"),
            ("eviction_hard_control_plane", "2.31.0"),
        ],
    )
    def test_before_that_release_there_is_no_finding(self, name, version):
        assert found({"kubespray_vars": {name: "x"}}, version, Offer()) == ()

    def test_each_is_a_name_with_one_text(self):
        for old, gone in releases.VARIABLES.items():
            assert re.fullmatch(r"[a-z][a-z0-9]*(_+[a-z0-9]+)+(_\*)?", old), old
            assert not re.fullmatch(r"\w+_\w+( \w+_\w+)+", gone.instead), old

    def test_no_new_name_is_itself_one_that_is_gone(self):
        for old, gone in releases.VARIABLES.items():
            new = gone.instead.removeprefix("it is ").removesuffix(" now")
            assert releases.removal(new.split(":")[0]) is None, old


def test_everything_comes_at_once_beside_the_servers_own_findings():
    where = Checkout(True, "2.31.0", ("2.18.0", "2.19.0"), OFFER)
    changes = {
        **rich((2, 27)),
        "kubespray_vars": {"dashboard_enabled": True, "deploy_netchecker": True},
    }
    listed = checkout.findings(where, "2.9.1", False, parsed(changes))
    assert len(listed) == 7
