import copy

import pytest
from pydantic import SecretStr

from tacker_k8s_mgmt.cluster import params, spelling
from tacker_k8s_mgmt.cluster.params import InstallParams
from tacker_k8s_mgmt.errors import ParamError
from tests.unit.cluster.samples import REMOVED, SIMPLE, changed, parsed, request

# The body in the specification's section "Request parameters for operation".
SPECIFICATION = {
    "script_path": "",
    "vim_name": "kubernetes_vim",
    "ansible": {
        "ip_address": "0.0.0.0",
        "username": "ansible",
        "password": "ansible",
        "kubespray_root_path": "",
        "transferring_inventory_path": "",
    },
    "master_node": {
        "aspect_id": "master_instance",
        "ssh_cp_name": "masterNode_CP1",
        "nic_cp_name": "masterNode_CP1",
        "username": "ubuntu",
        "password": "ubuntu",
        "pod_cidr": "192.168.3.0/16",
        "cluster_cidr": "10.199.187.0/24",
        "cluster_cp_name": "masterNode_CP1",
    },
    "worker_node": {
        "aspect_id": "worker_instance",
        "ssh_cp_name": "workerNode_CP2",
        "nic_cp_name": "workerNode_CP2",
        "username": "ubuntu",
        "password": "ubuntu",
    },
    "proxy": {
        "http_proxy": "http://user1:password1@host1:port1",
        "https_proxy": "https://user2:password2@host2:port2",
        "no_proxy": "192.168.246.0/24,10.0.0.1",
        "k8s_node_cidr": "10.10.0.0/24",
    },
    "external_lb_param": {
        "ssh_cp_name": "externalLB_instance",
        "ssh_username": "ubuntu",
        "ssh_password": "ubuntu",
        "script_path": "./Scripts/ExternalLB_installation.sh",
    },
}


def problems(body) -> tuple[str, ...]:
    with pytest.raises(ParamError) as caught:
        params.parse(request(body))
    return caught.value.problems


def camelised(value):
    """A request as Tacker's GET view shows it."""
    if isinstance(value, dict):
        return {spelling.camel(name): camelised(inner) for name, inner in value.items()}
    return value


class TestDormant:
    @pytest.mark.parametrize(
        "additional_params",
        [
            pytest.param(None, id="none"),
            pytest.param({}, id="empty"),
            pytest.param({"lcm-operation-user-data": "x.py"}, id="others-only"),
            pytest.param({"k8s_cluster_installation_param": None}, id="null"),
        ],
    )
    def test_without_the_attribute_nothing_is_asked(self, additional_params):
        assert params.parse(additional_params) is None

    @pytest.mark.parametrize("value", ["text", 5, ["list"], False])
    def test_anything_but_a_structure_is_refused(self, value):
        assert problems(value) == ("the attribute itself must be a structure",)


class TestTheSpecificationsSample:
    def test_only_its_placeholders_are_problems(self):
        assert problems(SPECIFICATION) == (
            "ansible.ip_address: must be the address of a host; this one is a "
            "placeholder",
            "ansible.kubespray_root_path: must not be empty",
            "ansible.transferring_inventory_path: must not be empty",
        )

    def test_with_the_placeholders_filled_in_it_works_and_warns(self):
        body = {
            **SPECIFICATION,
            "ansible": {
                **SPECIFICATION["ansible"],
                "ip_address": "192.0.2.5",
                "kubespray_root_path": "/opt/kubespray",
                "transferring_inventory_path": "/opt/clusters/one",
            },
        }
        made = params.parse(request(body))
        assert str(made.pod_cidr) == "192.168.0.0/16"
        assert made.warnings == (
            "master_node.cluster_cp_name: is not used, the API's address is the load "
            "balancer's, or else the control plane's",
            "master_node.pod_cidr: is taken as 192.168.0.0/16",
            "proxy.http_proxy: the URL has no valid port",
            "proxy.https_proxy: the URL has no valid port",
        )


