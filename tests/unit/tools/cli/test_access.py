# SPDX-License-Identifier: Apache-2.0
"""``tacker-k8s-mgmt cluster access``: the VIM of a cluster, for either API."""

import json
import stat
import types
from typing import Any

import pytest
import yaml
from tackerclient.tacker.v1_0.nfvo import vim_utils

from tacker_k8s_mgmt.status.facts import HealCommands
from tacker_k8s_mgmt.tools.cli import main
from tests.helpers.operations import instantiated
from tests.helpers.requests import VNF, params


@pytest.fixture
def opened(monkeypatch, tmp_path, look_up):
    monkeypatch.chdir(tmp_path)
    view: Any = instantiated(params())
    found = types.SimpleNamespace(
        view=view, vnf_id=VNF, name="one", operation="", params=params()
    )
    found.metadata, found.heals = view.metadata, HealCommands()
    return look_up(found)


@pytest.fixture
def known(opened):
    """URL, token and CA certificate of the cluster."""
    plane = next(iter(opened.view.machines().control_planes), None)
    access = opened.view.cluster(plane).admin_access()
    url = opened.view.vim.auth_url
    return url, access.token.get_secret_value(), access.ca_certificate


@pytest.mark.parametrize(
    ("options", "kind"),
    [([], "ETSINFV.KUBERNETES.V_1"), (["--helm"], "ETSINFV.HELM.V_3")],
)
def test_for_requests_of_the_v2_api(opened, known, tmp_path, capsys, options, kind):
    url, token, authority = known
    assert main(["cluster", "access", VNF, *options]) == 0
    path = tmp_path / f"{VNF}.json"
    assert json.loads(path.read_text()) == {
        "vimConnectionInfo": {
            "one": {
                "vimType": kind,
                "interfaceInfo": {"endpoint": url, "ssl_ca_cert": authority},
                "accessInfo": {"bearer_token": token},
            }
        }
    }
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    out = capsys.readouterr().out
    assert out == f"{path.name}: {url}\n"


def test_for_vim_register(opened, known, tmp_path):
    url, token, authority = known
    assert main(["cluster", "access", VNF, "--vim-file", "-o", "vim.yaml"]) == 0
    path = tmp_path / "vim.yaml"
    assert yaml.safe_load(path.read_text()) == {
        "auth_url": url,
        "bearer_token": token,
        "ssl_ca_cert": authority,
        "project_name": "default",
        "type": "kubernetes",
    }
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    # As `openstack vim register` reads it.
    vim: dict[str, Any] = {"type": "kubernetes"}
    vim_utils.args2body_vim(yaml.safe_load(path.read_text()), vim)
    assert vim["vim_project"]["name"] == "default"
    assert vim["auth_cred"] == {"bearer_token": token, "ssl_ca_cert": authority}


def test_a_file_is_replaced_only_by_force(opened, tmp_path, capsys):
    path = tmp_path / "mine"
    path.write_text("mine")
    assert main(["cluster", "access", VNF, "-o", str(path)]) == 2
    assert "--force replaces it" in capsys.readouterr().err
    assert path.read_text() == "mine"
    assert main(["cluster", "access", VNF, "-o", str(path), "--force"]) == 0
    assert "vimConnectionInfo" in path.read_text()


def test_a_cluster_that_does_not_answer_writes_nothing(opened, tmp_path, capsys):
    opened.view.faults.add("cluster.admin_access")
    assert main(["cluster", "access", VNF]) == 1
    assert "admin_access" in capsys.readouterr().err
    assert list(tmp_path.glob("*.json")) == []
