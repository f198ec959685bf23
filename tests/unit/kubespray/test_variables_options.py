# SPDX-License-Identifier: Apache-2.0
"""What the options of a cluster become, and that nothing else becomes of them."""

import json

import jinja2
import pytest

from tacker_k8s_mgmt.errors import ClusterError, ParamError
from tacker_k8s_mgmt.kubespray import inventory, releases, variables
from tacker_k8s_mgmt.request import reader, registries
from tacker_k8s_mgmt.request.reader import ClusterRequest
from tacker_k8s_mgmt.request.structure import variable_names
from tacker_k8s_mgmt.text import Redactor
from tests.helpers.full_request import (
    BALANCER,
    CEPHFS_KEY,
    CERTIFICATE,
    NIC_MTUS,
    NODES,
    RBD_KEYS,
    REGISTRY_PASSWORD,
    rich,
)
from tests.helpers.samples import (
    IPV6,
    REMOVED,
    as_json,
    assert_golden,
    camelised,
    changed,
    parsed,
    problems,
    request,
)

VARIABLES = variable_names(ClusterRequest)
DEFAULTS = variable_names(ClusterRequest, defaults=True)
RELEASES = sorted(releases.RELEASES)
each_attribute = pytest.mark.parametrize("location", sorted(VARIABLES), ids=".".join)
ALL = rich((2, 27))


def build(changes, nic_mtus=NIC_MTUS):
    return variables.build(parsed(changes), NODES, BALANCER, nic_mtus=nic_mtus)


def added(changes, **others):
    """What these changes alone bring."""
    base = build({})
    built = build(changes, **others)
    return {name: value for name, value in built.items() if name not in base}


@pytest.mark.parametrize("release", RELEASES)
def test_the_rich_request_is_the_golden_text_for_each_release(release):
    name = "v{}.{}".format(*release)
    built = build(rich(release))
    assert_golden(f"variables-rich-{name}.json", as_json(built))
    hosts = inventory.render(NODES, parsed(rich(release)))
    assert_golden(f"inventory-rich-{name}.yaml", hosts)


def test_a_request_without_options_brings_no_variable():
    assert added({"cluster": {}, "worker_node.node_labels": []}) == {}


@each_attribute
def test_an_attribute_becomes_none_but_its_own_variables(location):
    """Without it, exactly its variables are missing, or they have other values."""
    with_all = build(ALL)
    # A whole structure that others need is left away with those.
    changes = {**ALL, ".".join(location): REMOVED}
    if location == ("cluster", "openstack", "cloud_controller"):
        changes["cluster.openstack.load_balancer_subnet_id"] = REMOVED
        changes["cluster.openstack.load_balancer_floating_network_id"] = REMOVED
    if location == ("cluster", "renew_certificates"):
        changes["cluster.renew_certificates"] = False  # it is on by default
    if location == ("cluster", "network", "mtu"):
        changes["cluster.network"] = {"plugin": "calico", "encapsulation": "ipip"}
    elif location[:2] == ("cluster", "network"):
        changes["cluster.network"] = {
            name: value
            for name, value in ALL["cluster.network"].items()
            if name != location[-1]
        }
    elif location == ("cluster", "local_registry"):
        changes["cluster.node_registry"] = REMOVED  # it runs the same registry
    elif location == ("cluster", "node_registry"):
        changes["cluster.local_registry"] = REMOVED
    elif location in (("cluster", "registries"), ("private_registry_connection_info",)):
        changes |= {
            "cluster.registries": REMOVED,
            "private_registry_connection_info": REMOVED,
        }
    without = build(changes)
    differing = {
        name for name in with_all if with_all[name] != without.get(name, REMOVED)
    }
    if location == ("cluster", "network", "encapsulation"):
        differing -= {"calico_mtu"}  # it follows from the encapsulation
    if location == ("cluster", "local_registry"):
        differing &= {"registry_enabled"}
    if location == ("cluster", "openstack", "cloud_controller"):
        differing -= {
            "external_openstack_lbaas_subnet_id",
            "external_openstack_lbaas_floating_network_id",
        }
    assert differing <= {*VARIABLES[location], *DEFAULTS.get(location, ())}
    in_inventory = location[0] in ("master_node", "worker_node")
    assert differing or in_inventory


class TestBesideKubesprayVars:
    @each_attribute
    def test_a_variable_beside_its_attribute_is_refused(self, location):
        name = VARIABLES[location][0]
        body = changed({**ALL, "kubespray_vars": {name: "x"}})
        with pytest.raises(ParamError) as caught:
            reader.RequestReader().read(request(body))
        assert (
            f"kubespray_vars.{name}: cannot be set beside {'.'.join(location)}, which "
            "stands for it"
        ) in caught.value.problems

    def test_without_the_attribute_it_is_the_users(self):
        variables_given = {"helm_enabled": True, "kube_network_plugin": "flannel"}
        built = build({"kubespray_vars": variables_given})
        assert variables_given.items() <= built.items()

    def test_an_attribute_that_says_no_does_not_matter(self):
        changes = {"cluster.helm": False, "kubespray_vars": {"helm_enabled": True}}
        assert build(changes)["helm_enabled"] is True