def test_every_attribute_arrives():
    made = parsed(
        {
            "ansible.port": 2222,
            "external_lb_param.api_port": 8443,
            "proxy": {"http_proxy": "http://p:3128", "no_proxy": " a, b ,"},
            "proxy.k8s_node_cidr": "10.10.0.0/24",
            "kubespray_vars": {"helm_enabled": True},
        }
    )
    assert made.vim_name == "kubernetes_vim"
    assert (made.ansible.host, made.ansible.port) == ("10.99.0.5", 2222)
    assert made.ansible.kubespray_root == "/opt/kubespray"
    assert made.ansible.venv == "/opt/ansible-venv"
    assert made.ansible.directory == "/home/ansible/clusters/simple"
    assert made.ansible.password == SecretStr("ans-s3cret")
    assert made.control_plane.aspect_id is None
    assert made.control_plane.ssh_cp == "masterNode_CP1"
    assert made.workers.aspect_id == "worker_instance"
    assert made.workers.nic_cp == "workerNode_CP1"
    assert (str(made.pod_cidr), str(made.service_cidr)) == (
        "10.233.64.0/18",
        "10.233.0.0/18",
    )
    assert made.load_balancer.username == "ubuntu"
    assert made.load_balancer.script_path == "Scripts/install_external_lb.sh"
    assert made.load_balancer.api_port == 8443
    assert made.proxy.no_proxy == ("a", "b")
    assert made.kubespray_vars == {"helm_enabled": True}
    assert made.warnings == ()


def test_optional_attributes_may_be_left_out_null_or_blank():
    made = parsed(
        {
            "ansible.venv_path": "",
            "external_lb_param": None,
            "master_node.pod_cidr": "",
            "master_node.cluster_cidr": None,
            "vim_name": REMOVED,
            "worker_node.aspect_id": " ",
            "proxy": {"http_proxy": "", "no_proxy": None},
        }
    )
    assert made.ansible.venv is None
    assert made.load_balancer is None
    assert (made.pod_cidr, made.service_cidr, made.vim_name) == (None, None, None)
    assert made.workers.aspect_id is None
    assert made.proxy.http_proxy is None
    assert made.proxy.no_proxy == ()


class TestSpelling:
    def test_what_tackers_get_view_shows_can_be_sent(self):
        body = changed({"kubespray_vars": {"kube_network_plugin": "calico"}})
        shown = {"k8sClusterInstallationParam": camelised(body)}
        assert params.parse(shown) == params.parse(request(body))

    def test_names_that_the_view_changed_for_good_are_refused(self):
        body = {**SIMPLE, "kubesprayVars": {"metallbConfig": {"addressPools": {}}}}
        assert problems(body) == (
            "kubesprayVars.metallbConfig: Tacker's output has changed the names "
            "inside; write them as kubespray has them, under kubespray_vars",
        )

    def test_capitals_inside_variables_are_fine_under_the_specifications_name(self):
        variables = {"kubelet_config_extra_args": {"maxPods": 50}}
        assert parsed({"kubespray_vars": variables}).kubespray_vars == variables

    def test_problems_use_the_users_spelling(self):
        body = camelised(changed({"master_node.pod_cidr": "x", "ansible.port": "22"}))
        assert problems(body) == (
            "ansible.port: must be a whole number",
            "masterNode.podCidr: must be a network such as 10.233.64.0/18",
        )

    def test_an_attribute_in_both_spellings_is_refused(self):
        body = {**SIMPLE, "masterNode": {}}
        assert problems(body) == (
            "masterNode: is given twice, the first is master_node",
        )

    @pytest.mark.parametrize(
        ("unknown", "expected"),
        [
            pytest.param(
                "worker_node.pasword",
                "worker_node.pasword: is not a known attribute; did you mean password?",
                id="near-a-known-name",
            ),
            pytest.param(
                "master_nodes",
                "master_nodes: is not a known attribute; did you mean master_node?",
                id="at-the-top",
            ),
            pytest.param(
                "ansible.zzz",
                "ansible.zzz: is not a known attribute",
                id="far-from-all",
            ),
            pytest.param(
                "ansible.a b\n",
                "ansible.'a b\\n': is not a known attribute",
                id="odd-characters",
            ),
            pytest.param(
                "warnings", "warnings: is not a known attribute", id="not-of-the-border"
            ),
            pytest.param(
                "control_plane",
                "control_plane: is not a known attribute",
                id="our-name",
            ),
        ],
    )
    def test_unknown_attributes_are_refused_with_the_nearest_known(
        self, unknown, expected
    ):
        assert problems(changed({unknown: "x"})) == (expected,)

    def test_attributes_of_the_kubeadm_driver_are_accepted_and_said_to_be_unused(self):
        ignored = {
            "script_path": "Scripts/install_k8s_cluster.sh",
            "helm_installation_script_path": "Scripts/install_helm.sh",
            "pv_registration_params": [{"nfs_server_cp": "x"}],
            "storage_server": {"password": "pw"},
            "master_node.cluster_cp_name": "vip_CP",
            "master_node.cluster_fip_name": "vip_FIP",
        }
        names = [
            warning.partition(": is not used, ")[0]
            for warning in parsed(ignored).warnings
        ]
        assert sorted(names) == sorted(ignored)


