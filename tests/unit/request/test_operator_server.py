# SPDX-License-Identifier: Apache-2.0
"""Requests that leave the Ansible server to Tacker's operator."""

import copy
import json
import os
import shutil
import subprocess

import pytest

from tacker_k8s_mgmt import config
from tacker_k8s_mgmt.request import operator_server, profiles, reader
from tacker_k8s_mgmt.request.operator_server import OperatorServer
from tests.helpers import full_request
from tests.helpers.requests import BASTION
from tests.helpers.samples import changed, read, refused, request, updated

PASSWORD = "0perators-s3cret"
SERVER = {
    "ip_address": "192.0.2.77",
    "username": "tenants",
    "password": PASSWORD,
    "host_key": f"SHA256:{'k' * 43}",
    "kubespray_root_path": "/opt/kubespray",
    "transferring_inventory_path": "/srv/clusters/7b5e0f0a-5a0a-4f0e-9a55-3a1c1f1d2e3f",
}
OWN = {
    "ip_address": "192.0.2.5",
    "username": "ansible",
    "password": "own-s3cret",
    "kubespray_root_path": "/home/ansible/kubespray",
    "transferring_inventory_path": "/home/ansible/clusters/one",
}
LOOKUP = "lookup('pipe', 'touch {path}')"


def find():
    return OperatorServer(SERVER, frozenset(config.ANSIBLE_VARIABLES))


def never():
    raise AssertionError("the operator's server was looked for")


def without(**changes):
    body = changed(changes)
    del body["ansible"]
    return body


def parse(body, **more):
    return read(request(body), **{"find_server": find, **more})


def problems(body, **more):
    return refused(parse, body, **more)


def later(stored, change, find_server=find):
    return updated(request(stored), request(change), find_server=find_server)


class TestServer:
    @pytest.mark.parametrize("ansible", [None, {}, {"ip_address": " ", "username": ""}])
    def test_a_request_without_one_gets_the_operators(self, ansible):
        read = parse({**without(), "ansible": ansible})
        assert read.operators_server
        assert read.ansible.host == "192.0.2.77"
        assert read.ansible.directory == SERVER["transferring_inventory_path"]
        assert read.server_account.host_keys == (SERVER["host_key"],)

    def test_a_request_with_its_own_keeps_it_and_asks_for_no_other(self):
        read = parse(changed({}), find_server=never)
        assert not read.operators_server
        assert read.server_account.password.get_secret_value() == "ans-s3cret"

    def test_without_one_of_the_operator_it_is_missing(self):
        (problem,) = problems(without(), find_server=operator_server.none)
        assert problem.startswith("ansible: is missing; ")
        assert "[k8s_mgmt] ansible_host" in problem

    @pytest.mark.parametrize("name", [name for name in OWN if name != "ip_address"])
    def test_no_attribute_beside_the_operators(self, name):
        found = problems({**without(), "ansible": {name: OWN[name]}})
        assert [text.partition(":")[0] for text in found] == [f"ansible.{name}"]
        assert "own-s3cret" not in found[0]
        assert "is the operator's" in found[0]

    def test_the_login_is_neither_shown_nor_kept(self):
        body = without()
        read = parse(body)
        assert PASSWORD in read.secrets()
        assert PASSWORD not in repr(read)
        assert PASSWORD not in repr(find())
        kept = reader.without_secrets(request(body))
        assert "ansible" not in kept["k8s_cluster_installation_param"]

    def test_a_wrong_key_is_named_by_the_operators_option(self):
        key = {**SERVER, "private_key": "./one"}
        read = parse(without(), find_server=lambda: OperatorServer(key, ()))
        attribute = read.server_account.private_key.attribute
        assert attribute == "ansible_private_key_file"


class TestLaterOperations:
    def test_the_server_is_that_of_the_present_configuration(self):
        moved = {**SERVER, "ip_address": "192.0.2.88"}
        read = later(without(), {}, lambda: OperatorServer(moved, ()))
        assert read.operators_server
        assert read.ansible.host == "192.0.2.88"

    def test_no_request_takes_a_cluster_away_from_it(self):
        assert refused(later, without(), {"ansible": OWN}) == (
            "ansible: cannot be changed after instantiation; the cluster's inventory "
            "lies on the Ansible server of Tacker's operator",
        )

    def test_once_the_operator_has_none_a_request_may_name_one(self):
        read = later(without(), {"ansible": OWN}, operator_server.none)
        assert read.ansible.host == "192.0.2.5"
        assert not read.operators_server

    def test_a_cluster_with_its_own_is_not_given_to_the_operator(self):
        stored = changed({})
        for change in ({}, {"ansible": None}, {"ansible": {"ip_address": ""}}):
            read = later(stored, change, never)
            assert not read.operators_server

    def test_a_later_request_cannot_bring_what_an_instantiation_may_not(self):
        change = {"kubespray_vars": {"download_localhost": True}}
        (problem,) = refused(later, without(), change)
        assert problem.startswith("kubespray_vars.download_localhost: cannot be set")