class TestKubernetesVersion:
    @pytest.mark.parametrize("written", ["1.31.9", "v1.31.9"])
    @pytest.mark.parametrize(
        ("checksums", "expected"),
        [
            ({"amd64": {"v1.31.9": 0, "v1.31.8": 0}}, "v1.31.9"),
            ({"amd64": {"1.31.9": 0, "1.31.8": 0}}, "1.31.9"),
            (None, "1.31.9"),
        ],
    )
    def test_it_is_spelled_as_the_checkout_does(self, written, checksums, expected):
        built = added({"cluster.kubernetes_version": written})
        ansible = jinja2.Environment(autoescape=True)
        ansible.tests["match"] = lambda text, start: text.startswith(start)
        known = {} if checksums is None else {"kubelet_checksums": checksums}
        assert ansible.from_string(built.pop("kube_version")).render(known) == expected
        assert built == {}


class TestNetwork:
    @pytest.mark.parametrize(
        ("plugin", "variable", "value"),
        [
            ("calico", "calico_mtu", 1400),
            # That of the interface below: cilium takes 50 off for itself.
            ("cilium", "cilium_mtu", 1450),
            ("kube-ovn", "kube_ovn_mtu", 1400),
            ("weave", "weave_mtu", 1400),
        ],
    )
    def test_a_number_is_what_pods_get(self, plugin, variable, value):
        changes = {"cluster.network": {"plugin": plugin, "mtu": 1400}}
        assert added(changes)[variable] == value

    def test_an_mtu_to_be_computed_needs_the_nodes(self):
        with pytest.raises(
            ClusterError, match=r"Give cluster\.network\.mtu as a number"
        ):
            build({"cluster.network.mtu": "nodes"}, nic_mtus=())

    def test_it_is_computed_for_kubesprays_default_plugin(self):
        assert added({"cluster.network.mtu": "nodes"}) == {"calico_mtu": 1400}


WRONG_ENTRIES = (
    *("10.0.0.4", "r 10.0.0.4", "0.0.0.0 r", "10.0.0.4 a_b", "10.0.0.4 r # x", "x"),
    *("224.0.0.1 r", "fe80::1%eth0 r", "10.0.0.4 r\n1.1.1.1 x", "10.0.0.4 {{x}}"),
    "10.0.0.4 -r",
)


