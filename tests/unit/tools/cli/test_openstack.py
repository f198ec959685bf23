# SPDX-License-Identifier: Apache-2.0
"""The commands as a plugin of ``openstack``."""

import importlib
import logging
import subprocess
import sys

import pytest
import tomllib
from openstackclient import shell

from tacker_k8s_mgmt.tools.cli import commands, osc
from tacker_k8s_mgmt.tools.cli.app import Commands
from tacker_k8s_mgmt.tools.cli.commands import class_name
from tests import tree
from tests.unit.tools.cli.journals import VNF, completed

DECLARED = tomllib.loads((tree.ROOT / "pyproject.toml").read_text())["project"][
    "entry-points"
]["openstack.extension"]


def test_every_command_is_offered():
    names = [f"vnf_k8s_{name.replace(' ', '_')}" for name, _ in sorted(Commands())]
    assert sorted(DECLARED) == names


@pytest.fixture
def openstack(monkeypatch, capsys):
    """``openstack``, with the commands of this tree."""
    root = logging.getLogger()
    monkeypatch.setattr(root, "handlers", list(root.handlers))
    monkeypatch.setattr(root, "level", root.level)

    def run(*words):
        monkeypatch.setattr(shell.OpenStackShell, "NAME", "openstack")
        client = shell.OpenStackShell()
        load = client._load_commands

        def and_ours():
            load()
            for name, value in DECLARED.items():
                module, _, attribute = value.partition(":")
                factory = getattr(importlib.import_module(module), attribute)
                client.command_manager.add_command(name.replace("_", " "), factory)

        monkeypatch.setattr(client, "_load_commands", and_ours)
        code = client.run([*words])
        return code, capsys.readouterr().out

    return run


def test_a_command_runs_without_a_cloud(openstack, tmp_path):
    completed(tmp_path)
    words = ("vnf", "k8s", "runs", "list", "--state-path", str(tmp_path))
    code, out = openstack(*words, "-f", "value", "-c", "VNF Instance ID")
    assert (code, out) == (0, f"{VNF}\n")


def test_its_exit_code_is_that_of_the_command(openstack, tmp_path):
    assert (
        openstack("vnf", "k8s", "runs", "list", "--state-path", str(tmp_path))[0] == 1
    )
    assert openstack("vnf", "k8s", "params", "check", "/nonexistent.json")[0] == 2


def test_the_help_shows_the_command_as_it_is_called_there(openstack):
    code, out = openstack("help", "vnf", "k8s", "runs", "follow")
    assert code == 0
    assert "usage: openstack vnf k8s runs follow " in out
    assert "\n  openstack vnf k8s runs follow\n" in out
    assert "tacker-k8s-mgmt" not in out


def test_a_start_of_openstack_imports_no_command():
    """It loads each module of each plugin at each start."""
    places = sorted(set(DECLARED.values()))
    program = (
        "import sys, importlib.metadata as m\n"
        f"for place in {places}: m.EntryPoint('', place, '').load()\n"
        "print(*(n for n in sys.modules if n.startswith('tacker_k8s_mgmt')))"
    )
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True
    )
    base = "tacker_k8s_mgmt"
    cli = f"{base}.tools.cli"
    names = [base, f"{base}.tools", cli, f"{cli}.commands", f"{cli}.osc"]
    assert sorted(done.stdout.split()) == names


def test_a_command_of_two_words_has_a_name_in_python(monkeypatch):
    assert class_name("cluster check") == "ClusterCheck"
    assert class_name("preflight") == "Preflight"
    assert class_name("cluster etcd-defrag") == "ClusterEtcdDefrag"
    place = commands.COMMANDS["cluster check"]
    monkeypatch.setattr(commands, "COMMANDS", {"cluster etcd-defrag": place})
    made = osc.cluster_etcd_defrag(None, None)
    assert type(made).__name__ == "ClusterCheck"