class TestAttacks:
    """What a tenant could try to have run, read or written under that account."""

    @pytest.mark.parametrize(
        "name",
        [
            *("download_localhost", "download_delegate", "download_run_once"),
            *("artifacts_dir", "kubeconfig_localhost", "credentials_dir"),
            *("custom_cni_manifests", "cinder_cacert", "inventory_dir", "bin_dir"),
            *("playbook_dir", "local_release_dir", "kube_encrypt_token"),
        ],
    )
    @pytest.mark.parametrize("value", [True, "localhost", "/home/ansible/.ssh"])
    def test_variables_that_reach_the_server_itself(self, name, value):
        (problem,) = problems(without(kubespray_vars={name: value}))
        assert problem.startswith(f"kubespray_vars.{name}: cannot be set where")
        assert "ping_access_ip" in problem

    @pytest.mark.parametrize(
        "value",
        [
            "{{ lookup('pipe', 'id') }}",
            "{% for x in [1] %}{% endfor %}",
            "{# x #}",
            "{",
            "lookup('pipe', 'id')",
            "cycler.__init__.__globals__['os']",
            "a|b",
            "a\n",
            ["{{ x }}"],
            {"{{ x }}": 1},
            {"a": {"b": ["{{ x }}"]}},
            {"__ansible_unsafe": "{{ x }}"},
        ],
    )
    @pytest.mark.parametrize("name", config.ANSIBLE_VARIABLES)
    def test_templates_and_expressions(self, name, value):
        (problem,) = problems(without(kubespray_vars={name: value}))
        assert problem.startswith(f"kubespray_vars.{name}: where the Ansible server")
        assert "lookup" not in problem

    @pytest.mark.parametrize("value", ["a.b:1", ["a", 1], {"a": {"b": ["c", True]}}])
    def test_plain_values(self, value):
        parse(without(kubespray_vars={config.ANSIBLE_VARIABLES[0]: value}))

    def test_a_template_behind_a_reference(self):
        variables = {
            "ping_access_ip": {"secret_ref": f"http://k/v1/secrets/{'1' * 32}"}
        }
        (problem,) = problems(
            without(kubespray_vars=variables), resolver=lambda _: "{{ lookup('x') }}"
        )
        assert problem.startswith("kubespray_vars.ping_access_ip: where")

    def test_what_a_profile_of_the_package_adds(self):
        text = b"parameters:\n  kubespray_vars:\n    ping_access_ip: '{{ x }}'\n"
        source = profiles.of_package({"Files/profiles/mine.yaml": text})
        found = parse_profile(source)
        assert any("kubespray_vars.ping_access_ip" in problem for problem in found)

    @pytest.mark.parametrize(
        "path",
        [
            *("/home/tenants/.ssh/id_ed25519", "/srv/clusters/other/hosts.yaml"),
            "/etc/ssl/private/key.pem",
            *("/etc/ssl/certs/../private/key.pem", "/etc/ssl/certsx/ca.pem"),
        ],
    )
    def test_files_that_kubespray_copies_to_a_node(self, path):
        body = full_request.rich(max(full_request.KUBERNETES))
        body = changed({**body, "cluster.openstack.ca_file": path})
        del body["ansible"], body["kubespray_vars"]
        found = [text for text in problems(body) if "ca_file" in text]
        assert found, path

    def test_a_public_certificate_is_accepted(self):
        body = full_request.rich(max(full_request.KUBERNETES))
        ca = "/etc/ssl/certs/openstack.pem"
        body = changed({**body, "cluster.openstack.ca_file": ca})
        del body["ansible"], body["kubespray_vars"]
        assert parse(body).cluster.openstack.ca_file == ca

    def test_no_host_of_the_tenants_is_on_the_way_there(self):
        own = {**BASTION, "used_for": ["ansible", "vms"]}
        (problem,) = problems(without(bastion=own))
        assert problem.startswith("bastion.used_for: must not have ansible")
        for blank in (None, ""):
            read = parse(without(bastion={**BASTION, "used_for": blank}))
            assert read.bastion.used_for == ("vms", "playbooks")

    def test_the_same_is_accepted_on_a_server_of_ones_own(self):
        body = changed({"kubespray_vars": {"x": "{{ lookup('pipe', 'id') }}"}})
        assert parse(body, find_server=never).kubespray_vars

    @pytest.mark.skipif(not shutil.which("ansible-playbook"), reason="needs Ansible")
    def test_what_ansible_would_do_with_it(self, tmp_path):
        mark = tmp_path / "owned"
        text = f"{{{{ {LOOKUP.format(path=mark)} }}}}"
        body = without(kubespray_vars={"ping_access_ip": text})
        task = {"debug": {"msg": "x"}, "when": "ping_access_ip"}
        play = {"hosts": "localhost", "gather_facts": False, "tasks": [task]}
        (tmp_path / "p.yml").write_text(json.dumps([play]))
        (tmp_path / "v.json").write_text(json.dumps(body["kubespray_vars"]))
        subprocess.run(
            ["ansible-playbook", "-i", "localhost,", "-e", "@v.json", "p.yml"],
            cwd=tmp_path,
            env={"PATH": os.environ["PATH"], "HOME": str(tmp_path)},
            capture_output=True,
            timeout=300,
            check=False,
        )
        assert mark.exists()  # so it has to be refused
        assert problems(body)


def parse_profile(source):
    body = copy.deepcopy(without())
    return problems({**body, "profile": "mine"}, find_profile=source)


def test_the_stand_in_says_what_the_conductor_needs():
    read = parse(without(), find_server=operator_server.unknown)
    (warning,) = (text for text in read.warnings if text.startswith("ansible:"))
    assert "[k8s_mgmt] ansible_host" in warning
    assert problems(
        without(kubespray_vars={"x": 1}), find_server=operator_server.unknown
    )