class TestRegistries:
    LOGIN = {"username": "puller", "password": "pull-s3cret"}
    MIRROR = {"prefix": "docker.io", "mirrors": ["http://10.0.0.3:5000"]}
    PRIVATE = {"prefix": "10.0.0.4:5000", **LOGIN, "skip_tls_verify": True}

    def test_for_containerd(self):
        assert added({"cluster.registries": [self.MIRROR, self.PRIVATE]}) == {
            "containerd_registries_mirrors": [
                {
                    "prefix": "docker.io",
                    "mirrors": [
                        {
                            "host": "http://10.0.0.3:5000",
                            "capabilities": ["pull", "resolve"],
                            "skip_verify": False,
                        }
                    ],
                },
                {
                    "prefix": "10.0.0.4:5000",
                    "mirrors": [
                        {
                            "host": "https://10.0.0.4:5000",
                            "capabilities": ["pull", "resolve"],
                            "skip_verify": True,
                        }
                    ],
                },
            ],
            "containerd_registry_auth": [{"registry": "10.0.0.4:5000", **self.LOGIN}],
        }

    def test_for_crio(self):
        changes = {
            "cluster.container_manager": "crio",
            "cluster.registries": [self.MIRROR, self.PRIVATE],
        }
        assert added(changes) == {
            "container_manager": "crio",
            "crio_registries": [
                {
                    "prefix": "docker.io",
                    "location": "docker.io",
                    "insecure": False,
                    "unqualified": False,
                    "mirrors": [{"location": "10.0.0.3:5000", "insecure": True}],
                },
                {
                    "prefix": "10.0.0.4:5000",
                    "location": "10.0.0.4:5000",
                    "insecure": True,
                    "unqualified": False,
                },
            ],
            "crio_registry_auth": [{"registry": "10.0.0.4:5000", **self.LOGIN}],
        }

    def test_for_docker(self):
        private = {"prefix": "10.0.0.4:5000", "skip_tls_verify": True}
        changes = {
            "cluster.container_manager": "docker",
            "cluster.registries": [self.MIRROR, private],
        }
        assert added(changes) == {
            "container_manager": "docker",
            "docker_registry_mirrors": ["http://10.0.0.3:5000"],
            "docker_insecure_registries": ["10.0.0.3:5000", "10.0.0.4:5000"],
        }

    @pytest.mark.parametrize(
        ("changes", "address", "url"),
        [
            ({}, "10.233.0.10", "http://10.233.0.10:5000"),
            (
                {"master_node.cluster_cidr": "10.96.0.0/12"},
                "10.96.0.10",
                "http://10.96.0.10:5000",
            ),
            (
                IPV6,
                "fd85:ee78:d8a6:8607::100a",
                "http://[fd85:ee78:d8a6:8607::100a]:5000",
            ),
        ],
    )
    def test_nodes_pull_from_the_one_in_the_cluster_at_a_fixed_address(
        self, changes, address, url
    ):
        built = added({**changes, "cluster.node_registry": {}})
        assert built["registry_enabled"] is True
        assert built["registry_service_cluster_ip"] == address
        (own,) = built["containerd_registries_mirrors"]
        assert own["prefix"] == "registry.local:5000"
        assert [mirror["host"] for mirror in own["mirrors"]] == [url]
        assert {"registry_storage_class", "registry_disk_size"}.isdisjoint(built)

    def test_it_comes_beside_the_others_for_crio_too(self):
        changes = {
            "cluster.container_manager": "crio",
            "cluster.registries": [self.MIRROR],
            "cluster.node_registry": {"name": "images.local", "size": "20Gi"},
        }
        built = added(changes)
        assert built["registry_disk_size"] == "20Gi"
        assert built["crio_registries"][1] == {
            "prefix": "images.local",
            "location": "images.local",
            "insecure": False,
            "unqualified": False,
            "mirrors": [{"location": "10.233.0.10:5000", "insecure": True}],
        }

    @pytest.mark.parametrize(
        ("kind", "scheme"), [("0", "http"), (0, "http"), ("1", "https"), (1, "https")]
    )
    def test_those_of_the_kubeadm_drivers_guide_are_the_same(self, kind, scheme):
        given = {"connection_type": kind, "server": "10.0.0.4:5000", **self.LOGIN}
        assert added({"private_registry_connection_info": [given]}) == added(
            {
                "cluster.registries": [
                    {
                        "prefix": "10.0.0.4:5000",
                        "mirrors": [f"{scheme}://10.0.0.4:5000"],
                        **self.LOGIN,
                    }
                ]
            }
        )

    KUBEADM = {
        "connection_type": 1,
        "server": "r.example.org:5000",
        "certificate_path": "Files/ca.crt",
        "hosts_string": "10.0.0.4 r.example.org",
    }

    def test_the_certificate_of_a_private_registry_is_where_the_engine_looks(self):
        given = {"private_registry_connection_info": [self.KUBEADM]}
        place = "/etc/containerd/certs.d/r.example.org:5000/tacker-k8s-mgmt.crt"
        (mirrored,) = added(given)["containerd_registries_mirrors"]
        (mirror,) = mirrored["mirrors"]
        assert (mirror["host"], mirror["ca"]) == ("https://r.example.org:5000", place)
        (registry,) = parsed(given).private_registries
        assert registry.certificate_file("containerd") == place
        for engine, directory in (("crio", "containers"), ("docker", "docker")):
            found = registry.certificate_file(engine)
            assert found == place.replace("containerd", directory)
            options = {**given, "cluster": {"container_manager": engine}}
            assert "tacker-k8s-mgmt.crt" not in str(added(options))
        assert not parsed(given).warnings

    def test_http_needs_no_certificate(self):
        given = {**self.KUBEADM, "connection_type": "0"}
        made = parsed({"private_registry_connection_info": [given]})
        assert made.warnings == (
            "private_registry_connection_info.0.certificate_path: has no effect with "
            "connection_type 0, which is http",
        )
        assert made.private_registries[0].certificate_file("containerd") is None

    @pytest.mark.parametrize(
        ("text", "entry"),
        [
            ("10.0.0.4  r.example.org\t r", None),
            ("10.0.0.4  r.example.org  r", "10.0.0.4 r.example.org r"),
            (" fd00::0:4 r ", "fd00::4 r"),
            *((wrong, None) for wrong in WRONG_ENTRIES),
        ],
    )
    def test_names_are_those_of_a_hosts_file(self, text, entry):
        given = {**self.KUBEADM, "hosts_string": text}
        body = changed({"private_registry_connection_info": [given]})
        if entry is None:
            (problem,) = problems(body)
            assert problem.startswith("private_registry_connection_info.0.hosts_string")
            return
        made = parsed({"private_registry_connection_info": [given]})
        assert registries.hosts_entries(made.private_registries) == (entry,)


