# SPDX-License-Identifier: Apache-2.0
"""The file with the host keys of Ansible servers."""

import threading

import pytest

from tacker_k8s_mgmt import errors
from tacker_k8s_mgmt.remote.ssh import key_file as key_files
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
