# SPDX-License-Identifier: Apache-2.0
"""The file with the host keys of Ansible servers."""

import threading

import pytest

from tacker_k8s_mgmt import errors
from tacker_k8s_mgmt.remote.ssh import known_hosts as key_files
from tacker_k8s_mgmt.remote.ssh.known_hosts import HostKeys

HOST = "ansible-server"


@pytest.fixture
def path(tmp_path):
    return tmp_path / "state" / "known_hosts"


@pytest.fixture
def key_file(path):
    return key_files.KeyFile(str(path))


def learn(key_file, host, key="KEY"):
    keys = key_file.load()
    assert keys.trust(host, 22, "ssh-ed25519", key)
    key_file.add(keys)


def test_key_is_stored_once_in_a_file_of_our_own(key_file, path):
    learn(key_file, HOST)
    learn(key_file, HOST)
    assert path.read_text() == f"{HOST} ssh-ed25519 KEY\n"
    assert path.stat().st_mode & 0o777 == 0o600


def test_name_that_ends_another_one_is_stored_too(key_file, path):
    learn(key_file, HOST)
    learn(key_file, "server")
    assert path.read_text().splitlines() == [
        f"{HOST} ssh-ed25519 KEY",
        "server ssh-ed25519 KEY",
    ]


def test_last_line_that_an_editor_left_open_stays_whole(key_file, path):
    learn(key_file, HOST)
    path.write_text(path.read_text().rstrip("\n"))
    learn(key_file, HOST)
    learn(key_file, "192.0.2.7")
    assert path.read_text().splitlines() == [
        f"{HOST} ssh-ed25519 KEY",
        "192.0.2.7 ssh-ed25519 KEY",
    ]


def test_hooks_side_by_side_lose_no_key(key_file, path):
    hosts = [f"192.0.2.{number}" for number in range(8)]
    threads = [threading.Thread(target=learn, args=(key_file, host)) for host in hosts]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(line.split()[0] for line in path.read_text().splitlines()) == hosts


def test_reading_only_makes_no_file_and_adds_no_key(key_file, path):
    reader = key_files.ReadOnlyKeyFile(str(path))
    assert reader.load().text() == ""
    assert not path.parent.exists()
    learn(key_file, HOST)
    before = path.read_bytes()
    keys = reader.load()
    assert keys.trust(HOST, 22, "ssh-ed25519", "KEY")
    with pytest.raises(errors.UnknownHostError, match=str(path)):
        keys.trust("192.0.2.7", 22, "ssh-ed25519", "KEY")
    reader.add(HostKeys("192.0.2.7 ssh-ed25519 KEY"))
    assert path.read_bytes() == before


class TestApart:
    """A file for each project, or else VNF instance, beside the one of before."""

    ONE = "0f3a" * 8

    def file(self, path, owner, kind=key_files.KeyFile):
        project, vnf = owner
        return kind(*key_files.paths(str(path.parent), project, vnf))

    def test_what_one_project_learns_is_not_another_ones(self, path):
        one, other = self.file(path, (self.ONE, "v")), self.file(path, ("b" * 32, "v"))
        learn(one, HOST, "KEY1")
        learn(other, HOST, "KEY2")
        for file, key in ((one, "KEY1"), (other, "KEY2")):
            assert file.load().text() == f"{HOST} ssh-ed25519 {key}\n"
        assert not path.exists()
        (name, _) = sorted(entry.name for entry in path.parent.rglob("project-*"))
        assert name == f"project-{self.ONE}"
        for entry in path.parent.rglob("*"):
            assert entry.stat().st_mode & 0o077 == 0

    def test_without_a_project_each_vnf_instance_has_its_own(self, path):
        learn(self.file(path, ("", "v1")), HOST, "KEY1")
        learn(self.file(path, ("", "v2")), HOST, "KEY2")
        assert len(list(path.parent.rglob("vnf-*"))) == 2

    @pytest.mark.parametrize("owner", ["../../etc/x", "a/b", "..", "a\nb", "é"])
    def test_no_id_leads_to_another_place(self, path, owner):
        for place in ((owner, "v"), ("", owner)):
            learn(self.file(path, place), HOST)
        found = [entry for entry in path.parent.parent.rglob("*") if entry.is_file()]
        assert {entry.parent for entry in found} == {path.parent / "known_hosts.d"}

    @pytest.mark.parametrize("kind", [key_files.KeyFile, key_files.ReadOnlyKeyFile])
    def test_the_file_of_before_counts_and_stays_as_it_is(self, path, kind):
        path.parent.mkdir()
        path.write_text(f"{HOST} ssh-ed25519 OLD\n@revoked * ssh-ed25519 BAD\n")
        before = path.read_bytes()
        file = self.file(path, (self.ONE, "v"), kind)
        keys = file.load()
        assert not keys.trust(HOST, 22, "ssh-ed25519", "NEW")
        assert keys.recorded_in(HOST, 22) == str(path)
        with pytest.raises(errors.HostKeyError, match="revoked"):
            keys.trust("192.0.2.9", 22, "ssh-ed25519", "BAD")
        assert keys.trust(HOST, 22, "ssh-ed25519", "OLD")
        file.add(keys)
        assert path.read_bytes() == before
        copied = file.load().text()
        copies = kind is key_files.KeyFile
        assert copied == (f"{HOST} ssh-ed25519 OLD\n" if copies else "")
        # Used again, it stays one line; and it holds without the file of before.
        learn(file, HOST, "OLD")
        assert file.load().text() == copied
        path.unlink()
        if copies:
            assert not file.load().trust(HOST, 22, "ssh-ed25519", "NEW")

    def test_to_compare_with_all_a_host_shows_what_each_file_has(self, path):
        learn(self.file(path, (self.ONE, "v")), HOST, "KEY1")
        learn(self.file(path, ("", "v")), "192.0.2.7", "KEY7")
        every = key_files.load_all(str(path.parent))
        assert every.trust(HOST, 22, "ssh-ed25519", "KEY1")
        assert not every.trust("192.0.2.7", 22, "ssh-ed25519", "KEY1")
        assert every.trust("192.0.2.8", 22, "ssh-ed25519", "KEY8")
        learn(self.file(path, ("b", "v")), HOST, "KEY2")
        every = key_files.load_all(str(path.parent))
        for key in ("KEY1", "KEY2"):
            assert not every.trust(HOST, 22, "ssh-ed25519", key)

    def test_nothing_recorded_is_nothing_to_compare_with(self, path):
        every = key_files.load_all(str(path.parent))
        assert every.trust(HOST, 22, "ssh-ed25519", "KEY")
        assert not path.parent.exists()
