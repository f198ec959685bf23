# SPDX-License-Identifier: Apache-2.0
"""Platform profiles: read strictly, and below what a request says itself."""

import json

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from tacker_k8s_mgmt.errors import ParamError
from tacker_k8s_mgmt.kubespray import variables
from tacker_k8s_mgmt.request import profiles, reader, structure
from tacker_k8s_mgmt.request.installation import ClusterRequest
from tacker_k8s_mgmt.request.profile_document import (
    IN_PACKAGE,
    LARGEST,
    InvalidProfile,
    from_kept,
)
from tests.helpers.full_request import BALANCER, NODES
from tests.helpers.samples import (
    REMOVED,
    changed,
    parsed,
    read,
    refused,
    request,
    updated,
)
from tests.helpers.secret_values import BY_URL, SECRET_URL

PLACE = f"{IN_PACKAGE}/edge.yaml of the VNF package"
WEBHOOK = {"url": "https://keystone.example.org:8443/webhook"}
KEYSTONE = {"cluster.authentication.webhook": WEBHOOK}


def source(**files):
    """The profiles of a package, each by its parameters or its text."""
    made = {
        f"{IN_PACKAGE}/{name}.yaml": content
        if isinstance(content, bytes)
        else yaml.safe_dump({"parameters": content}).encode()
        for name, content in files.items()
    }
    return profiles.of_package(made)


def merged(changes, profile=None) -> ClusterRequest:
    return parsed(
        {"profile": "edge"} | changes, find_profile=source(edge=profile or {})
    )


def problems(changes, profile=None) -> tuple[str, ...]:
    return refused(merged, changes, profile)


class TestMerging:
    def test_what_the_request_has_not_comes_from_the_profile(self):
        profile = {"cluster": {"helm": True, "network": {"plugin": "cilium"}}}
        made = merged({"cluster.metrics_server": True}, profile)
        assert (made.cluster.helm, made.cluster.metrics_server) == (True, True)
        assert made.cluster.network.plugin == "cilium"
        assert made.expansion.places == {
            ("cluster", "helm"): True,
            ("cluster", "network", "plugin"): "cilium",
        }

    def test_it_is_the_same_as_the_parameters_written_out(self):
        profile = {
            "cluster": {"helm": True, "storage": {"local_path": True}},
            "worker_node": {"node_labels": ["a=b"]},
            "drain": {"timeout": 60},
        }
        expected = parsed(
            {
                "cluster.helm": True,
                "cluster.storage.local_path": True,
                "worker_node.node_labels": ["a=b"],
                "drain.timeout": 60,
            }
        )
        made = merged({}, profile)
        assert made.model_copy(update={"expansion": None, "profile": None}) == expected

    @pytest.mark.parametrize("own", ["crio", "containerd"])
    def test_the_request_takes_precedence(self, own):
        profile = {"cluster": {"container_manager": "containerd"}}
        made = merged({"cluster.container_manager": own}, profile)
        assert made.cluster.container_manager == own
        assert made.expansion.places == {}
        replaced = {("cluster", "container_manager"): "containerd"}
        assert made.expansion.replaced == ({} if own == "containerd" else replaced)

    def test_blank_text_of_a_template_is_none_of_the_request(self):
        made = merged(
            {"cluster.container_manager": " "},
            {"cluster": {"container_manager": "crio"}},
        )
        assert made.cluster.container_manager == "crio"

    @pytest.mark.parametrize(
        "changes",
        [
            {"cluster.authentication.webhook": None},
            {"cluster.authentication": None},
            {"cluster": None},
        ],
        ids=str,
    )
    def test_null_leaves_out_what_the_profile_has(self, changes):
        profile = {"cluster": {"authentication": {"webhook": WEBHOOK}}}
        made = merged(changes, profile)
        assert made.cluster.authentication.webhook is None
        assert "webhook" not in json.dumps(made.expansion.kept())

    def test_labels_and_taints_and_registries_are_merged_by_their_keys(self):
        made = merged(
            {
                "worker_node.node_labels": ["kind=video", "own=1"],
                "worker_node.node_taints": ["a=1:NoSchedule"],
                "cluster.registries": [{"prefix": "docker.io"}],
            },
            {
                "worker_node": {
                    "node_labels": ["kind=any", "role=compute"],
                    "node_taints": ["a=2:NoSchedule", "a=2:NoExecute"],
                },
                "cluster": {
                    "registries": [
                        {"prefix": "docker.io", "skip_tls_verify": True},
                        {"prefix": "quay.io"},
                    ]
                },
            },
        )
        assert made.workers.node_labels == ("kind=video", "own=1", "role=compute")
        assert made.workers.node_taints == ("a=1:NoSchedule", "a=2:NoExecute")
        assert [one.prefix for one in made.cluster.registries] == [
            "docker.io",
            "quay.io",
        ]
        assert made.expansion.places == {
            ("worker_node", "node_labels", "2"): "role=compute",
            ("worker_node", "node_taints", "1"): "a=2:NoExecute",
            ("cluster", "registries", "1"): {"prefix": "quay.io"},
        }
        assert made.expansion.replaced[("worker_node", "node_labels", "0")] == (
            "kind=any"
        )

    def test_variables_are_merged_by_name(self):
        profile = {"kubespray_vars": {"event_ttl_duration": "1h", "calico_mtu": 1400}}
        made = merged({"kubespray_vars": {"calico_mtu": 1450}}, profile)
        assert made.kubespray_vars == {"event_ttl_duration": "1h", "calico_mtu": 1450}

    def test_secrets_by_reference_are_those_of_the_request(self):
        private = {"prefix": "r.example.org", "username": "u", "password": BY_URL}
        profile = {"cluster": {"registries": [private]}}
        made = parsed(
            {"profile": "edge"},
            resolver=lambda _: "pull-s3cret",
            find_profile=source(edge=profile),
        )
        (registry,) = made.cluster.registries
        assert registry.password.get_secret_value() == "pull-s3cret"
        assert "pull-s3cret" in made.secrets()
        kept = json.dumps(made.expansion.kept())
        assert SECRET_URL in kept
        assert "pull-s3cret" not in kept

    @given(st.data())
    def test_every_attribute_of_the_request_holds_whatever_a_profile_has(self, data):
        choices = {
            "container_manager": st.sampled_from(["containerd", "crio"]),
            "helm": st.booleans(),
            "metrics_server": st.booleans(),
            "audit_log": st.booleans(),
            "verify_pod_network": st.booleans(),
        }
        some = st.fixed_dictionaries({}, optional=choices)
        own, others = data.draw(some), data.draw(some)
        made = merged({"cluster": own}, {"cluster": others}).cluster
        for name in choices:
            expected = own.get(name, others.get(name))
            if expected is not None:
                assert getattr(made, name) == expected


