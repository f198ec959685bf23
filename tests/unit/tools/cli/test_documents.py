# SPDX-License-Identifier: Apache-2.0
"""The documents that commands print for programs: which keys each has.

A key that is renamed breaks what others have built on it.
"""

import importlib
import json
import types
from collections.abc import Mapping
from typing import Any

import pytest

from tacker_k8s_mgmt.status.facts import HealCommands
from tacker_k8s_mgmt.tools.cli import base, main
from tacker_k8s_mgmt.tools.cli.commands import COMMANDS
from tests.helpers.node_settings import modify
from tests.helpers.operations import instantiated
from tests.helpers.requests import VNF, params
from tests.unit.tools.cli import journals
from tests.unit.tools.cli.bodies import simple

CLUSTER = "vnf_instance_id vnf_instance_name open_operation agree not_asked"
REQUEST = "request problems warnings"
#: Keys of each command's document, without those of what others define: parameters,
#: columns of a list, records of a journal, names of files.
KEYS = {
    "cluster check": f"{CLUSTER} rows rows.name rows.role rows.server_id rows.address "
    "rows.heat rows.inventory rows.cluster rows.load_balancer rows.vim "
    "rows.differences rows.differences.what rows.differences.remedy "
    "rows.differences.commands",
    "cluster show": f"{CLUSTER} api differences url vim vms vms.name vms.role "
    "vms.ready vms.version vms.address vms.ssh_address vms.server_id vms.vnfc_id "
    "vms.zone vms.created vms.notes",
    "cluster labels": f"{CLUSTER} problems settings settings.node settings.setting "
    "settings.wanted settings.actual settings.entry",
    "tenant list": f"{CLUSTER} problems tenants tenants.name tenants.wanted "
    "tenants.vim tenants.quota tenants.isolated tenants.pod_security "
    "tenants.differences",
    "runs show": "vnf_instance_id vnf_instance_name earlier_operations records",
    "runs follow": "vnf_instance_id vnf_instance_name hook outcome is_final "
    "operation_state seconds error",
    "params check": f"{REQUEST} parameters defaults profile",
    "inventory preview": f"{REQUEST} profile unread_secrets output_dir playbooks files "
    "load_balancer load_balancer.address load_balancer.command vim vim.name "
    "vim.auth_url",
    "preflight": f"{REQUEST} checks checks.check checks.where checks.not_checked "
    "checks.findings",
    "csar build": "package problems vnfd_id sha256 files replaced",
    "csar check": "package problems warnings flavours",
    "csar cnf": "package problems vnfd_id sha256 files",
}
OPEN = ("parameters.", "records.", "files.")


def imported(place: str) -> type:
    module, _, name = place.partition(":")
    found: type = getattr(importlib.import_module(module), name)
    return found


def keys(document: Any, place: str = "") -> set[str]:
    """All keys of a document, with those above them; entries of a list are alike."""
    if isinstance(document, Mapping):
        found = {f"{place}{key}" for key in document}
        below = [keys(value, f"{place}{key}.") for key, value in document.items()]
        return found.union(*below)
    if isinstance(document, list):
        return set().union(*(keys(one, place) for one in document))
    return set()


@pytest.fixture
def opened(look_up):
    """A cluster that differs from its records in each way that a command shows."""
    wanted = params(tenants=[{"name": "blue"}])
    view: Any = instantiated(wanted)
    modify(view, {"k8s_nodes:vnfc:five:label:disk": "ssd"})
    view.cluster_nodes = view.cluster_nodes[:-1]
    del view.objects["NetworkPolicy", "blue", "tacker-k8s-mgmt-tenant"]
    found = types.SimpleNamespace(
        view=view, vnf_id=VNF, name="one", operation="", params=wanted
    )
    found.metadata, found.heals = view.metadata, HealCommands()
    return look_up(found)


@pytest.fixture
def directory(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    journals.failed(tmp_path / "state")
    (tmp_path / "request.json").write_text(json.dumps(simple()))
    return tmp_path


STATE = ("--state-path", "state")
ARGUMENTS = {
    **{f"cluster {verb}": (VNF,) for verb in ("check", "show", "labels")},
    "tenant list": (VNF,),
    **{f"runs {verb}": STATE for verb in ("show", "follow")},
    "params check": ("request.json",),
    "inventory preview": ("request.json",),
    "preflight": ("request.json", *STATE, "--connect-timeout", "1"),
    "csar build": ("simple",),
    "csar check": ("simple.zip",),
    "csar cnf": ("-o", "cnf.zip"),
}
#: What test_app.py and test_plan.py compare whole.
ELSEWHERE = {"app list", "app show", "cluster plan"}


def test_each_report_is_here():
    reports = {
        name for name in COMMANDS if issubclass(imported(COMMANDS[name]), base.Report)
    }
    assert reports == KEYS.keys() | ELSEWHERE
    assert ARGUMENTS.keys() == KEYS.keys()


@pytest.mark.parametrize("command", KEYS)
def test_keys(opened, directory, capsys, command):
    if command == "csar check":
        assert main(["csar", "build", "simple"]) == 0
        capsys.readouterr()
    main([*command.split(), *ARGUMENTS[command], "--json"])
    found = keys(json.loads(capsys.readouterr().out))
    assert {key for key in found if not key.startswith(OPEN)} == {
        *KEYS[command].split()
    }
