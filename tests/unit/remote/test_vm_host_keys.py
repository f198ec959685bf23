# SPDX-License-Identifier: Apache-2.0
"""Host keys of VMs: which are recorded, and which were lost."""

import json

import pytest

from tacker_k8s_mgmt import errors
from tacker_k8s_mgmt.remote import vms

MACHINES = json.dumps({"server-5": "192.0.2.5", "server-7": "192.0.2.7"})
FIVE = "192.0.2.5 ssh-ed25519 KEY5\n"
SEVEN = "192.0.2.7 ssh-ed25519 KEY7\n"


class Directory:
    path = "/srv/clusters/one"

    def __init__(self, **files):
        self.files = {
            "known_hosts": files.get("keys"),
            "machines.json": files.get("machines", MACHINES),
        }
        self.written = []

    def read(self, name):
        return self.files[name]

    def write(self, name, text):
        self.files[name] = text
        self.written.append(name)
        return True


def test_file_that_lost_a_whole_line_is_refused():
    with pytest.raises(errors.DamagedFile) as caught:
        vms.load(Directory(keys=FIVE), "ansible")
    text = str(caught.value)
    assert "/srv/clusters/one/known_hosts on" in text
    assert "no host key of these VMs, which it had: 192.0.2.7 (server-7)" in text
    assert "Restore it. Or delete it" in text


def test_names_are_compared_whole():
    longer = FIVE + "192.0.2.77 ssh-ed25519 KEY77\n"
    with pytest.raises(errors.DamagedFile, match="server-7"):
        vms.load(Directory(keys=longer), "ansible")


@pytest.mark.parametrize(
    "machines", [MACHINES, None, "", "{", "[]", '{"server-5": "192.0.2.5"}']
)
def test_complete_file_is_taken(machines):
    keys = vms.load(Directory(keys=FIVE + SEVEN, machines=machines), "a")
    assert keys.of("192.0.2.7", 22) == [("ssh-ed25519", "KEY7")]


@pytest.mark.parametrize("machines", [None, "{", "{}"])
def test_without_a_record_of_vms_no_line_is_missed(machines):
    assert vms.load(Directory(keys=FIVE, machines=machines), "a").text() == (FIVE)


def test_after_its_deletion_the_next_keys_are_trusted():
    directory = Directory(keys=None)
    keys = vms.load(directory, "a")
    keys.trust("192.0.2.5", 22, "ssh-ed25519", "NEW5")
    vms.save(directory, keys)
    # The other VM has not been reached: its next key is trusted as well.
    assert json.loads(directory.files["machines.json"]) == {"server-5": "192.0.2.5"}
    assert directory.written == ["machines.json", "known_hosts"]
    assert vms.load(directory, "a").knows("192.0.2.5", 22)


def test_forgotten_vm_is_not_missed():
    directory = Directory(keys=FIVE + SEVEN)
    keys = vms.load(directory, "a")
    keys.forget("192.0.2.7")
    vms.save(directory, keys)
    assert vms.load(directory, "a").text() == FIVE


class Busy(Directory):
    """An operation removes a VM while its files are read."""

    def read(self, name):
        text = super().read(name)
        if name == "machines.json":
            self.files[name] = '{"server-5": "192.0.2.5"}'
            self.files["known_hosts"] = FIVE
        return text


def test_vm_that_an_operation_removes_meanwhile_is_not_missed():
    assert vms.load(Busy(keys=FIVE + SEVEN), "a").text() == FIVE