class TestOpenStack:
    USER = {
        "auth_url": "https://cloud:5000/v3",
        "region": "one",
        "username": "tacker",
        "password": "user-s3cret",
        "project_name": "p",
        "domain_name": "d",
    }

    def test_neither_component_means_no_variable(self):
        assert added({"cluster.openstack": self.USER}) == {}

    def test_what_is_not_given_is_not_left_to_the_environment(self):
        built = added({"cluster.openstack": self.USER, "cluster.storage.cinder": True})
        assert built == {
            "cinder_csi_enabled": True,
            "persistent_volumes_enabled": True,
            "storage_classes": [
                {
                    "name": "cinder-csi",
                    "is_default": True,
                    "parameters": {"csi.storage.k8s.io/fstype": "ext4"},
                }
            ],
            "cinder_auth_url": "https://cloud:5000/v3",
            "cinder_region": "one",
            "cinder_username": "tacker",
            "cinder_password": "user-s3cret",
            "cinder_tenant_name": "p",
            "cinder_domain_name": "d",
            **{
                f"cinder_{name}": ""
                for name in (
                    *("application_credential_id", "application_credential_name"),
                    *("application_credential_secret", "tenant_id", "domain_id"),
                    "cacert",
                )
            },
        }

    def test_beside_cinder_the_nodes_directories_are_not_the_default(self):
        asked = {"cluster.openstack": self.USER, "cluster.storage.local_path": True}
        name = "local_path_provisioner_is_default_storageclass"
        assert name not in added(asked)
        assert added({**asked, "cluster.storage.cinder": True})[name] == "false"

    def test_a_user_may_have_other_storage_classes(self):
        classes = [{"name": "fast", "parameters": {"type": "nvme"}}]
        built = added(
            {
                "cluster.openstack": self.USER,
                "cluster.storage.cinder": True,
                "kubespray_vars": {"storage_classes": classes},
            }
        )
        assert built["storage_classes"] == classes
        assert built["persistent_volumes_enabled"] is True

    def test_the_cloud_controller_finds_servers_by_their_id(self):
        changes = {"cluster.openstack": {**self.USER, "cloud_controller": True}}
        text = inventory.render(NODES, parsed(changes))
        assert "providerID: openstack:///server-11" in text
        assert "providerID" not in inventory.render(NODES, parsed())


class TestWebhook:
    URL = "https://10.99.0.2:8443/webhook"

    def webhook(self, **given):
        return added({"cluster.authentication.webhook": {"url": self.URL, **given}})

    def test_it_authenticates_alone_by_default(self):
        assert not [name for name in self.webhook() if "authorization" in name]

    def test_it_authorizes_after_rbac(self):
        built = self.webhook(authorization=True, skip_tls_verify=True)
        assert built["authorization_modes"] == ["Node", "RBAC", "Webhook"]
        assert built["kube_webhook_authorization"] is True
        assert built["kube_webhook_authorization_url"] == self.URL
        assert built["kube_webhook_authorization_url_skip_tls_verify"] is True

    def test_that_its_ca_is_for_authentication_only_is_stated(self):
        given = {"url": self.URL, "ca_certificate": CERTIFICATE}
        place = "cluster.authentication.webhook"
        assert parsed({place: given}).warnings == ()
        (warning,) = parsed({place: {**given, "authorization": True}}).warnings
        assert warning.startswith(f"{place}.ca_certificate: is for authentication only")


def test_a_label_that_looks_like_a_number_stays_text():
    text = inventory.render(NODES, parsed({"worker_node.node_labels": ["a=1"]}))
    assert "a: '1'" in text


class TestSecrets:
    SECRETS = (REGISTRY_PASSWORD, *RBD_KEYS, CEPHFS_KEY, "files-s3cret")

    @pytest.mark.parametrize("secret", [*SECRETS, "credential-s3cret"])
    def test_each_is_known_for_redaction_and_is_in_no_text_of_the_model(self, secret):
        made = parsed(ALL)
        assert secret in made.secrets()
        assert secret not in f"{made!r} {made}"
        built = json.dumps(build(ALL))
        assert secret in built
        assert secret not in Redactor(made.secrets())(built)

    def test_those_of_the_guides_registries_too(self):
        given = {
            "connection_type": 1,
            "server": "r",
            "username": "u",
            "password": "guide-s3cret",
        }
        made = parsed({"private_registry_connection_info": [given]})
        assert "guide-s3cret" in made.secrets()
        assert "guide-s3cret" not in repr(made)


def test_the_rich_request_survives_tackers_camel_case():
    body = changed(ALL)
    made = reader.RequestReader().read(request(camelised(body)))
    # Warnings have the names as they are written.
    assert len(made.warnings) == len(parsed(ALL).warnings)
    assert made == parsed(ALL).model_copy(update={"warnings": made.warnings})
