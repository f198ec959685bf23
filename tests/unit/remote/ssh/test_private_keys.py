# SPDX-License-Identifier: Apache-2.0
"""Private keys: where they may lie, and what becomes of them."""

import os
import re
import subprocess

import pytest
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import dsa, ec, ed448

from tacker_k8s_mgmt.remote.local_files import FileNotAllowed
from tacker_k8s_mgmt.remote.ssh.login import read_key_file, without_passphrase
from tests.helpers import ssh_keys

PASSPHRASE = "open ses@me ü"
OUTSIDE = (
    "is not below the directory that Tacker's operator has set aside for keys "
    "([k8s_mgmt] key_directory)"
)
STYLES = [
    pytest.param(kind, style, id=f"{kind}-{style}")
    for kind in ssh_keys.KINDS
    for style in ssh_keys.FORMATS
    if (kind, style) != ("ed25519", "traditional")  # there is no such thing
]


def reason(call, *args) -> str:
    with pytest.raises(FileNotAllowed) as caught:
        call(*args)
    assert caught.value.__cause__ is None
    return str(caught.value)


def public_key(text: str, path) -> str:
    """What OpenSSH reads in a private key."""
    path.write_text(text)
    path.chmod(0o600)
    done = subprocess.run(
        ["ssh-keygen", "-y", "-P", "", "-f", str(path)],
        capture_output=True,
        text=True,
        check=True,
    )
    return " ".join(done.stdout.split()[:2])


class TestOpened:
    @pytest.mark.parametrize("passphrase", [None, PASSPHRASE])
    @pytest.mark.parametrize(("kind", "style"), STYLES)
    def test_openssh_reads_it_without_a_passphrase(
        self, kind, style, passphrase, tmp_path
    ):
        made = ssh_keys.make(kind, style, passphrase)
        text = without_passphrase(made.private, passphrase)
        assert text.startswith("-----BEGIN OPENSSH PRIVATE KEY-----\n")
        assert public_key(text, tmp_path / "key") == made.public

    def test_a_key_that_openssh_made_is_read(self, tmp_path):
        path = tmp_path / "made"
        make = ["ssh-keygen", "-q", "-t", "ed25519", "-N", PASSPHRASE, "-f", str(path)]
        subprocess.run(make, check=True)
        public = (tmp_path / "made.pub").read_text()
        text = without_passphrase(path.read_text(), PASSPHRASE)
        assert public_key(text, tmp_path / "key") == " ".join(public.split()[:2])

    @pytest.mark.parametrize("style", ["openssh", "pkcs8"])
    def test_a_passphrase_that_is_not_needed_does_not_matter(self, style, tmp_path):
        made = ssh_keys.make("ed25519", style)
        text = without_passphrase(made.private, PASSPHRASE)
        assert public_key(text, tmp_path / "key") == made.public

    def test_an_older_cryptography_reports_the_passphrase_otherwise(
        self, monkeypatch, tmp_path
    ):
        load = serialization.load_ssh_private_key

        def former(data, password):
            try:
                return load(data, password)
            except TypeError:
                raise ValueError("Key is password-protected.") from None

        monkeypatch.setattr(serialization, "load_ssh_private_key", former)
        made = ssh_keys.make("ed25519", passphrase=PASSPHRASE)
        text = without_passphrase(made.private, PASSPHRASE)
        assert public_key(text, tmp_path / "key") == made.public
        missing = "has a passphrase, which is missing"
        assert reason(without_passphrase, made.private, None) == missing


