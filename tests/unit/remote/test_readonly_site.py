# SPDX-License-Identifier: Apache-2.0
"""The cluster's directory as a plan has it: what is written is kept in memory."""

import pytest

from tacker_k8s_mgmt import errors
from tacker_k8s_mgmt.remote import vms
from tacker_k8s_mgmt.remote.ansible.cluster_directory import ClusterDirectory
from tacker_k8s_mgmt.remote.readonly_site import _Directory
from tacker_k8s_mgmt.remote.ssh.known_hosts import RecordedKeys


@pytest.fixture
def path(tmp_path):
    return tmp_path / "one"


@pytest.fixture
def real(session, path):
    found = ClusterDirectory(session, str(path), "vnf-1")
    found.claim()
    found.write("hosts.yaml", "before")
    return found


@pytest.fixture
def seen(session, path, real):
    found = _Directory(session, str(path), "vnf-1")
    found.written = {}
    return found


def test_what_is_written_is_read_again_and_not_there(seen, real):
    assert seen.read("hosts.yaml") == "before"
    assert seen.write("hosts.yaml", "after") is True
    assert seen.write("hosts.yaml", "after") is False
    assert seen.read("hosts.yaml") == "after"
    assert real.read("hosts.yaml") == "before"
    assert seen.write("new.json", "[]") is True
    assert real.read("new.json") is None


def test_a_damaged_file_is_rebuilt_in_memory(seen, real, path):
    (path / "hosts.yaml").write_bytes(b"\xff\xfe")
    with pytest.raises(errors.DamagedFile):
        seen.read("hosts.yaml")
    assert seen.write("hosts.yaml", "rebuilt") is True
    assert seen.read("hosts.yaml") == "rebuilt"


def test_host_keys_are_not_stored(seen, real, path):
    before = {one.name for one in path.iterdir()}
    vms.save(seen, RecordedKeys("", "the keys"))
    assert {one.name for one in path.iterdir()} == before


def test_a_claim_only_looks(seen, session, tmp_path, path):
    seen.claim()
    other = _Directory(session, str(path), "vnf-2")
    other.written = {}
    with pytest.raises(errors.OwnershipError, match="belongs to the VNF instance"):
        other.claim()
    new = _Directory(session, str(tmp_path / "new"), "vnf-2")
    new.claim()
    assert not (tmp_path / "new").exists()