MISSING = [
    *("ansible", "master_node", "worker_node"),
    *(f"ansible.{name}" for name in ("ip_address", "username")),
    *(
        f"ansible.{name}"
        for name in ("kubespray_root_path", "transferring_inventory_path")
    ),
    *(
        f"{group}.{name}"
        for group in ("master_node", "worker_node")
        for name in ("ssh_cp_name", "nic_cp_name", "username")
    ),
    *(
        f"external_lb_param.{name}"
        for name in ("ssh_cp_name", "ssh_username", "script_path")
    ),
]


@pytest.mark.parametrize("name", MISSING)
def test_a_missing_attribute_is_named(name):
    (problem,) = problems(changed({name: REMOVED}))
    assert problem.startswith(f"{name}: is missing")


@pytest.mark.parametrize("group", ["master_node", "worker_node"])
def test_a_login_by_floating_ip_still_needs_the_port_of_the_vm(group):
    # Whatever ssh_cp_name is: only the port has an address that is on the VM itself.
    assert problems(changed({f"{group}.nic_cp_name": REMOVED})) == (
        f"{group}.nic_cp_name: is missing; it names the port with the node's address "
        "in the cluster, which a floating IP is not",
    )


def test_a_request_is_left_as_it_was():
    given = request(SPECIFICATION)
    before = copy.deepcopy(given)
    with pytest.raises(ParamError):
        params.parse(given)
    params.parse(given := request(changed({"proxy": {"http_proxy": "http://p:1"}})))
    assert request(SPECIFICATION) == before
    assert given == request(changed({"proxy": {"http_proxy": "http://p:1"}}))


def test_a_missing_ansible_structure_says_why_it_is_needed():
    assert problems(changed({"ansible": REMOVED})) == (
        "ansible: is missing; it names the Ansible server, without which nothing can "
        "be installed",
    )


