# SPDX-License-Identifier: Apache-2.0
"""Where a lab is."""

from pathlib import Path

import pytest

from lab import settings
from lab.namespace import user_environment


@pytest.mark.parametrize(
    ("given", "environ", "is_root", "state", "cache"),
    [
        pytest.param((None, None), {}, True, settings.STATE, settings.CACHE, id="root"),
        pytest.param(
            (None, None),
            {"HOME": "/home/me"},
            False,
            settings.STATE,
            "/home/me/.cache/tacker-k8s-lab",
            id="user",
        ),
        pytest.param(
            (None, None),
            {"LAB_STATE": "/s", "LAB_CACHE": "/c", "HOME": "/home/me"},
            False,
            "/s",
            "/c",
            id="environment",
        ),
        pytest.param(
            ("/mine", "/keep"),
            {"LAB_STATE": "/s", "LAB_CACHE": "/c"},
            True,
            "/mine",
            "/keep",
            id="arguments come first",
        ),
    ],
)
def test_the_lab_that_is_meant(given, environ, is_root, state, cache):
    found = settings.from_environment(given[0], given[1], environ, is_root=is_root)
    assert (found.state, found.cache) == (Path(state), Path(cache))


def test_relative_directories_become_absolute(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    found = settings.from_environment("a", "b", {}, is_root=True)
    assert (found.state, found.cache) == (tmp_path / "a", tmp_path / "b")


def test_a_users_command_gets_credentials_places_and_programs_but_no_proxy(tmp_path):
    lab = settings.Settings(tmp_path / "state", tmp_path / "cache")
    own = {"PATH": "/mine", "http_proxy": "x", "HTTPS_PROXY": "x", "EDITOR": "vi"}
    found = user_environment(lab, own)
    assert found["OS_USERNAME"] == settings.USER
    assert found["LAB_STATE"] == str(lab.state)
    assert found["LAB_CLOUD_STATE"] == str(lab.cloud)
    assert found["TACKER_K8S_MGMT_CONFIG"] == str(lab.etc / "tacker.conf")
    assert found["EDITOR"] == "vi"
    assert found["KUBECONFIG"] == str(lab.state / "kubeconfig")
    assert user_environment(lab, {"KUBECONFIG": "x"})["KUBECONFIG"] == "x"
    assert not [name for name in found if name.lower().endswith("_proxy")]
    path = found["PATH"].split(":")
    assert path[0].startswith(str(tmp_path / "cache" / "envs" / "tacker-"))
    assert path[1:3] == [str(lab.programs), "/mine"]
