# SPDX-License-Identifier: Apache-2.0
"""A profile in a cluster's life through the v1 API: what it stood for holds."""

import json
import types
from typing import Any

import pytest

pytest.importorskip("tacker", reason="the contract is with an installed Tacker")

from tacker import objects
from tacker.common import driver_manager
from tacker.vnflcm import utils as vnflcm_utils

from tacker_k8s_mgmt import config, errors
from tacker_k8s_mgmt.hooks.v1 import hook as context
from tacker_k8s_mgmt.hooks.v1 import stack, vim_registry
from tacker_k8s_mgmt.hooks.v1.instance import V1Instance
from tests.contract.v1_instances import NAME, OpenSite, Saved, instance
from tests.helpers.fakes.site import FakeSite
from tests.helpers.operations import replace_all
from tests.helpers.requests import VNF, additional_params

TEXT = "parameters: {cluster: {container_manager: %s, metrics_server: true}}\n"
KEY = "k8s_mgmt_profile"

objects.register_all()


@pytest.fixture
def site(monkeypatch, tmp_path):
    made: Any = FakeSite()
    made.__class__ = OpenSite

    def opened(hook, params):
        made.params = params
        return made

    monkeypatch.setattr(context, "V1Site", opened)
    monkeypatch.setattr(config, "state_path", lambda _: str(tmp_path / "state"))
    monkeypatch.setattr(V1Instance, "checkpoint", lambda *_, **__: None)
    monkeypatch.setattr(V1Instance, "names_no_vnfc", lambda _: False)
    monkeypatch.setattr(
        vnflcm_utils, "_get_vnf_package_path", lambda *_: str(tmp_path / "package")
    )
    monkeypatch.setattr(vim_registry, "VimRegistry", lambda *_: made.vims)
    heat = types.SimpleNamespace(find_stack=lambda name: None)
    monkeypatch.setattr(stack, "heat_of", lambda *_: heat)
    return made


@pytest.fixture(scope="module")
def manager():
    return driver_manager.DriverManager("tacker.tacker.mgmt.drivers", [NAME])


@pytest.fixture
def write(tmp_path):
    """Write the profile ``edge`` into one of its two places."""

    def write(engine, place="package/Files/profiles"):
        path = tmp_path / place / "edge.yaml"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(TEXT % engine)

    return write


@pytest.fixture
def vnf():
    made = Saved(**vars(instance(additional_params(profile="edge"))))
    made.id = VNF
    made.vnf_metadata = {"of": "a user"}
    made.instantiated_vnf_info.vnfc_resource_info = []
    return made


def call(manager, name, vnf, changes=None):
    given = vnf.instantiated_vnf_info.additional_params
    if not name.startswith("instantiate_"):
        given = {"k8s_cluster_installation_param": changes} if changes else None
    request = types.SimpleNamespace(
        additional_params=given,
        aspect_id="worker_instance",
        type="SCALE_OUT",
        number_of_steps=1,
        vnfc_instance_id=None,
    )
    kind = name.partition("_")[0]
    manager.invoke(
        NAME,
        name,
        context=None,
        vnf_instance=vnf,
        grant=None,
        grant_request=None,
        **{f"{kind}_vnf_request": request},
    )


def instantiate(manager, vnf):
    for name in ("instantiate_start", "instantiate_end"):
        call(manager, name, vnf)


def written(site):
    return json.loads(site.files["vars.json"])["container_manager"]


@pytest.mark.parametrize("place", ["package/Files/profiles", "state/profiles"])
def test_a_file_in_either_place_is_used_and_kept(manager, site, write, vnf, place):
    write("crio", place)
    instantiate(manager, vnf)
    assert written(site) == "crio"
    assert json.loads(vnf.vnf_metadata[KEY]) == {
        "name": "edge",
        "parameters": {
            "cluster": {"container_manager": "crio", "metrics_server": True}
        },
    }
    assert vnf.vnf_metadata["of"] == "a user"
    assert vnf.saved


def test_what_is_kept_at_the_start_holds_at_the_end(manager, site, write, vnf):
    write("crio")
    call(manager, "instantiate_start", vnf)
    write("docker")
    call(manager, "instantiate_end", vnf)
    assert written(site) == "crio"


def test_a_package_may_leave_the_start_out(manager, site, write, vnf):
    write("crio")
    call(manager, "instantiate_end", vnf)
    assert "crio" in vnf.vnf_metadata[KEY]


def test_another_instantiation_reads_it_anew(manager, site, write, vnf):
    write("crio")
    call(manager, "instantiate_start", vnf)
    write("docker")
    call(manager, "instantiate_start", vnf)
    assert "docker" in vnf.vnf_metadata[KEY]


def test_it_holds_when_the_file_is_changed_or_gone(manager, site, write, vnf, tmp_path):
    write("crio")
    instantiate(manager, vnf)
    write("docker")
    call(manager, "heal_start", vnf)
    replace_all(site)
    call(manager, "heal_end", vnf)
    assert written(site) == "crio"
    (tmp_path / "package" / "Files" / "profiles" / "edge.yaml").unlink()
    call(manager, "scale_end", vnf)
    assert site.params.cluster.container_manager == "crio"
    with pytest.raises(errors.ParamError, match="all nodes have the same"):
        call(manager, "scale_end", vnf, {"cluster": {"container_manager": "docker"}})


def test_without_what_is_kept_nothing_changes_but_it_can_end(manager, site, write, vnf):
    write("crio")
    instantiate(manager, vnf)
    vnf.vnf_metadata = {}
    with pytest.raises(errors.ParamError, match="give the metadata back"):
        call(manager, "scale_end", vnf)
    for name in ("terminate_start", "terminate_end"):
        call(manager, name, vnf)
    assert site.owner is None


@pytest.mark.parametrize("text", ["{", '"text"', "{}", "[1]"])
def test_what_was_written_over_it_is_refused(manager, site, write, vnf, text):
    write("crio")
    instantiate(manager, vnf)
    vnf.vnf_metadata = {KEY: text}
    with pytest.raises(errors.ParamError, match="not as this driver stores it"):
        call(manager, "scale_end", vnf)


def test_the_end_leaves_the_users_metadata(manager, site, write, vnf):
    write("crio")
    instantiate(manager, vnf)
    for name in ("terminate_start", "terminate_end"):
        call(manager, name, vnf)
    assert vnf.vnf_metadata == {"of": "a user"}


def test_one_that_is_wrong_is_refused_before_a_vm_exists(manager, site, write, vnf):
    write("podman")
    with pytest.raises(errors.ParamError) as caught:
        call(manager, "instantiate_start", vnf)
    assert (
        "profile: Files/profiles/edge.yaml of the VNF package: parameters.cluster."
        "container_manager: must be"
    ) in str(caught.value)
    assert "Nothing was changed" in str(caught.value)
    assert KEY not in vnf.vnf_metadata
    assert site.owner is None
