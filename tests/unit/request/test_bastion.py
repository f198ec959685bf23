# SPDX-License-Identifier: Apache-2.0
"""The bastion in the parameters, and Ansible's way through it."""

import re
import shlex
import subprocess

import pytest
import yaml
from pydantic import SecretStr

from tacker_k8s_mgmt.kubespray import checkout, inventory
from tacker_k8s_mgmt.model.nodes import Role, name_nodes
from tests.helpers.samples import (
    KEY,
    REMOVED,
    assert_golden,
    changed,
    machine,
    parsed,
    problems,
    request,
    updated,
)

BASTION = {
    "bastion.ip_address": "203.0.113.9",
    "bastion.port": 2022,
    "bastion.username": "jump",
    "bastion.password": "b4stion-s3cret",
}
WITH_KEY = {
    **BASTION,
    "bastion.password": REMOVED,
    "bastion.private_key": KEY,
    "bastion.private_key_passphrase": "key-s3cret",
}
NODES = name_nodes([machine(Role.CONTROL_PLANE, 5), machine(Role.WORKER, 7)])


def way(changes) -> str | None:
    """``ansible_ssh_common_args`` of an inventory, as Ansible reads it."""

    class Loader(yaml.SafeLoader):
        pass

    Loader.add_constructor("!unsafe", lambda _, node: node.value)
    text = inventory.render(NODES, parsed(changes))
    document = yaml.load(text, Loader=Loader)  # noqa: S506
    return document["all"].get("vars", {}).get("ansible_ssh_common_args")


def proxy_command(changes) -> list[str]:
    """What OpenSSH gives to a shell, cut as the shell would cut it."""
    option, value = shlex.split(way(changes) or "")
    assert option == "-o"
    name, _, command = value.partition("=")
    assert name == "ProxyCommand"
    return shlex.split(command)


class TestParameters:
    def test_without_one_there_is_none(self):
        assert parsed().bastion is None
        assert parsed().bastion_account is None

    def test_it_arrives(self):
        made = parsed(BASTION)
        assert made.bastion.host == "203.0.113.9"
        assert made.bastion.port == 2022
        account = made.bastion_account
        assert (account.username, account.attribute) == ("jump", "bastion")
        assert account.password == SecretStr("b4stion-s3cret")
        assert made.accounts()[-1] == account

    def test_its_port_is_that_of_ssh_unless_said_otherwise(self):
        assert parsed({**BASTION, "bastion.port": REMOVED}).bastion.port == 22

    @pytest.mark.parametrize(
        ("name", "value", "expected"),
        [
            ("ip_address", "10.0.0.0/24", "must be one address or host name, not a"),
            ("username", REMOVED, "is missing"),
            ("password", REMOVED, "bastion: password or private_key is missing"),
            ("used_for", [], "must name at least one of ansible, vms, playbooks"),
            ("used_for", "vms", "must be a list"),
            ("used_for", ["nodes"], "must be 'ansible', 'vms' or 'playbooks'"),
            ("host_key", "AAAAC3Nz", "must be one public host key"),
            ("private_key_passphrase", "x", "there is no private_key that it opens"),
            ("for", ["vms"], "is not a known attribute"),
        ],
    )
    def test_nonsense_is_refused(self, name, value, expected):
        found = problems(changed({**BASTION, f"bastion.{name}": value}))
        assert len(found) == 1
        assert "bastion" in found[0]
        assert expected in found[0]

    def test_its_secrets_are_redacted(self):
        found = parsed({**WITH_KEY, "bastion.password": "b4stion-s3cret"}).secrets()
        assert {"b4stion-s3cret", "key-s3cret"} < set(found)
        assert set(KEY.splitlines()[1:-1]) < set(found)


class TestSshpass:
    WITH_KEYS = {
        f"{place}.{name}": value
        for place in ("master_node", "worker_node")
        for name, value in (("password", REMOVED), ("private_key", KEY))
    }

    @pytest.mark.parametrize(
        ("changes", "wanted"),
        [
            ({}, False),
            (BASTION, True),
            (WITH_KEY, False),
            ({**BASTION, "bastion.used_for": ["ansible", "vms"]}, False),
        ],
    )
    def test_is_wanted_where_ansible_needs_a_password(self, changes, wanted):
        made = parsed({**self.WITH_KEYS, **changes})
        assert checkout.needs_sshpass(made) is wanted