class TestContradictions:
    def test_each_names_the_profile_that_has_given_the_value(self):
        found = problems(
            {"cluster.network.plugin": "flannel"},
            {"cluster": {"network": {"plugin": "calico", "encapsulation": "ipip"}}},
        )
        assert found == (
            "cluster.network.encapsulation (profile edge): with flannel it can be "
            "vxlan or none",
        )

    def test_a_variable_beside_an_attribute_of_the_profile(self):
        found = problems(
            {"kubespray_vars": {"helm_enabled": True}}, {"cluster": {"helm": True}}
        )
        assert found == (
            "kubespray_vars.helm_enabled: cannot be set beside cluster.helm (profile "
            "edge), which stands for it",
        )

    def test_what_a_profile_needs(self):
        text = (
            b"parameters:\n"
            b"  cluster: {authentication: {webhook: {authorization: true}}}\n"
            b"needs:\n  cluster.authentication.webhook.url: give Keystone's\n"
        )
        found = problems({}, text)
        assert found == (
            "cluster.authentication.webhook.url (profile edge): is missing: give "
            "Keystone's",
        )
        assert merged(KEYSTONE, text).cluster.authentication.webhook.authorization
        without = {"cluster.authentication.webhook": None}
        assert merged(without, text).cluster.authentication.webhook is None