HOST = "must be an IP address or a host name"
NETWORK = "must be a network such as 10.233.64.0/18"
SHARED = (
    "must be a directory of this cluster's own, which is deleted with it, such as "
    "/home/<user>/clusters/<name>; this one is shared"
)
SYSTEM = "must not be below a directory of the operating system"
PROXY = "must be an http:// or https:// URL with a host"
ENCODE = "must have blanks and { } / ? # percent-encoded"
PORT = "must be from 1 to 65535"
WRONG = [
    ("ansible", "text", "must be a structure with attributes"),
    (
        "ansible.ip_address",
        "10.0.0.0/8",
        "must be one address or host name, not a network",
    ),
    ("ansible.ip_address", "300.1.1.1", HOST),
    ("ansible.ip_address", "-a.example", HOST),
    ("ansible.ip_address", "under_score", HOST),
    ("ansible.ip_address", "a" * 64, HOST),
    ("ansible.ip_address", "a.b" * 90, HOST),
    ("ansible.ip_address", "", "must not be empty"),
    ("ansible.ip_address", ["10.0.0.1"], "must be text"),
    (
        "ansible.ip_address",
        "::",
        "must be the address of a host; this one is a placeholder",
    ),
    ("ansible.port", 0, PORT),
    ("ansible.port", 65536, PORT),
    ("ansible.port", True, "must be a whole number"),
    ("ansible.username", "", "must not be empty"),
    ("ansible.password", 12345, "must be text"),
    ("ansible.allow_unknown_release", "true", "must be true or false"),
    ("address_family", "ipv5", "must be 'ipv4' or 'ipv6'"),
    ("address_family", ["ipv4"], "must be 'ipv4' or 'ipv6'"),
    ("drain", "fast", "must be a structure with attributes"),
    ("drain.timeout", 0, "must be from 1 to 86400"),
    ("drain.timeout", "300", "must be a whole number"),
    ("drain.grace_period", -2, "must be from -1 to 86400"),
    ("drain.on_failure", "ignore", "must be 'abort' or 'force'"),
    ("drain.delete_emptydir_data", 1, "must be true or false"),
    ("drain.disable_eviction", "no", "must be true or false"),
    ("drain.parallel", 0, "must be from 1 to 100"),
    ("ansible.password", "two\nlines", "must not contain control characters"),
    ("ansible.password", "half \ud800", "must not contain control characters"),
    (
        "ansible.kubespray_root_path",
        "kubespray",
        "must be an absolute path (it starts with /)",
    ),
    ("ansible.kubespray_root_path", "/opt/../etc", "must not contain '..'"),
    ("ansible.venv_path", "~/venv", "must be an absolute path (it starts with /)"),
    (
        "ansible.transferring_inventory_path",
        "inventory/mycluster",
        "must be an absolute path (it starts with /)",
    ),
    *(
        ("ansible.transferring_inventory_path", path, SHARED)
        for path in (
            "/home",
            "/home/ansible",
            "/home/ansible/",
            "/root",
            "/tmp",
            "/var/lib",
            "/clusters",
        )
    ),
    *(
        ("ansible.transferring_inventory_path", path, SYSTEM)
        for path in (
            "/etc",
            "/etc/ansible/x",
            "/usr/local/clusters",
            "//etc/x",
            "/dev/shm/x",
        )
    ),
    *(
        (
            "ansible.transferring_inventory_path",
            f"/srv/clusters/o{character}e",
            "must not contain colon, percent or dollar sign, or quotes",
        )
        for character in ":%$\"'"
    ),
    (
        "ansible.transferring_inventory_path",
        "/opt/kubespray",
        "is deleted with the cluster, so ansible.kubespray_root_path must not be in it",
    ),
    (
        "ansible.venv_path",
        "/home/ansible/clusters/simple/venv",
        None,
    ),
    ("master_node.pod_cidr", "10.0.0.1", NETWORK),
    ("master_node.pod_cidr", "10.0.0.0/33", NETWORK),
    ("master_node.cluster_cidr", 10, NETWORK),
    (
        "master_node.cluster_cidr",
        "fd00::/108",
        "must be of the family that address_family names, ipv4",
    ),
    ("worker_node.ssh_cp_name", "", "must not be empty"),
    ("worker_node.ssh_cp_name", "x" * 256, "must have 1 to 255 characters"),
    ("vim_name", "", "must not be empty"),
    ("vim_name", "x" * 256, "must have 1 to 255 characters"),
    ("proxy.http_proxy", "proxy:3128", PROXY),
    ("proxy.http_proxy", "ftp://proxy", PROXY),
    ("proxy.https_proxy", "http://[::1", PROXY),
    (
        "proxy.https_proxy",
        "http://u:{{p}}@proxy",
        ENCODE,
    ),
    *(
        ("proxy.http_proxy", f"http://user:pa{character}ss@proxy:3128", ENCODE)
        for character in "/?# "
    ),
    ("proxy.no_proxy", ["a"], "must be text: names and addresses with commas between"),
    ("proxy.k8s_node_cidr", "10.10.0.0", NETWORK),
    (
        "external_lb_param.script_path",
        "/etc/shadow",
        "must be relative to the top of the VNF package",
    ),
    *(
        (
            "external_lb_param.script_path",
            path,
            "must name a file inside the VNF package",
        )
        for path in ("../x.sh", "Scripts/../../x.sh", ".", "./", "a/..")
    ),
    ("external_lb_param.api_port", 6443.5, "must be a whole number"),
    ("kubespray_vars", ["x"], "must be a structure with attributes"),
]


@pytest.mark.parametrize(
    ("name", "value", "expected"),
    [pytest.param(*case, id=f"{case[0]}={case[1]!r}"[:60]) for case in WRONG],
)
def test_a_wrong_value_is_one_readable_problem(name, value, expected):
    found = problems(changed({name: value}))
    if expected is None:
        expected = f"is deleted with the cluster, so {name} must not be in it"
        name = "ansible.transferring_inventory_path"
    assert found == (f"{name}: {expected}",)


