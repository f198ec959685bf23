# SPDX-License-Identifier: Apache-2.0
"""The parameters of a request as a whole: what is obligatory, and what arrives."""

import copy

import pytest
from pydantic import SecretStr

from tacker_k8s_mgmt.errors import ParamError
from tacker_k8s_mgmt.request import reader, structure
from tacker_k8s_mgmt.request.reader import ClusterRequest
from tacker_k8s_mgmt.topology.heat_stack import vm_selectors
from tests.helpers.param_samples import MISSING, SPECIFICATION
from tests.helpers.samples import REMOVED, changed, parsed, problems, read, request


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
        assert reader.RequestReader().read(additional_params) is None

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
        made = read(request(body))
        assert str(made.pod_cidr) == "192.168.0.0/16"
        assert made.warnings == (
            "master_node.cluster_cp_name: is not used, the API's address is the load "
            "balancer's, or else the control plane's",
            "master_node.pod_cidr: is taken as 192.168.0.0/16",
            "proxy.http_proxy: the URL has no valid port",
            "proxy.https_proxy: the URL has no valid port",
            "external_lb_param.ssh_cp_name: externalLB_instance stands for "
            "externalLB_CP1 unless the stack has a resource of that name; better name "
            "externalLB_CP1",
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
    assert made.ansible.venv == "/opt/kubespray-venv"
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


@pytest.mark.parametrize("name", MISSING)
def test_a_missing_attribute_is_named(name):
    (problem,) = problems(changed({name: REMOVED}))
    assert problem.startswith(f"{name}: is missing")


@pytest.mark.parametrize("group", ["master_node", "worker_node", "external_lb_param"])
def test_the_port_inside_the_cluster_may_be_left_to_the_one_for_ssh(group):
    made = parsed({f"{group}.nic_cp_name": REMOVED})
    assert {
        vm_selector.nic_cp == vm_selector.ssh_cp
        for vm_selector in vm_selectors(made)
        if vm_selector.attribute == group
    } == {True}


def test_a_request_is_left_as_it_was():
    given = request(SPECIFICATION)
    before = copy.deepcopy(given)
    with pytest.raises(ParamError):
        read(given)
    read(given := request(changed({"proxy": {"http_proxy": "http://p:1"}})))
    assert request(SPECIFICATION) == before
    assert given == request(changed({"proxy": {"http_proxy": "http://p:1"}}))


def test_a_missing_ansible_structure_says_why_it_is_needed():
    assert problems(changed({"ansible": REMOVED})) == (
        "ansible: is missing; it names the Ansible server, without which nothing can "
        "be installed, and Tacker's operator has none for all requests ([k8s_mgmt] "
        "ansible_host)",
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
            *("pa%24s", "pa$s", "reg-pw", "app-pw", "deep-pw", "5"),
        }

    def test_a_password_that_is_a_user_name_is_shown_anyway(self):
        made = parsed({"master_node.password": "ubuntu"})
        assert "ubuntu" not in made.secrets()

    def test_a_refused_request_keeps_no_trace_of_them(self):
        body = changed({"vim_name": 5, "ansible.port": "ans-s3cret"})
        with pytest.raises(ParamError) as caught:
            read(request(body))
        assert caught.value.__cause__ is None
        assert caught.value.__context__ is None
        assert "s3cret" not in str(caught.value)


def test_every_attribute_is_described():
    def undescribed(model, place=""):
        names = {info.alias or name: info for name, info in model.model_fields.items()}
        for name, nested in structure.border_names(model).items():
            if not names[name].description:
                yield f"{place}{name}"
            if nested:
                yield from undescribed(nested, f"{place}{name}.")

    assert list(undescribed(ClusterRequest)) == []