WRONG = {
    "unknown": (
        {"cluster": {"helmm": True}},
        "parameters.cluster.helmm: is not a known attribute; did you mean helm?",
    ),
    "of a wrong type": (
        {"cluster": {"helm": "yes"}},
        "parameters.cluster.helm: must be true or false",
    ),
    "of one cluster": (
        {"ansible": {"ip_address": "10.0.0.1"}},
        "parameters.ansible: is of one cluster; give it in the request",
    ),
    "a login": (
        {"worker_node": {"username": "ubuntu"}},
        "parameters.worker_node.username: is of one cluster; give it in the request",
    ),
    "another profile": (
        {"profile": "starlingx"},
        "parameters.profile: is of one cluster; give it in the request",
    ),
    "a secret": (
        {"cluster": {"registries": [{"prefix": "r", "password": "s3cret"}]}},
        "parameters.cluster.registries.0.password: is a secret; give it in the "
        "request, or a reference",
    ),
    "a secret variable": (
        {"kubespray_vars": {"some_password": "s3cret"}},
        "parameters.kubespray_vars.some_password: is a secret; give it in the request, "
        "or a reference",
    ),
    "no YAML": (b"parameters: {a: [", "is no valid YAML in line 2"),
    "no mapping": (b"- a\n", "must be a mapping with parameters"),
    "no parameters": (b"parameters: yes\n", "parameters: must be a mapping"),
    "no UTF-8": (b"parameters: {a: \xff}", "is no text in UTF-8"),
    "an unknown part": (
        b"parameters: {}\nother: 1\n",
        "other: is not a part of a profile; it has description, parameters, needs",
    ),
    "the same twice": (
        b"parameters:\n  cluster: {}\n  cluster: {}\n",
        "has 'cluster' twice in line 3",
    ),
    "an alias": (
        b"parameters: {cluster: &a {}, drain: *a}\n",
        "has an alias in line 1",
    ),
    "an object": (
        b"parameters: !!python/name:os.system x\n",
        "is no valid YAML in line 1",
    ),
    "a number as a name": (
        b"parameters: {cluster: {1: true}}\n",
        "parameters.cluster.1: a name must be text; put it in quotes",
    ),
    "binary": (
        b"parameters: {kubespray_vars: {a: !!binary aGVsbG8=}}\n",
        "parameters.kubespray_vars.a: must be text, a number, true, false, a list or a "
        "mapping",
    ),
    "infinite": (
        b"parameters: {kubespray_vars: {a: .inf}}\n",
        "parameters.kubespray_vars.a: must be a finite number",
    ),
    "nested": (b"parameters: " + b"[" * 5000, "is nested too deeply in line 1"),
    "large": (b"#" * (LARGEST + 1), f"is larger than {LARGEST} bytes"),
    "an unknown need": (
        b"parameters: {}\nneeds: {cluster.foo: why}\n",
        "needs.cluster.foo: is not a known attribute",
    ),
    "a need without a reason": (
        b"parameters: {}\nneeds: {cluster.helm: ''}\n",
        "needs.cluster.helm: must have the reason as text",
    ),
}


class TestFiles:
    @pytest.mark.parametrize("name", WRONG)
    def test_what_is_wrong_with_one_is_a_problem_of_the_request(self, name):
        profile, text = WRONG[name]
        assert problems({}, profile) == (f"profile: {PLACE}: {text}",)

    def test_all_problems_come_at_once_beside_those_of_the_request(self):
        profile = {"cluster": {"helm": 3, "audit": True}, "bastion": {}}
        found = problems({"drain.timeout": "long"}, profile)
        assert [
            text.rpartition(f"{PLACE}: ")[2].partition(":")[0] for text in found
        ] == [
            "parameters.cluster.audit",
            "parameters.bastion",
            "parameters.cluster.helm",
            "drain.timeout",
        ]

    def test_no_problem_repeats_a_value(self):
        profile = {
            "cluster": {"helm": "s3cret", "s3cret-name": 1, "registries": "s3cret"}
        }
        assert "s3cret " not in " ".join(problems({}, profile))

    def test_a_date_is_text(self):
        text = b"parameters: {kubespray_vars: {a_day: 2026-11-24}}\n"
        assert merged({}, text).kubespray_vars == {"a_day": "2026-11-24"}

    def test_an_unknown_name_is_refused_with_those_of_the_driver(self):
        assert refused(parsed, {"profile": "starlingxx"}) == (
            "profile: there is no profile starlingxx; the driver has starlingx",
        )
        assert problems({"profile": "core"}) == (
            f"profile: there is no {IN_PACKAGE}/core.yaml of the VNF package, and the "
            "driver has starlingx",
        )

    @pytest.mark.parametrize("name", ["../edge", "Edge", "a b", "x" * 64, "-a", 5])
    def test_a_name_that_is_no_name_is_not_looked_for(self, name):
        def fail(name):
            raise AssertionError(name)

        (problem,) = refused(parsed, {"profile": name}, find_profile=fail)
        assert problem.startswith("profile: must be")

    def test_two_of_a_name_are_refused(self):
        with pytest.raises(InvalidProfile) as caught:
            source(starlingx={})("starlingx")
        assert caught.value.problems == (
            "there are several profiles starlingx: Files/profiles/starlingx.yaml of "
            "the VNF package and of tacker-k8s-mgmt; rename one",
        )

    def test_every_attribute_that_a_profile_may_have_is_one(self):
        known = structure.border_names(ClusterRequest)
        for name, inner in profiles.ATTRIBUTES.items():
            assert name in known
            if inner is not None:
                assert set(inner) <= set(structure.border_names(known[name]))


