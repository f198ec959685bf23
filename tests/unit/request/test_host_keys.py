# SPDX-License-Identifier: Apache-2.0
"""Host keys that a request gives."""

import subprocess

import paramiko
import pytest

from tacker_k8s_mgmt.model.nodes import Role
from tacker_k8s_mgmt.request import host_keys
from tests.helpers import ssh_keys
from tests.helpers.samples import changed, parsed, problems, request, updated

PAIRS = {kind: ssh_keys.make(kind).public for kind in ssh_keys.KINDS}
SHAPE = (
    "must be one public host key as in /etc/ssh/ssh_host_ed25519_key.pub, or its "
    "fingerprint, SHA256:..."
)
GIVEN = PAIRS["ed25519"]
PLACES = ("ansible.host_key", "external_lb_param.ssh_host_key")
GROUPS = {
    "master_node.host_keys": Role.CONTROL_PLANE,
    "worker_node.host_keys": Role.WORKER,
}


def told_by_openssh(public: str, tmp_path) -> str:
    path = tmp_path / "key.pub"
    path.write_text(f"{public} root@host\n")
    argv = ["ssh-keygen", "-l", "-f", str(path)]
    return subprocess.run(argv, capture_output=True, text=True, check=True).stdout


@pytest.mark.parametrize("kind", sorted(PAIRS))
def test_what_openssh_writes_and_prints_is_taken(kind, tmp_path):
    public = PAIRS[kind]
    assert host_keys.checked(f" {public} root@host\n") == public
    told = told_by_openssh(public, tmp_path)
    expected = host_keys.fingerprint(public.split()[1])
    assert expected in told
    assert host_keys.checked(told) == expected


@pytest.mark.parametrize("bits", [256, 384, 521])
def test_every_curve_of_ecdsa_is_taken(bits):
    key = paramiko.ECDSAKey.generate(bits=bits)
    public = f"{key.get_name()} {key.get_base64()}"
    assert host_keys.checked(public) == public


@pytest.mark.parametrize(
    "text",
    [
        "ssh-ed25519",
        "ssh-dss AAAAB3NzaC1kc3M=",
        f"ssh-rsa {GIVEN.split()[1]}",
        f"10.0.0.5 {GIVEN}",
        f"{GIVEN}\n{GIVEN}",
        GIVEN[:-9],
        GIVEN[:40],
        "SHA256:short",
        "MD5:16:27:ac:a5:76:28:2d:36:63:1b:56:4d:eb:df:a6:48",
        "-----BEGIN OPENSSH PRIVATE KEY-----",
    ],
    ids=lambda text: text[:11],
)
def test_anything_else_is_refused(text):
    with pytest.raises(ValueError, match="must be one public host key"):
        host_keys.checked(text)


def test_a_key_is_among_those_given_by_itself_or_its_fingerprint():
    kind, key = GIVEN.split()
    other = PAIRS["rsa"]
    assert host_keys.is_among(kind, key, [other, GIVEN])
    assert host_keys.is_among(kind, key, [other, host_keys.fingerprint(key)])
    assert not host_keys.is_among(kind, key, [other])
    assert not host_keys.is_among("ssh-rsa", key, [GIVEN])


def test_the_kinds_of_whole_keys_are_known():
    fingerprint = host_keys.fingerprint(PAIRS["ed25519"].split()[1])
    assert host_keys.kinds([fingerprint, PAIRS["rsa"]]) == {"ssh-rsa"}


class TestParameters:
    @pytest.mark.parametrize("place", PLACES)
    def test_of_one_host_it_is_one(self, place):
        made = parsed({place: f"{GIVEN} root@host"})
        account = next(a for a in made.accounts() if a.attribute in place)
        assert account.host_keys == (GIVEN,)

    @pytest.mark.parametrize(("place", "role"), GROUPS.items())
    def test_of_a_group_they_are_a_list_or_one(self, place, role):
        given = [GIVEN, PAIRS["rsa"]]
        assert parsed({place: given}).account(role).host_keys == tuple(given)
        assert parsed({place: GIVEN}).account(role).host_keys == (GIVEN,)

    @pytest.mark.parametrize("place", [*PLACES, *GROUPS])
    @pytest.mark.parametrize("nothing", [None, "", " "])
    def test_nothing_given_is_none(self, place, nothing):
        made = parsed({place: nothing})
        assert [account.host_keys for account in made.accounts()] == [()] * 4

    @pytest.mark.parametrize("place", [*PLACES, *GROUPS])
    def test_nonsense_is_refused(self, place):
        shown = f"{place}.0" if place in GROUPS else place
        assert problems(changed({place: "ssh-ed25519 AAAA"})) == (f"{shown}: {SHAPE}",)

    def test_anything_but_a_list_is_refused(self):
        assert problems(changed({"worker_node.host_keys": {"a": 1}})) == (
            "worker_node.host_keys: must be a list",
        )

    @pytest.mark.parametrize("place", [*PLACES, *GROUPS])
    def test_a_later_operation_may_give_others(self, place):
        outer, inner = place.split(".")
        stored = request(changed({place: PAIRS["rsa"]}))
        made = updated(stored, request({outer: {inner: GIVEN}}))
        account = next(a for a in made.accounts() if a.attribute == outer)
        assert account.host_keys == (GIVEN,)
