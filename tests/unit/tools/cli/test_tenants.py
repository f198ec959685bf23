# SPDX-License-Identifier: Apache-2.0
"""``tacker-k8s-mgmt tenant``: what is listed, written and refused."""

import json
import stat
import types
from typing import Any

import pytest

from tacker_k8s_mgmt.status.facts import HealCommands
from tacker_k8s_mgmt.tools.cli import main
from tests.helpers.operations import instantiated
from tests.helpers.requests import VNF, params

BLUE = {"name": "blue", "quota": {"pods": 5}}
RED = {"name": "red", "isolated": False, "pod_security": "restricted"}


@pytest.fixture
def opened(monkeypatch, tmp_path, look_up):
    monkeypatch.chdir(tmp_path)
    wanted = params(tenants=[BLUE, RED])
    view: Any = instantiated(wanted)
    found = types.SimpleNamespace(
        view=view, vnf_id=VNF, name="one", operation="", params=wanted
    )
    found.metadata, found.heals = view.metadata, HealCommands()
    return look_up(found)


def test_they_are_listed(opened, capsys):
    assert main(["tenant", "list", VNF]) == 0
    assert capsys.readouterr().out.splitlines() == [
        f"VNF instance {VNF} (one)",
        "TENANT  VIM                                                       "
        "POD SECURITY  QUOTA   ISOLATED",
        f"blue    kubernetes_vim_{VNF}_blue  baseline      pods 5  yes",
        f"red     kubernetes_vim_{VNF}_red   restricted    -       no",
        "No differences.",
    ]


def test_what_differs_is_listed_too(opened, capsys):
    del opened.view.objects["NetworkPolicy", "blue", "tacker-k8s-mgmt-tenant"]
    del opened.view.tenant_vims["blue"]
    opened.params = params(tenants=[BLUE, {"name": "green"}])
    assert main(["tenant", "list", VNF, "--json"]) == 1
    document = json.loads(capsys.readouterr().out)
    tenants = document["tenants"]
    assert {one["name"]: (one["wanted"], one["differences"]) for one in tenants} == {
        "blue": (
            True,
            ["NetworkPolicy blue/tacker-k8s-mgmt-tenant is missing", "it has no VIM"],
        ),
        "green": (True, ["it has no namespace of the driver's", "it has no VIM"]),
        "red": (
            False,
            [
                "it is in the cluster, and no request wants it any more",
                "it has a VIM, and no request wants it any more",
            ],
        ),
    }


def test_a_source_that_does_not_answer_proves_nothing(opened, capsys):
    opened.view.faults.add("manifests.get namespaces")
    assert main(["tenant", "list", VNF]) == 2
    out = capsys.readouterr().out
    assert "Could not be asked: cluster" in out
    assert "is missing" not in out


def test_cluster_check_has_a_row_for_each(opened, capsys):
    assert main(["cluster", "check", VNF]) == 0
    assert "tenant blue" in capsys.readouterr().out
    opened.view.objects["Role", "red", "tacker-k8s-mgmt-tenant"]["rules"] = []
    assert main(["cluster", "check", VNF]) == 1
    out = capsys.readouterr().out
    assert "tenant red: Role red/tacker-k8s-mgmt-tenant is otherwise in rules." in out
    assert "Modify the VNF instance again with k8s_tenants" in out


class TestAccess:
    def test_the_login_of_a_tenant(self, opened, tmp_path, capsys):
        assert main(["tenant", "access", VNF, "blue"]) == 0
        path = tmp_path / "blue.json"
        url = opened.view.vim.auth_url
        token = "token of blue"
        assert json.loads(path.read_text()) == {
            "vimConnectionInfo": {
                "blue": {
                    "vimType": "ETSINFV.KUBERNETES.V_1",
                    "interfaceInfo": {"endpoint": url, "ssl_ca_cert": token},
                    "accessInfo": {"bearer_token": token},
                }
            }
        }
        assert stat.S_IMODE(path.stat().st_mode) == 0o600
        out = capsys.readouterr().out
        assert out == f"blue.json: {url}, namespace blue\n"
        assert main(["tenant", "access", VNF, "blue"]) == 2
        assert main(["tenant", "access", VNF, "blue", "--force", "--helm"]) == 0
        assert "ETSINFV.HELM.V_3" in path.read_text()

    def test_of_no_tenant_there_is_none(self, opened, capsys):
        assert main(["tenant", "access", VNF, "green"]) == 2
        assert "it has no tenant green; it has blue, red" in capsys.readouterr().err
        del opened.view.objects["Secret", "tacker-k8s-mgmt-tenants", "blue"]
        assert main(["tenant", "access", VNF, "blue"]) == 1
        assert "Tenant blue has no token" in capsys.readouterr().err