class TestForLife:
    """What a profile stood for at instantiation holds."""

    BEFORE = {"cluster": {"helm": True, "container_manager": "crio"}}
    STORED = request(changed({"profile": "edge", "cluster.helm": False}))

    def kept(self):
        made = read(self.STORED, find_profile=source(edge=self.BEFORE))
        # Through Tacker's database.
        return json.loads(json.dumps(made.expansion.kept()))

    def later(self, change, **options):
        find = profiles.kept_or(self.kept(), profiles.lost)
        override = request(change) if change else None
        return updated(self.STORED, override, find_profile=find, **options)

    def test_a_later_request_finds_what_is_kept(self):
        made = self.later(None)
        assert (made.cluster.helm, made.cluster.container_manager) == (False, "crio")

    def test_it_may_change_what_may_change(self):
        made = self.later({"drain": {"timeout": 60}, "profile": "edge"})
        assert (made.drain.timeout, made.cluster.container_manager) == (60, "crio")

    def test_it_may_repeat_but_not_change_what_the_profile_has_given(self):
        self.later({"cluster": {"container_manager": "crio"}})
        change = {"cluster": {"container_manager": "containerd"}}
        assert refused(self.later, change) == (
            "cluster.container_manager: cannot be changed after instantiation; all "
            "nodes have the same",
        )

    def test_the_profile_itself_cannot_change(self):
        assert refused(self.later, {"profile": "starlingx"}) == (
            "profile: cannot be changed after instantiation; what it stands for holds "
            "for life",
        )

    def test_what_a_later_request_replaces_is_not_the_profiles_any_more(self):
        stored = request(changed({"profile": "edge"}))
        registries = {"cluster": {"registries": [{"prefix": "a"}], "offline": {}}}
        find = source(edge=registries)
        change = request({"cluster": {"registries": [{"prefix": "b"}]}})
        made = updated(stored, change, find_profile=find)
        assert made.expansion.places == {}

    def test_parameters_without_secrets_keep_the_name_only(self):
        kept = reader.without_secrets(self.STORED)["k8s_cluster_installation_param"]
        assert kept["profile"] == "edge"
        assert "container_manager" not in kept["cluster"]

    def test_stored_secrets_are_completed_below_it(self):
        stored = reader.without_secrets(self.STORED)
        find = profiles.kept_or(self.kept(), profiles.lost)
        made = reader.RequestReader(find_profile=find).with_former_secrets(
            stored, [self.STORED]
        )
        assert made.cluster.container_manager == "crio"

    def test_without_what_is_kept_the_metadata_are_asked_for(self):
        with pytest.raises(ParamError, match="give the metadata back what they were"):
            updated(self.STORED, None, find_profile=profiles.lost)

    @pytest.mark.parametrize(
        "kept", ["text", {}, {"name": "edge"}, {"name": 1, "parameters": {}}, []]
    )
    def test_what_is_not_as_it_was_kept_is_refused(self, kept):
        with pytest.raises(InvalidProfile, match="is not as this driver stores it"):
            from_kept(kept)

    def test_a_kept_one_is_checked_again(self):
        kept = {"name": "edge", "parameters": {"ansible": {"ip_address": "10.0.0.9"}}}
        find = profiles.kept_or(kept, profiles.lost)
        with pytest.raises(ParamError, match="is of one cluster"):
            updated(self.STORED, None, find_profile=find)


class TestStarlingX:
    def built(self, changes):
        made = parsed({"profile": "starlingx", **changes})
        return variables.build(made, NODES, BALANCER)

    def test_it_is_a_platform(self):
        made = parsed({"profile": "starlingx", **KEYSTONE})
        assert made.control_plane.node_labels == ("openstack-control-plane=enabled",)
        assert made.workers.node_labels == ("openstack-compute-node=enabled",)
        built = self.built(KEYSTONE)
        assert {
            "container_manager": "containerd",
            "kube_network_plugin": "calico",
            "helm_enabled": True,
            "local_path_provisioner_enabled": True,
            "registry_enabled": True,
            "registry_storage_class": "local-path",
            "registry_service_cluster_ip": "10.233.0.10",
            "kube_webhook_token_auth": True,
            "kube_webhook_token_auth_url": WEBHOOK["url"],
            "kube_webhook_authorization": True,
            "authorization_modes": ["Node", "RBAC", "Webhook"],
        }.items() <= built.items()

    def test_it_asks_for_keystones_webhook(self):
        assert refused(parsed, {"profile": "starlingx", "cluster": REMOVED}) == (
            "cluster.authentication.webhook.url (profile starlingx): is missing: give "
            'the URL of the site\'s k8s-keystone-auth, or "webhook": null for a '
            "cluster without Keystone",
        )

    def test_it_goes_without_keystone(self):
        built = self.built({"cluster.authentication.webhook": None})
        assert not [name for name in built if "webhook" in name]

    def test_volumes_of_ceph_may_take_the_place_of_local_ones(self):
        built = self.built(
            {
                "cluster.authentication.webhook": None,
                "cluster.storage": {
                    "local_path": False,
                    "ceph_rbd": {
                        "monitors": ["10.0.0.1:6789"],
                        "admin_key": "s3cret-a",
                        "user_key": "s3cret-u",
                    },
                },
                "cluster.node_registry": {"storage_class": "rbd"},
            }
        )
        assert built["rbd_provisioner_enabled"] is True
        assert built["registry_storage_class"] == "rbd"
        assert "local_path_provisioner_enabled" not in built