class TestUnusable:
    @pytest.mark.parametrize("style", ["openssh", "traditional", "pkcs8"])
    def test_a_missing_passphrase_is_reported(self, style):
        made = ssh_keys.make("rsa", style, PASSPHRASE)
        assert reason(without_passphrase, made.private, None) == (
            "has a passphrase, which is missing"
        )

    @pytest.mark.parametrize("style", ["openssh", "traditional", "pkcs8"])
    def test_a_wrong_passphrase_is_reported_and_not_shown(self, style):
        made = ssh_keys.make("rsa", style, PASSPHRASE)
        assert reason(without_passphrase, made.private, "Wr0ng") == (
            "does not open with its passphrase"
        )

    @pytest.mark.parametrize("style", ["openssh", "traditional", "pkcs8"])
    def test_a_damaged_key_is_reported_and_not_shown(self, style):
        lines = ssh_keys.make("rsa", style).private.splitlines()
        damaged = "\n".join([*lines[:3], *lines[5:], ""])
        assert reason(without_passphrase, damaged, None) == (
            "is damaged or not an SSH private key"
        )

    @pytest.mark.parametrize(
        "generate",
        [
            pytest.param(lambda: dsa.generate_private_key(2048), id="dsa"),
            pytest.param(ed448.Ed448PrivateKey.generate, id="ed448"),
            pytest.param(
                lambda: ec.generate_private_key(ec.SECP256K1()), id="other-curve"
            ),
        ],
    )
    def test_kinds_that_ssh_does_not_take_are_refused(self, generate):
        pem = generate().private_bytes(
            serialization.Encoding.PEM,
            serialization.PrivateFormat.PKCS8,
            serialization.NoEncryption(),
        )
        assert re.match(
            "is of a kind that SSH", reason(without_passphrase, pem.decode(), None)
        )

    @pytest.mark.parametrize("text", ["", "x", "-----BEGIN OPENSSH PRIVATE KEY-----"])
    def test_anything_else_is_no_key(self, text):
        assert "not an SSH private key" in reason(without_passphrase, text, None)


@pytest.fixture
def directory(tmp_path):
    (tmp_path / "keys").mkdir()
    (tmp_path / "keys" / "worker").write_text("the key")
    (tmp_path / "secret").write_text("not for tenants")
    return tmp_path / "keys"


class TestFiles:
    def test_one_below_the_directory_is_read(self, directory):
        (directory / "site").mkdir()
        (directory / "site" / "one").write_text("another")
        assert read_key_file(f"{directory}/worker", str(directory)) == "the key"
        assert read_key_file(f"{directory}/site/one", f"{directory}/") == "another"
        assert read_key_file("./site/one", str(directory)) == "another"

    @pytest.mark.parametrize("path", ["secret", "nothing", "keys", "keys-2/worker", ""])
    def test_files_outside_the_directory_are_neither_read_nor_reported(
        self, path, directory
    ):
        (directory.parent / "keys-2").mkdir()
        (directory.parent / "keys-2" / "worker").write_text("not for tenants")
        outside = str(directory.parent / path)
        assert reason(read_key_file, outside, str(directory)) == OUTSIDE

    @pytest.mark.parametrize("target", ["secret", "nothing"])
    def test_a_link_that_leads_out_is_outside(self, target, directory):
        (directory / "link").symlink_to(directory.parent / target)
        link = str(directory / "link")
        assert reason(read_key_file, link, str(directory)) == OUTSIDE

    def test_a_climbing_path_is_outside(self, directory):
        climbing = f"{directory}/../secret"
        assert reason(read_key_file, climbing, str(directory)) == OUTSIDE

    def test_links_inside_and_a_linked_directory_are_followed(self, directory):
        (directory / "link").symlink_to("worker")
        (directory.parent / "alias").symlink_to(directory)
        alias = directory.parent / "alias"
        assert read_key_file(f"{alias}/link", str(directory)) == "the key"
        assert read_key_file(f"{directory}/link", str(alias)) == "the key"

    def test_without_a_directory_no_file_may_be_named(self, directory, monkeypatch):
        monkeypatch.chdir(directory)
        assert reason(read_key_file, f"{directory}/worker", "") == OUTSIDE

    def test_one_that_is_not_there_is_reported(self, directory):
        missing = reason(read_key_file, f"{directory}/nobody", str(directory))
        assert missing == (
            "is a file that is not there or that Tacker's conductor may not read "
            f"({directory}/nobody, below [k8s_mgmt] key_directory)"
        )

    @pytest.mark.parametrize("make", [os.mkdir, os.mkfifo])
    def test_anything_but_a_file_is_refused_without_waiting(self, make, directory):
        make(directory / "odd")
        refused = reason(read_key_file, f"{directory}/odd", str(directory))
        assert "file" in refused

    def test_a_huge_file_is_not_read_whole(self, directory):
        (directory / "huge").write_bytes(b"\xff" * 200_000)
        text = read_key_file(f"{directory}/huge", str(directory))
        assert len(text) < 40_000
