# SPDX-License-Identifier: Apache-2.0
"""Heat as the v2 API's hooks ask it, beside Tacker's own client."""

import subprocess
import sys
import types
from typing import Any

import pytest
from oslo_config import cfg

pytest.importorskip("tacker", reason="the contract is with an installed Tacker")

from tacker.sol_refactored import objects
from tacker.sol_refactored.infra_drivers.openstack import heat_utils

from tacker_k8s_mgmt import errors
from tacker_k8s_mgmt.hooks.v2 import lookup, stack
from tacker_k8s_mgmt.hooks.v2.call import HookCall

VIM = {
    "vimId": "0f3b0f6e-9c0d-4f4e-8f7a-3b1c5d7e9f01",
    "vimType": "ETSINFV.OPENSTACK_KEYSTONE.V_3",
    "interfaceInfo": {"endpoint": "http://127.0.0.1:1/v3"},
    "accessInfo": {
        "username": "user",
        "password": "vim-secret",
        "project": "project",
        "userDomain": "one",
        "projectDomain": "two",
        "region": "here",
    },
}


@pytest.fixture
def configured():
    """Sets options of ``[v2_vnfm]`` for a test."""

    def configure(**options):
        for name, value in options.items():
            cfg.CONF.set_override(name, value, group="v2_vnfm")

    yield configure
    for name in cfg.CONF.v2_vnfm:
        cfg.CONF.clear_override(name, group="v2_vnfm")


def tackers(vim):
    objects.register_all()
    info = objects.VimConnectionInfo.from_dict(vim)
    client = heat_utils.HeatClient(info).client
    handle = client.auth_handle
    return client, handle.get_session(handle.get_auth(), client.service_type)


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"heat_verify_cert": True},
        {"heat_verify_cert": True, "heat_ca_cert_file": "/etc/ssl/heat.pem"},
        {"heat_ca_cert_file": "/etc/ssl/heat.pem"},
    ],
)
def test_a_password_is_used_as_tacker_uses_it(configured, options):
    configured(**options)
    _, theirs = tackers(VIM)
    session, region = stack.login_of(VIM)
    auth: Any = session.auth
    elements = auth.get_cache_id_elements()
    assert elements == theirs.session.auth.get_cache_id_elements()
    assert session.verify == theirs.session.verify
    assert region == "here"
    assert theirs.service_type == stack._SERVICE


def test_tokens_by_oauth_are_asked_for_by_tackers_client(configured):
    configured(
        use_oauth2_mtls_for_heat=True,
        heat_mtls_ca_cert_file="/etc/ssl/ca.pem",
        heat_mtls_client_cert_file="/etc/ssl/client.pem",
    )
    places = {"tokenEndpoint": "https://key", "heatEndpoint": "https://heat/v1/p"}
    vim = {**VIM, "interfaceInfo": places}
    client, theirs = tackers(vim)
    session, _ = stack.login_of(vim)
    assert type(session.auth) is type(theirs.session.auth)
    assert (session.cert, session.verify) == ("/etc/ssl/client.pem", "/etc/ssl/ca.pem")
    assert client.base_url == "https://heat/v1/p"
    assert stack._adapter(vim).endpoint_override == "https://heat/v1/p"


def test_options_that_an_earlier_tacker_has_not_are_as_if_off(monkeypatch):
    conf = cfg.ConfigOpts()
    conf.register_opts([cfg.IntOpt("other")], group="v2_vnfm")
    monkeypatch.setattr(cfg, "CONF", conf)
    session, _ = stack.login_of(VIM)
    assert session.verify is False


def test_a_keystone_that_does_not_answer_is_a_remote_error():
    instance = {"id": VIM["vimId"], "vimConnectionInfo": {"openstack": VIM}}
    call = HookCall("heal_end", {}, instance, {}, package="")
    with pytest.raises(errors.RemoteError) as caught:
        stack.resources_of(call)
    assert "could not be read: Unable to establish connection" in str(caught.value)
    assert "vim-secret" not in str(caught.value)


def test_a_hook_imports_neither_tackers_database_nor_its_message_queue():
    program = (
        "import sys, tacker_k8s_mgmt.hooks.v2.driver\n"
        "print({'sqlalchemy', 'oslo_messaging', 'eventlet'} & sys.modules.keys())"
    )
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True
    )
    assert done.stdout.strip() == "set()"


def test_numbers_of_vms_by_vdu_in_heat_and_in_tackers_list(monkeypatch):
    listed = [{"vduId": vdu} for vdu in ("masterNode", "workerNode", "workerNode")]
    servers = [
        types.SimpleNamespace(name=name) for name in ("masterNode", "workerNode", "new")
    ]
    asked = []

    def servers_of(call, failed=True):
        asked.append(failed)
        return servers

    monkeypatch.setattr(stack, "servers_of", servers_of)
    site = object.__new__(lookup.SeenV2Site)
    site._call = types.SimpleNamespace(resources=lambda: listed)
    found = site.counts()
    assert [(one.group, one.heat, one.tacker) for one in found] == [
        *(("masterNode", 1, 1), ("workerNode", 1, 2), ("new", 1, 0))
    ]
    # One that Heat could not build is no VM.
    assert asked == [False]
    assert {one.remedy for one in found} == {lookup._REMEDY}
