# SPDX-License-Identifier: Apache-2.0
"""`preflight --cloud` at the lab's services: all is good, and then each thing is not.

Nothing is instantiated here; test_connectivity.py sends what `request init` writes.
"""

import contextlib
import json
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from lab import client, settings
from lab.cloud.addresses import CONTROLLER_ADDRESS
from lab.cloud.state import State
from lab.services import compute, images
from tacker_k8s_mgmt.tools.cli import main
from tacker_k8s_mgmt.tools.csar import parts, tacker_api
from tests.integration import site
from tests.integration.conftest import ANSIBLE_SERVER, PARAMETERS

pytestmark = pytest.mark.lab

#: Rows that may have a reason in place of a result.
UNASKED = {"VMs", "Ansible server to mirror", "private keys", "VIM name"}
#: On the Ansible server, with something in it.
TAKEN = "/srv/taken"
NOWHERE = "10.99.0.250"


def built(path: Path, *options: str) -> Path:
    assert main(["csar", "build", "simple", "-o", str(path), *options]) == 0
    return path


@contextlib.contextmanager
def quotas(**limits: int) -> Iterator[None]:
    """Other quotas of the lab's project."""
    state = State(settings.from_environment().cloud)
    with state.edit() as records:
        records["quotas"] = {name: {"limit": n} for name, n in limits.items()}
    try:
        yield
    finally:
        with state.edit() as records:
            records["quotas"] = {}


@contextlib.contextmanager
def no_way_to(address: str) -> Iterator[None]:
    """Take the Ansible server's route away, but for the answers of its sshd."""
    rules = (
        ("10", "ipproto", "tcp", "sport", "22", "lookup", "main"),
        ("11", "to", address, "unreachable"),
    )
    for rule in rules:
        client.on_host(ANSIBLE_SERVER, "ip", "rule", "add", "pref", *rule)
    try:
        yield
    finally:
        for number, *_ in rules:
            client.on_host(ANSIBLE_SERVER, "ip", "rule", "del", "pref", number)


@pytest.mark.parametrize(
    "version", [tacker_api.V1, tacker_api.V2], ids=lambda one: one.name
)
def test_a_request_of_request_init_is_good(tmp_path, version):
    csar = built(tmp_path / "simple.zip", "--api", version.name)
    path = tmp_path / "instantiate.json"
    site.request(csar, path, "--name", "good")
    rows = site.preflight(path, csar)
    assert {name: r["findings"] for name, r in rows.items() if r["findings"]} == {}
    assert {name for name, row in rows.items() if row["not_checked"]} <= UNASKED
    assert {"image", "flavour", "key pair", "network", "Heat"} < set(rows)


class TestFaults:
    @pytest.fixture(scope="class")
    def csar(self, tmp_path_factory: pytest.TempPathFactory) -> Path:
        """A package for another image, a flavour too small, and a Heat to come."""
        place = tmp_path_factory.mktemp("faulty")
        source = place / "samples"
        shutil.copytree(parts.samples(), source)
        top = source / "hot" / "simple" / "base_hot_top.yaml"
        top.write_text(top.read_text().replace("2018-08-31", "2099-08-31", 1))
        names = ("--image", images.OTHER, "--flavor", compute.TOO_SMALL)
        return built(place / "faulty.zip", "--source", str(source), *names)

    def test_each_row_says_what_is_missing(self, tmp_path, csar):
        path = tmp_path / "instantiate.json"
        good = built(tmp_path / "simple.zip")
        body = site.request(good, path, "--name", "bad", "--vim-name", settings.VIM)
        body["additionalParams"]["key_name"] = "nosuch"
        body["extVirtualLinks"][0]["resourceId"] = "nosuch"
        ours = body["additionalParams"][PARAMETERS]
        ours["cluster"] = {"network": {"encapsulation": "none"}}
        ours["kubespray_vars"] = {"files_repo": f"http://{NOWHERE}:9/files"}
        ours["ansible"] |= {
            "kubespray_root_path": "/opt/nosuch",
            "transferring_inventory_path": TAKEN,
        }
        make = f"mkdir -p {TAKEN} && touch {TAKEN}/other"
        client.on_host(ANSIBLE_SERVER, "sh", "-c", make)
        ours["master_node"]["private_key"] = "./nosuch"
        ours["external_lb_param"]["script_path"] = "Scripts/nosuch.sh"
        path.write_text(json.dumps(body))
        other = {"OS_USERNAME": "admin", "OS_PROJECT_NAME": "admin"}
        with quotas(instances=1, port=1):
            rows = site.preflight(path, csar, **other)
        found = {n: " ".join(r["findings"]) for n, r in rows.items() if r["findings"]}
        expected = {
            "VIM name": "Tacker has a VIM of this name already",
            "image": "its property os_distro is cirros",
            "flavour": "it has 512 MiB of memory",
            "key pair": "no key pair nosuch (there are: lab)",
            "network": "nosuch: Neutron has no such network",
            "pods' packets": "Neutron drops the packets of pods at masterNode_CP2",
            "quotas of Nova": "instances: the request needs 4",
            "quotas of Neutron": "ports: the request needs 8",
            "Heat": "does not read heat_template_version 2099-08-31",
            "Tacker's default VIM": "for the project nfv of the domain Default, and",
            "private keys": "(./nosuch, below [k8s_mgmt] key_directory)",
            "kubespray and Ansible": "there is no kubespray at",
            "load balancer's script": "has no file Scripts/nosuch.sh",
            "cluster's directory": "is not empty and has no marker of this driver",
            "Ansible server to mirror": NOWHERE,
        }
        assert set(found) == set(expected), found
        for name, text in expected.items():
            assert text in found[name], found[name]

    def test_what_does_not_answer_hides_no_other(self, tmp_path):
        path, csar = tmp_path / "instantiate.json", built(tmp_path / "simple.zip")
        body = site.request(csar, path, "--name", "bad")
        body["additionalParams"][PARAMETERS]["ansible"]["ip_address"] = NOWHERE
        path.write_text(json.dumps(body))
        rows = site.preflight(path, csar, OS_PASSWORD="wrong")
        found = {name for name, row in rows.items() if row["findings"]}
        assert found == {"cloud", "Ansible server"}
        with quotas(cores=1):
            rows = site.preflight(path, csar)
        found = {name for name, row in rows.items() if row["findings"]}
        assert found == {"quotas of Nova", "Ansible server"}
        silent = rows["Ansible server to VMs"]["not_checked"]
        assert silent == "the Ansible server could not be asked"

    def test_ansible_server_has_no_way_to_the_vms(self, tmp_path):
        path, csar = tmp_path / "instantiate.json", built(tmp_path / "simple.zip")
        site.request(csar, path, "--name", "far")
        with no_way_to(CONTROLLER_ADDRESS):
            rows = site.preflight(path, csar)
        found = {n: r["findings"] for n, r in rows.items() if r["findings"]}
        (text,) = found.pop("Ansible server to VMs")
        assert f"has no route to {CONTROLLER_ADDRESS}" in text
        assert found == {}


def test_openstacks_own_client_sees_what_request_init_sees():
    shown = client.command(["openstack", "flavor", "list", "-f", "value", "-c", "Name"])
    assert set(shown.split()) == {flavor["name"] for flavor in compute.FLAVORS}
    for kind, name in (("network", "external"), ("keypair", "lab")):
        shown = client.command(["openstack", kind, "list", "-f", "value"])
        assert name in shown.split(), shown
