# SPDX-License-Identifier: Apache-2.0
"""The installed Tacker takes a package of its sample driver that was rebuilt.

With the request body as the sample driver's user guide has it.
"""

import logging
import types

import pytest

pytest.importorskip("tacker", reason="the contract is with an installed Tacker")

import yaml
from tacker import objects
from tacker.api.schemas import vnf_lcm
from tacker.api.validation import validators
from tacker.common import csar_utils
from tacker.conf import CONF
from tacker.vnflcm import utils as vnflcm_utils

from tacker_k8s_mgmt.tools.csar import parts
from tacker_k8s_mgmt.tools.csar.build import build
from tests.contract import onboarding as tackers
from tests.helpers import sampledriver, sampledriver_vnfd


@pytest.fixture(scope="module")
def onboarded(tmp_path_factory):
    """The package as Tacker has it after the upload."""
    objects.register_all()
    # A Tacker from PyPI lacks its SOL001 files and logs that with a broken format.
    logging.getLogger("tacker.tosca.utils").setLevel(logging.CRITICAL)
    root = tmp_path_factory.mktemp("packages")
    CONF.set_override("vnf_package_csar_path", str(root), group="vnf_package")
    tree = sampledriver.write(tmp_path_factory.mktemp("tree"))
    zip_path = root / "upload.zip"
    build("simple", zip_path, source=tree)
    package = tackers.PACKAGE
    data, flavours, _ = csar_utils.load_csar_data(None, package, str(zip_path))
    yield types.SimpleNamespace(path=root / package, vnf_data=data, flavours=flavours)
    CONF.clear_override("vnf_package_csar_path", group="vnf_package")


@pytest.fixture
def tacker(onboarded, monkeypatch):
    """Tacker's view of the package, without a database."""
    monkeypatch.setattr(
        objects.VnfPackageVnfd,
        "get_by_id",
        lambda *_: types.SimpleNamespace(package_uuid=tackers.PACKAGE),
    )
    return onboarded


def test_tackers_api_takes_the_body():
    schema = validators._SchemaValidator(vnf_lcm.instantiate).validator
    assert [error.message for error in schema.iter_errors(sampledriver.body())] == []


def test_the_upload_is_accepted_under_the_same_id(tacker):
    assert tacker.vnf_data["descriptor_id"] == sampledriver_vnfd.DESCRIPTOR
    assert [flavour["flavour_id"] for flavour in tacker.flavours] == ["simple"]


@pytest.mark.parametrize("hook", sampledriver_vnfd.HOOKS)
def test_its_hooks_lead_to_this_driver(tacker, hook):
    vnfd = vnflcm_utils.get_vnfd_dict(None, "vnfd", "simple")
    instance = types.SimpleNamespace(vnfd_id="vnfd")
    driver = tackers.hashing_driver()
    assert driver._load_vnf_interface(None, hook, instance, vnfd) == parts.DRIVER


def test_the_body_fills_the_hot(tacker, monkeypatch):
    created, _ = tackers.instantiate(tacker, monkeypatch, sampledriver.body())
    machine = {"flavor": "ds2G", "image": "ubuntu-22.04"}
    network = sampledriver.body()["extVirtualLinks"][0]["resourceId"]
    nfv = created["parameters"]["nfv"]
    assert nfv["VDU"] == dict.fromkeys(sampledriver_vnfd.VDUS, machine)
    assert {cp: port["network"] for cp, port in nfv["CP"].items()} == {
        cp: network for cp, _, _ in sampledriver_vnfd.VDUS.values()
    }
    template = yaml.safe_load(created["template"])
    assert template == yaml.safe_load(
        (tacker.path / "BaseHOT/simple/base_hot_top.yaml").read_text()
    )
    assert set(created["files"]) == {
        f"base_hot_nested_{short}.yaml" for short in ("master", "worker")
    }