class TestInventory:
    @pytest.mark.parametrize(
        ("name", "changes"),
        [
            ("inventory-bastion-password.yaml", BASTION),
            ("inventory-bastion-key.yaml", WITH_KEY),
        ],
    )
    def test_the_text_is_the_golden_one(self, name, changes):
        assert_golden(name, inventory.render(NODES, parsed(changes)))

    @pytest.mark.parametrize("changes", [BASTION, WITH_KEY])
    def test_what_was_rendered_is_read_back(self, changes):
        assert inventory.parse(inventory.render(NODES, parsed(changes))) == NODES

    @pytest.mark.parametrize("used_for", [["ansible"], ["ansible", "vms"]])
    def test_playbooks_that_need_no_bastion_get_none(self, used_for):
        assert way({**BASTION, "bastion.used_for": used_for}) is None

    def test_ansible_does_not_take_its_socket_for_the_nodes(self):
        """Ansible sets no path of its own where an option has this name."""
        assert "controlpath" not in way(BASTION).lower().replace("control_path", "")

    @pytest.mark.parametrize(
        "username", ["a b", "it's", 'q"', "50%h", "{{ lookup('x') }}", "$HOME", "-x;id"]
    )
    def test_any_user_name_arrives(self, username, tmp_path):
        """As OpenSSH hands it to a shell, with percent signs doubled."""
        changes = {**WITH_KEY, "bastion.username": username}
        command = shlex.split(way(changes))[1].partition("=")[2]
        tokens = {"h": "node", "p": "22", "%": "%"}
        command = re.sub("%(.)", lambda match: tokens[match[1]], command)
        (tmp_path / "ssh").write_text("#!/bin/sh\nprintf '%s\\n' \"$@\"\n")
        (tmp_path / "ssh").chmod(0o755)
        done = subprocess.run(
            ["/bin/sh", "-c", f"exec {command}"],
            env={"PATH": f"{tmp_path}:/usr/bin:/bin"},
            capture_output=True,
            text=True,
            check=True,
        )
        words = done.stdout.splitlines()
        assert words[words.index("-l") + 1] == username

    @pytest.mark.parametrize(("host", "word"), [("fd00::9", "fd00::9"), ("b.x", "b.x")])
    def test_the_bastion_comes_last(self, host, word):
        words = proxy_command({**BASTION, "bastion.ip_address": host})
        assert words[words.index("--") + 1] == word


class TestLaterOperations:
    def merged(self, change, stored=None):
        body = request(changed({**BASTION, **(stored or {})}))
        return updated(body, request({"bastion": change}))

    def test_may_change_the_credentials(self):
        made = self.merged({"private_key": KEY})
        assert made.bastion_account.password is None
        assert made.bastion_account.private_key.given == SecretStr(KEY)

    def test_may_change_all_else(self):
        change = {
            "ip_address": "203.0.113.10",
            "port": 22,
            "username": "other",
            "host_key": "SHA256:" + "a" * 43,
            "used_for": ["vms"],
        }
        made = self.merged(change).bastion
        assert (made.host, made.port, made.username) == ("203.0.113.10", 22, "other")
        assert (made.host_key, made.used_for) == (change["host_key"], ("vms",))

    def test_may_bring_one(self):
        whole = {"ip_address": "203.0.113.9", "username": "j", "password": "p4ss"}
        made = updated(request(changed({})), request({"bastion": whole}))
        assert made.bastion.host == "203.0.113.9"

    @pytest.mark.parametrize(
        ("change", "expected"),
        [
            ({"password": "b4stion-s3cret"}, frozenset()),
            ({"password": "new-s3cret"}, frozenset({"bastion"})),
            ({"ip_address": "203.0.113.10"}, frozenset({"bastion"})),
        ],
    )
    def test_write_the_inventory_anew_when_the_way_is_another(self, change, expected):
        assert self.merged(change).changed_logins == expected
