# SPDX-License-Identifier: Apache-2.0
"""The operator's Ansible server in ``tacker.conf``."""

import pytest
from oslo_config import cfg

from tacker_k8s_mgmt import config, errors
from tacker_k8s_mgmt.model.playbooks import Means
from tacker_k8s_mgmt.remote import operator_server
from tacker_k8s_mgmt.request import reader
from tests.helpers import ssh_keys
from tests.helpers.samples import changed, request

VNF = "7b5e0f0a-5a0a-4f0e-9a55-3a1c1f1d2e3f"
SECRET = "0perators-s3cret"


@pytest.fixture
def options(tmp_path):
    conf = cfg.ConfigOpts()
    config.register(conf)
    for name in ("keys", "secrets", "operator"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "password").write_text(f"{SECRET}\n")
    values = {
        "key_directory": f"{tmp_path}/keys",
        "secret_directory": f"{tmp_path}/secrets/{{project_id}}",
        "ansible_host": "192.0.2.77",
        "ansible_host_key": f"SHA256:{'k' * 43}",
        "ansible_username": "tenants",
        "ansible_password_file": f"{tmp_path}/operator/password",
        "ansible_kubespray_root_path": "/opt/kubespray",
        "ansible_inventory_root": "/srv/clusters",
    }
    for name, value in values.items():
        conf.set_override(name, value, config.GROUP)
    return conf


def change(options, **values):
    for name, value in values.items():
        options.set_override(name, value, config.GROUP)


def find(options, vnf_id=VNF):
    return operator_server.find(options[config.GROUP], vnf_id)


def refused(options):
    with pytest.raises(errors.TackerConfigError) as caught:
        find(options)
    text = str(caught.value)
    assert SECRET not in text
    return text


def test_none_by_default():
    conf = cfg.ConfigOpts()
    config.register(conf)
    assert find(conf) is None


def test_a_request_gets_it(options):
    change(options, ansible_venv_path="/opt/venv", ansible_forks=7, ansible_port=2222)
    body = changed({})
    del body["ansible"]
    read = reader.RequestReader(find_server=lambda: find(options)).read(request(body))
    server = read.ansible
    assert (server.host, server.port, server.forks) == ("192.0.2.77", 2222, 7)
    assert (server.kubespray_root, server.venv) == ("/opt/kubespray", "/opt/venv")
    assert server.directory == f"/srv/clusters/{VNF}"
    assert read.server_account.password.get_secret_value() == SECRET
    assert SECRET not in repr(find(options))


def test_its_runs_have_the_means_of_the_options(options):
    change(options, ansible_strategy="linear", ansible_resolve_downloads=False)
    body = changed({})
    del body["ansible"]
    read = reader.RequestReader(find_server=lambda: find(options)).read(request(body))
    assert read.means == Means("linear", resolves=False)


def test_each_vnf_instance_has_a_directory_of_its_own(options):
    other = "0f3b0f6e-9c0d-4f4e-8f7a-3b1c5d7e9f01"
    assert find(options, other).values["transferring_inventory_path"].endswith(other)
    for wrong in ("../other", "", "a/b"):
        with pytest.raises(ValueError, match="UUID"):
            find(options, wrong)


@pytest.mark.parametrize(
    "name",
    [
        *("ansible_host_key", "ansible_username", "ansible_password_file"),
        *("ansible_kubespray_root_path", "ansible_inventory_root"),
    ],
)
def test_what_is_missing_is_named_by_its_option(options, name):
    change(options, **{name: ""})
    assert name in refused(options)


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("ansible_host", "a b"),
        ("ansible_host_key", "ssh-dss AAAA"),
        ("ansible_inventory_root", "/etc"),
        ("ansible_inventory_root", "relative"),
        ("ansible_kubespray_root_path", "opt"),
        ("ansible_password_file", "password"),
        ("ansible_password_file", "/nowhere/password"),
    ],
)
def test_what_is_wrong_is_named_by_its_option(options, name, value):
    change(options, **{name: value})
    assert f"{name}: " in refused(options)


def test_a_file_that_is_not_there_is_named_with_its_directory(options):
    change(options, ansible_password_file="/nowhere/password")
    assert "(/nowhere/password, below /nowhere)" in refused(options)


@pytest.mark.parametrize("shared", ["keys", "secrets"])
def test_no_file_that_requests_may_name(options, tmp_path, shared):
    change(options, ansible_password_file=f"{tmp_path}/{shared}/password")
    assert "requests may name its files" in refused(options)
    link = tmp_path / "operator" / "link"
    link.symlink_to(tmp_path / shared / "password")
    change(options, ansible_password_file=str(link))
    assert "requests may name its files" in refused(options)


def test_the_key_is_a_text_and_no_path(options, tmp_path):
    key = tmp_path / "operator" / "key"
    key.write_text("./of-a-tenant\n")
    change(options, ansible_private_key_file=str(key))
    assert "ansible_private_key_file: must have the text" in refused(options)
    key.write_text(ssh_keys.make("ed25519").private)
    values = find(options).values
    assert values["private_key"].startswith("-----BEGIN OPENSSH PRIVATE KEY-----")
