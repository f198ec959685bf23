# SPDX-License-Identifier: Apache-2.0
"""Profiles in files of this host: only those in their two places."""

import os

import pytest

from tacker_k8s_mgmt.remote.local_files import ProfileFiles
from tacker_k8s_mgmt.request.profile_document import LARGEST, InvalidProfile

TEXT = "parameters: {cluster: {helm: true}}\n"


@pytest.fixture
def places(tmp_path):
    state_path, package = tmp_path / "state", tmp_path / "package"
    (state_path / "profiles").mkdir(parents=True)
    (package / "Files" / "profiles").mkdir(parents=True)
    return state_path / "profiles", package / "Files" / "profiles"


@pytest.fixture
def find(places):
    state_path, package = (str(one.parent) for one in places)
    return ProfileFiles(state_path, lambda: os.path.dirname(package))


def refusal(find, name="edge") -> str:
    with pytest.raises(InvalidProfile) as caught:
        find(name)
    (problem,) = caught.value.problems
    return problem


@pytest.mark.parametrize("number", [0, 1])
def test_either_place_may_have_it(places, find, number):
    (places[number] / "edge.yaml").write_text(TEXT)
    found = find("edge")
    assert found.parameters == {"cluster": {"helm": True}}
    package = "Files/profiles/edge.yaml of the VNF package"
    assert found.source == (package if number else f"{places[0]}/edge.yaml")


def test_the_drivers_own_need_no_file(find):
    assert find("starlingx").source == "of tacker-k8s-mgmt"


def test_both_at_once_are_refused(places, find):
    for place in places:
        (place / "edge.yaml").write_text(TEXT)
    assert "there are several profiles edge" in refusal(find)


def test_none_is_refused_with_the_places(places, find):
    assert refusal(find) == (
        f"there is no Files/profiles/edge.yaml of the VNF package or "
        f"{places[0]}/edge.yaml, and the driver has starlingx"
    )


def test_without_a_package_the_state_path_is_left(places):
    (places[0] / "edge.yaml").write_text(TEXT)
    assert ProfileFiles(str(places[0].parent))("edge").parameters


@pytest.mark.parametrize("number", [0, 1])
def test_no_link_leads_out(tmp_path, places, find, number):
    outside = tmp_path / "outside.yaml"
    outside.write_text(TEXT)
    (places[number] / "edge.yaml").symlink_to(outside)
    assert "is not below the place of profiles (the " in refusal(find)
    outside.unlink()
    assert "is not below the place of profiles (the " in refusal(find)


@pytest.mark.parametrize("number", [0, 1])
def test_nor_does_a_link_in_place_of_the_directory(tmp_path, places, find, number):
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    (elsewhere / "edge.yaml").write_text(TEXT)
    places[number].rmdir()
    places[number].symlink_to(elsewhere)
    assert "is not below the place of profiles (the " in refusal(find)


def test_a_link_inside_is_followed(places, find):
    (places[0] / "v1.yaml").write_text(TEXT)
    (places[0] / "edge.yaml").symlink_to("v1.yaml")
    assert find("edge").parameters


@pytest.mark.parametrize("make", [os.mkfifo, os.mkdir])
def test_a_pipe_is_not_waited_for_and_a_directory_is_no_file(places, find, make):
    make(places[0] / "edge.yaml")
    assert refusal(find).endswith("is not a file")


def test_no_more_is_read_than_a_profile_may_have(places, find):
    with (places[1] / "edge.yaml").open("wb") as file:
        file.truncate(1 << 40)
    assert refusal(find).endswith(f"is larger than {LARGEST} bytes")


def test_one_that_is_wrong_is_refused_with_its_place(places, find):
    (places[1] / "edge.yaml").write_text("parameters: {cluster: {helm: 1}}\n")
    assert refusal(find) == (
        "Files/profiles/edge.yaml of the VNF package: parameters.cluster.helm: must "
        "be true or false"
    )