@pytest.mark.parametrize("path", ["/", "//", "/opt/.", "/./"])
def test_the_root_of_everything_is_never_owned(path):
    found = problems(changed({"ansible.transferring_inventory_path": path}))
    assert found[0] == f"ansible.transferring_inventory_path: {SHARED}"


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("ansible.ip_address", "ansible.example.org"),
        ("ansible.ip_address", "ansible.example.org."),
        ("ansible.ip_address", "2001:db8::5"),
        ("ansible.ip_address", "127.0.0.1"),
        ("ansible.transferring_inventory_path", "/opt/kubespray/inventory/mycluster"),
        ("ansible.transferring_inventory_path", "/root/clusters"),
        ("ansible.password", "blanks and {{ braces }} ' \" ü"),
        ("vim_name", "x" * 255),
        ("proxy.http_proxy", "http://user:pa%20ss@[2001:db8::1]:3128/"),
        ("proxy.k8s_node_cidr", "2001:db8::/64"),
        ("external_lb_param.script_path", "Scripts/sub/../lb.sh"),
    ],
)
def test_unusual_but_right_values_are_taken(name, value):
    assert parsed({name: value})


class TestAddressFamily:
    IPV6 = {
        "address_family": "ipv6",
        "master_node.pod_cidr": "fd00:10::7/112",
        "master_node.cluster_cidr": "fd00:20::/116",
    }

    def test_networks_may_be_of_the_other_one_when_it_is_asked_for(self):
        made = parsed(self.IPV6)
        assert (str(made.pod_cidr), str(made.service_cidr)) == (
            "fd00:10::/112",
            "fd00:20::/116",
        )
        assert "master_node.pod_cidr: is taken as fd00:10::/112" in made.warnings

    def test_networks_of_both_are_refused_each(self):
        mixed = {**self.IPV6, "master_node.cluster_cidr": "10.233.0.0/18"}
        assert problems(changed(mixed)) == (
            "master_node.cluster_cidr: must be of the family that address_family "
            "names, ipv6",
        )

    def test_defaults_of_the_right_family_are_compared(self):
        near = {**self.IPV6, "master_node.cluster_cidr": REMOVED}
        near["master_node.pod_cidr"] = "fd85:ee78:d8a6:8607::/64"
        (problem,) = problems(changed(near))
        assert "kubespray's default fd85:ee78:d8a6:8607::1000/116" in problem

    @pytest.mark.parametrize(
        ("name", "family", "expected"),
        [
            ("ipv4_stack", "ipv4", "use address_family"),
            ("ipv6_stack", "ipv4", None),
            ("kube_pods_subnet_ipv6", "ipv4", None),
            ("ipv4_stack", "ipv6", "use address_family"),
            ("ipv6_stack", "ipv6", "use address_family"),
            ("kube_pods_subnet_ipv6", "ipv6", "use master_node.pod_cidr"),
            ("kube_service_addresses_ipv6", "ipv6", "use master_node.cluster_cidr"),
        ],
    )
    def test_variables_of_both_together_are_open_beside_ipv4_only(
        self, name, family, expected
    ):
        changes = {**(self.IPV6 if family == "ipv6" else {})}
        body = changed({**changes, "kubespray_vars": {name: "x"}})
        if expected is None:
            assert params.parse(request(body))
        else:
            assert problems(body) == (
                f"kubespray_vars.{name}: cannot be set here; {expected}",
            )


class TestDrain:
    def test_nothing_given_is_the_careful_way(self):
        for changes in ({}, {"drain": {}}, {"drain": None}):
            made = parsed(changes).drain
            assert (made.timeout, made.grace_period, made.parallel) == (300, -1, 5)
            assert (made.on_failure, made.disable_eviction) == ("abort", False)
            assert made.delete_emptydir_data is True

    def test_everything_arrives(self):
        given = {
            "timeout": 60,
            "grace_period": 0,
            "on_failure": "force",
            "delete_emptydir_data": False,
            "disable_eviction": True,
            "parallel": 1,
        }
        assert parsed({"drain": given}).drain.model_dump() == given


class TestNetworks:
    @pytest.mark.parametrize(
        ("changes", "expected"),
        [
            pytest.param(
                {"master_node.pod_cidr": "10.233.0.0/16"},
                "master_node.pod_cidr: 10.233.0.0/16 overlaps master_node.cluster_cidr "
                "(10.233.0.0/18)",
                id="pods-services",
            ),
            pytest.param(
                {"proxy.k8s_node_cidr": "10.233.64.0/24"},
                "master_node.pod_cidr: 10.233.64.0/18 overlaps proxy.k8s_node_cidr "
                "(10.233.64.0/24)",
                id="pods-nodes",
            ),
            pytest.param(
                {
                    "master_node.pod_cidr": "10.233.0.0/17",
                    "master_node.cluster_cidr": REMOVED,
                },
                "master_node.pod_cidr: 10.233.0.0/17 overlaps master_node.cluster_cidr "
                "(kubespray's default 10.233.0.0/18)",
                id="with-a-default",
            ),
        ],
    )
    def test_overlaps_are_named_with_both_networks(self, changes, expected):
        assert problems(changed(changes)) == (expected,)

    def test_other_problems_do_not_hide_an_overlap(self):
        found = problems(
            changed({"master_node.pod_cidr": "10.233.0.0/16", "vim_name": 5})
        )
        assert len(found) == 2

    def test_families_are_not_compared(self):
        assert parsed({"proxy.k8s_node_cidr": "::/0"})


class TestKubesprayVars:
    @pytest.mark.parametrize(
        ("name", "expected"),
        [
            ("kube_pods_subnet", "cannot be set here; use master_node.pod_cidr"),
            ("no_proxy", "cannot be set here; use proxy.no_proxy"),
            ("ip", "cannot be set here; it is set for each node in the inventory"),
            ("node", "cannot be set here; it belongs to the removal of a node"),
            ("etcd", "cannot be set here; it is a group of the inventory"),
            (
                "kube_apiserver_port",
                "cannot be set here; it is 6443; external_lb_param.api_port is free",
            ),
            (
                "kube_override_hostname",
                "cannot be set here; nodes have the names of the inventory",
            ),
            (
                "kube_config_dir",
                "cannot be set here; admin.conf is looked for in /etc/kubernetes",
            ),
            (
                "ansible_password",
                "cannot be set here; it tells Ansible how to reach the nodes",
            ),
        ],
    )
    def test_variables_of_this_driver_are_refused_by_name(self, name, expected):
        body = changed({"kubespray_vars": {name: "x", "helm_enabled": True}})
        assert problems(body) == (f"kubespray_vars.{name}: {expected}",)

    @pytest.mark.parametrize("name", ["a-b", "1st", "a b", "", "a.b", 5])
    def test_names_must_be_variable_names(self, name):
        body = changed({"kubespray_vars": {name: 1}})
        assert "is not the name of a variable" in problems(body)[-1]

    @pytest.mark.parametrize("value", [{1, 2}, float("nan"), b"x"])
    def test_values_must_fit_json(self, value):
        body = changed({"kubespray_vars": {"calico_mtu": value}})
        assert problems(body) == (
            "kubespray_vars.calico_mtu: cannot be written as JSON",
        )


class TestSecrets:
    def test_all_are_listed(self):
        made = parsed(
            {
                "proxy.http_proxy": "http://user:pa%24s@proxy:3128",
                "proxy.https_proxy": "https://proxy",
                "kubespray_vars": {
                    "registry_auth": [{"username": "bob", "password": "reg-pw"}],
                    "openstack_application_credential_secret": "app-pw",
                    "kube_encrypt_secret_data": True,
                    "kube_network_plugin": "calico",
                    "vault_token": {"nested": ["deep-pw", 5]},
                },
            }
        )
        assert set(made.secrets()) == {
            *("ans-s3cret", "cp-s3cret", "worker-s3cret", "lb-s3cret"),
            *("pa%24s", "pa$s", "reg-pw", "app-pw", "deep-pw"),
        }

    def test_a_password_that_is_a_user_name_is_shown_anyway(self):
        made = parsed({"master_node.password": "ubuntu"})
        assert "ubuntu" not in made.secrets()

    def test_the_model_does_not_show_them(self):
        made = parsed(
            {
                "proxy.http_proxy": "http://user:prox-pw@proxy",
                "kubespray_vars": {"registry_password": "reg-pw"},
            }
        )
        shown = f"{made} {made!r} {made.load_balancer!r}"
        assert not [secret for secret in made.secrets() if secret in shown]

    def test_a_refused_request_keeps_no_trace_of_them(self):
        body = changed({"vim_name": 5, "ansible.port": "ans-s3cret"})
        with pytest.raises(ParamError) as caught:
            params.parse(request(body))
        assert caught.value.__cause__ is None
        assert caught.value.__context__ is None
        assert "s3cret" not in str(caught.value)


def test_every_attribute_is_described():
    def undescribed(model, place=""):
        names = {info.alias or name: info for name, info in model.model_fields.items()}
        for name, nested in spelling.border_names(model).items():
            if not names[name].description:
                yield f"{place}{name}"
            if nested:
                yield from undescribed(nested, f"{place}{name}.")

    assert list(undescribed(InstallParams)) == []
