# SPDX-License-Identifier: Apache-2.0
"""``tacker-k8s-mgmt cluster``: what is shown of a comparison; exit codes."""

import builtins
import json
import re
import time
import types
from dataclasses import dataclass, field, replace
from typing import Any

import pytest
from oslo_config import cfg

from tacker_k8s_mgmt import config, errors
from tacker_k8s_mgmt.hooks.instance_view import ClusterSummary
from tacker_k8s_mgmt.status.facts import HealCommands
from tacker_k8s_mgmt.tools.cli import cluster_report as command
from tacker_k8s_mgmt.tools.cli import host_records, main
from tacker_k8s_mgmt.tools.render.console import Console
from tests.helpers.fakes.site import FakeSite
from tests.helpers.node_settings import DISK, modify, wants
from tests.helpers.operations import instantiated
from tests.helpers.requests import VNF, params

WORKER = "worker-10-10-0-5"


@dataclass
class Opened:
    """What ``hooks.instances`` would yield."""

    view: FakeSite
    vnf_id: str = VNF
    name: str = "one"
    operation: str = ""
    params: Any = field(default_factory=params)

    @property
    def metadata(self) -> dict[str, str]:
        return self.view.metadata

    @property
    def heals(self) -> HealCommands:
        own = {"vnfc-5": "server-5", "vnfc-9": "server-9"}
        vnfcs = {**own, **self.view.vnfc_servers}
        return HealCommands(VNF, "v2", vnfcs)


@pytest.fixture
def opened(look_up):
    return look_up(Opened(instantiated()))


def check(*arguments):
    return main(["cluster", "check", VNF, *arguments])


def change(site, **fields):
    """Change the node of the worker in the cluster."""
    nodes = site.cluster_nodes
    (position,) = (i for i, node in enumerate(nodes) if node.name == WORKER)
    nodes[position] = replace(nodes[position], **fields)


def cordon(site):
    change(site, unschedulable=True)


def test_a_cluster_that_agrees(opened, capsys):
    assert check() == 0
    assert capsys.readouterr().out.splitlines() == [
        f"VNF instance {VNF} (one)",
        "VM                       HEAT  INVENTORY  CLUSTER  LOAD BALANCER  VIM",
        "control-plane-10-10-0-4  VM    listed     Ready    UP",
        "worker-10-10-0-5         VM    listed     Ready    UP",
        "worker-10-10-0-55        VM    listed     Ready    UP",
        "load balancer            VM                        API at 6443    "
        f"kubernetes_vim_{VNF}",
        "No differences.",
    ]


@pytest.fixture
def metrics(tmp_path):
    config.register(cfg.CONF)
    for option in ("metrics_directory", "state_path"):
        cfg.CONF.set_override(option, str(tmp_path), config.GROUP)
    yield tmp_path / "tacker_k8s_mgmt.prom"
    cfg.CONF.clear_override("metrics_directory", config.GROUP)
    cfg.CONF.clear_override("state_path", config.GROUP)


def test_numbers_of_differences_become_metrics(opened, metrics):
    cordon(opened.view)
    opened.view.faults.add("vims.registered")
    assert check() == 2
    text = metrics.read_text()
    for line in (
        'check_differences{source="cluster"',
        'check_source_unread{source="vim"',
    ):
        (found,) = re.findall(rf"_{line}.*", text)
        assert found == f'_{line},vnf_instance_id="{VNF}"}} 1.0'
    # A fault shows once.
    assert check() == 1
    assert f'unread{{source="vim",vnf_instance_id="{VNF}"}} 0.0' in metrics.read_text()


def test_metrics_that_cannot_be_written_are_one_line(opened, metrics, capsys):
    cfg.CONF.set_override("metrics_directory", "/absent", config.GROUP)
    assert check() == 0
    (line,) = capsys.readouterr().err.splitlines()
    assert line.startswith("The metrics in /absent cannot be written: No such")


def test_without_a_directory_nothing_is_written(opened, metrics):
    cfg.CONF.set_override("metrics_directory", "", config.GROUP)
    assert check() == 0
    assert list(metrics.parent.iterdir()) == []


def test_a_difference_is_reported_with_its_remedy(opened, capsys):
    cordon(opened.view)
    assert check() == 1
    out = capsys.readouterr().out
    assert re.search(rf"{WORKER} +VM +listed +Ready, cordoned +UP", out)
    assert f"{WORKER}: cordoned, gets no new pods.\n" in out
    assert f"  `kubectl uncordon {WORKER}`, unless" in out
    assert "No differences" not in out


def test_an_unreachable_source_is_named_and_the_rest_is_shown(opened, capsys):
    cordon(opened.view)
    opened.view.faults.add("balancer.status")
    assert check() == 2
    out = capsys.readouterr().out
    assert "Could not be asked: load balancer.\n  fault in balancer.status" in out
    assert re.search(rf"{WORKER} +VM +listed +Ready, cordoned +\?", out)
    assert f"{WORKER}: cordoned" in out


def test_json(opened, capsys):
    cordon(opened.view)
    opened.view.faults.add("machines")
    opened.operation = "HEAL 1234 is FAILED_TEMP"
    assert check("--json") == 2
    document = json.loads(capsys.readouterr().out)
    assert (document["vnf_instance_id"], document["vnf_instance_name"]) == (VNF, "one")
    assert document["open_operation"] == "HEAL 1234 is FAILED_TEMP"
    assert document["agree"] is False
    assert set(document["not_asked"]) == {"heat", "load_balancer"}
    worker = next(row for row in document["rows"] if row["name"] == WORKER)
    (difference,) = worker.pop("differences")
    assert difference["what"] == "cordoned, gets no new pods"
    assert difference["remedy"].startswith("`kubectl uncordon")
    assert difference["commands"] == []
    assert worker == {
        "name": WORKER,
        "role": "worker",
        "server_id": "server-5",
        "address": "10.10.0.5",
        "heat": "?",
        "inventory": "listed",
        "cluster": "Ready, cordoned",
        "load_balancer": "?",
        "vim": "",
    }


def test_json_of_a_cluster_that_agrees(opened, capsys):
    assert check("--json") == 0
    document = json.loads(capsys.readouterr().out)
    about = [document[name] for name in ("agree", "not_asked", "open_operation")]
    assert about == [True, {}, None]


def test_without_a_load_balancer_there_is_no_column(opened, capsys):
    opened.params = params(external_lb_param=None)
    opened.view = instantiated(opened.params, load_balancer=False)
    assert check() == 0
    assert "LOAD BALANCER" not in capsys.readouterr().out


def test_an_operation_that_is_not_over_is_named_first(opened, capsys):
    opened.operation = "SCALE 1234 is PROCESSING"
    assert check() == 0
    said = "Open operation: SCALE 1234 is PROCESSING. Differences may be its work."
    assert capsys.readouterr().out.splitlines()[1] == said


def test_a_table_on_a_terminal(opened, capsys, monkeypatch):
    def terminal(**options):
        return Console(force_terminal=True, width=120, **options)

    monkeypatch.setattr(command, "Console", terminal)
    cordon(opened.view)
    assert check() == 1
    out = capsys.readouterr().out
    assert "─" in out
    marked = re.search("\x1b\\[[0-9;]*31m *Ready, cordoned", out)
    assert marked, out
    plain = re.sub("\x1b\\[[0-9;?]*[a-zA-Z]", "", out)
    assert re.search(rf"{WORKER} +VM +listed +Ready, cordoned +UP", plain)


def test_what_comes_from_elsewhere_is_not_taken_for_markup(opened, capsys):
    opened.view.faults.add("machines")
    opened.view.error = errors.RemoteError(detail="no [bold]brackets[/bold] are lost")
    opened.name = "[red]x"
    assert check() == 2
    out = capsys.readouterr().out
    assert "no [bold]brackets[/bold] are lost" in out
    assert "([red]x)" in out


def test_nothing_is_changed_and_no_lock_is_taken(opened):
    cordon(opened.view)
    check()
    assert opened.view.changes == []
    assert "lock" not in opened.view.calls


def test_configuration_files_are_handed_on_in_their_order(opened):
    check("--config-file", "a.conf", "--config-file", "b.conf")
    assert opened.files == ["a.conf", "b.conf"]
    main(["cluster", "check", "my-vnf"])
    assert (opened.vnf, opened.files) == ("my-vnf", [])


def test_a_vnf_instance_that_cannot_be_opened(monkeypatch, capsys):
    def opened(vnf_id, config_files):
        raise errors.TackerError(detail=f"Tacker has no VNF instance {vnf_id}.")

    lookup = types.SimpleNamespace(open_cluster=opened)
    monkeypatch.setattr(host_records, "lookup", lambda _: lookup)
    assert check() == 2
    captured = capsys.readouterr()
    assert captured.err == f"Tacker has no VNF instance {VNF}.\n"
    assert captured.out == ""


def test_a_remedy_ends_with_the_command_that_it_takes(opened, capsys):
    change(opened.view, ready=False, reason="gone")
    command = f"openstack vnflcm heal {VNF} --vnfc-instance vnfc-5"
    assert check() == 1
    lines = capsys.readouterr().out.splitlines()
    at = lines.index(f"{WORKER}: not Ready: gone.")
    assert lines[at + 1].endswith("heal its VNFC if it is lost.")
    assert lines[at + 2] == f"    {command} --os-tacker-api-version 2"


def test_only_the_heal_of_a_dead_load_balancer_is_printed(opened, capsys):
    nodes = opened.view.cluster_nodes
    nodes[:] = [
        replace(node, ready=False, reason="gone") if "worker" in node.name else node
        for node in nodes
    ]
    opened.view.faults.add("balancer.status")
    assert check() == 2
    lines = capsys.readouterr().out.splitlines()
    heals = [line.strip() for line in lines if "vnflcm heal" in line]
    command = f"openstack vnflcm heal {VNF} --vnfc-instance vnfc-9"
    assert heals == [f"{command} --os-tacker-api-version 2"]
    at = lines.index(f"{WORKER}: not Ready: gone.")
    assert lines[at + 1].strip().startswith("First fix the load balancer")


def test_without_tacker_the_error_names_where_to_run_it(monkeypatch, capsys):
    monkeypatch.setattr(host_records, "find_spec", lambda name: None)
    assert check() == 2
    err = capsys.readouterr().err
    assert "there is no package tacker" in err
    assert "the conductor's Python environment" in err


def test_a_missing_configuration_is_an_error_before_tacker_is_imported(
    monkeypatch, tmp_path, capsys
):
    monkeypatch.setattr(cfg, "find_config_files", lambda *_, **__: [])
    monkeypatch.setattr(builtins, "__import__", _without_hooks)
    assert main(["cluster", "list"]) == 2
    assert "There is no tacker.conf where Tacker" in capsys.readouterr().err
    assert main(["cluster", "list", "--config-file", f"{tmp_path}/none"]) == 2
    assert f"{tmp_path}/none" in capsys.readouterr().err


_imported = builtins.__import__


def _without_hooks(name, *arguments, **options):
    if name == "tacker_k8s_mgmt.hooks":
        raise ImportError("No module named 'futurist'", name="futurist")
    return _imported(name, *arguments, **options)


def test_with_half_a_tacker_the_error_names_what_is_missing(
    monkeypatch, tmp_path, capsys
):
    (tmp_path / "tacker.conf").write_text("")
    monkeypatch.setenv("TACKER_K8S_MGMT_CONFIG", str(tmp_path / "tacker.conf"))
    monkeypatch.setattr(builtins, "__import__", _without_hooks)
    assert check() == 2
    err = capsys.readouterr().err
    assert "No module named 'futurist'" in err
    assert "the conductor's Python environment" in err


class TestLabels:
    def test_they_agree(self, opened, capsys):
        modify(opened.view, {"k8s_nodes:vnfc:five:label:disk": "ssd"})
        assert main(["cluster", "labels", VNF]) == 0
        assert capsys.readouterr().out.splitlines() == [
            f"VNF instance {VNF} (one)",
            "NODE              SETTING     WANTED  ACTUAL  ENTRY OF METADATA",
            "worker-10-10-0-5  label disk  ssd     ssd     "
            "k8s_nodes:vnfc:five:label:disk",
            "No differences.",
        ]

    def test_what_differs_and_what_is_wrong(self, opened, capsys):
        modify(opened.view, {"k8s_nodes:vnfc:five:label:old": ""})
        wrong = "k8s_nodes:worker:label:-"
        wants(opened.view, {**DISK, wrong: "x", "k8s_nodes:vnfc:gone:label:a": "b"})
        assert main(["cluster", "labels", VNF, "--json"]) == 1
        document = json.loads(capsys.readouterr().out)
        assert document["agree"] is False
        assert document["problems"][0].startswith(f"{wrong} has no valid key")
        rows = [tuple(row.values()) for row in document["settings"]]
        disk = "k8s_nodes:worker:label:disk"
        assert rows == [
            ("worker-10-10-0-5", "label disk", "ssd", None, disk),
            ("worker-10-10-0-5", "label old", None, "", None),
            ("worker-10-10-0-55", "label disk", "ssd", None, disk),
            (None, "label a", "b", None, "k8s_nodes:vnfc:gone:label:a"),
        ]

    def test_a_cluster_that_cannot_be_asked(self, opened, capsys):
        opened.view.faults.add("cluster.marks")
        assert main(["cluster", "labels", VNF]) == 2
        assert "Could not be asked: " in capsys.readouterr().out


class TestShow:
    def test_nodes_with_their_vnfcs(self, opened, capsys):
        cordon(opened.view)
        change(opened.view, labels={"topology.kubernetes.io/zone": "az-1"})
        assert main(["cluster", "show", VNF]) == 0
        assert capsys.readouterr().out.splitlines() == [
            f"VNF instance {VNF} (one)",
            f"API https://192.0.2.109:6443, VIM kubernetes_vim_{VNF}, Tacker's v2 API",
            "NAME                     READY          VERSION  ADDRESS",
            "control-plane-10-10-0-4  yes            v1.31.9  10.10.0.4",
            "worker-10-10-0-5         yes, cordoned  v1.31.9  10.10.0.5",
            "worker-10-10-0-55        yes            v1.31.9  10.10.0.55",
            "load balancer            -              -        10.10.0.9",
            "NAME                     VNFC",
            "control-plane-10-10-0-4  -",
            "worker-10-10-0-5         vnfc-5",
            "worker-10-10-0-55        -",
            "load balancer            vnfc-9",
            "1 difference(s); `cluster check` names them with their remedies.",
        ]

    def test_long(self, opened, capsys):
        change(opened.view, labels={"topology.kubernetes.io/zone": "az-1"})
        assert main(["cluster", "show", VNF, "--long"]) == 0
        _, _, heads, *rows = capsys.readouterr().out.splitlines()
        assert re.split("  +", heads) == [
            *("NAME", "ROLE", "READY", "VERSION", "ADDRESS", "SSH ADDRESS", "SERVER"),
            *("VNFC", "ZONE", "CREATED"),
        ]
        (worker,) = (row for row in rows if row.startswith(f"{WORKER} "))
        assert re.split("  +", worker) == [
            *(WORKER, "worker", "yes", "v1.31.9", "10.10.0.5", "192.0.2.105"),
            *("server-5", "vnfc-5", "az-1", "2026-01-02T03:04:05Z"),
        ]

    def test_json(self, opened, capsys):
        change(opened.view, ready=False, reason="it stopped")
        assert main(["cluster", "show", VNF, "--json"]) == 0
        document = json.loads(capsys.readouterr().out)
        assert document["agree"] is False
        assert document["differences"] == 1
        (worker,) = (one for one in document["vms"] if one["name"] == WORKER)
        assert (worker["ready"], worker["notes"]) == (False, ["it stopped"])
        assert (worker["server_id"], worker["vnfc_id"]) == ("server-5", "vnfc-5")

    def test_sources_that_do_not_answer(self, opened, capsys):
        opened.operation = "HEAL 1234 is FAILED_TEMP"
        opened.view.faults |= {"cluster.nodes", "machines"}
        assert main(["cluster", "show", VNF]) == 2
        out = capsys.readouterr().out
        assert "It has failed and is not ended" in out
        vim = f"kubernetes_vim_{VNF}"
        assert f"API unknown, VIM {vim}, Tacker's v2 API\n" in out
        # The inventory still has the nodes.
        assert re.search(rf"{WORKER} +- +- +10\.10\.0\.5", out)
        assert "Could not be asked: Heat." in out
        assert "No differences" not in out


class TestWatch:
    @pytest.fixture
    def between(self, monkeypatch):
        """What is done in the pauses; Ctrl-C is pressed when nothing is left."""
        done = []

        def sleep(seconds):
            assert seconds == 5
            if not done:
                raise KeyboardInterrupt
            done.pop(0)()

        monkeypatch.setattr(time, "sleep", sleep)
        return done

    def test_it_is_shown_again_until_ctrl_c(self, opened, capsys, between):
        between += [lambda: None] * 2
        assert main(["cluster", "check", VNF, "--watch"]) == 130
        out = capsys.readouterr().out
        assert out.count("No differences.") == 3
        assert out.count(", every 5 s until Ctrl-C\n") == 3
        # Only a terminal is cleared.
        assert "\x1b" not in out

    def test_a_program_gets_documents_only(self, opened, capsys, between):
        between.append(lambda: None)
        assert main(["cluster", "check", VNF, "--watch", "--json"]) == 130
        first, second = capsys.readouterr().out.split("\n}\n{\n")
        assert json.loads(first + "\n}") == json.loads("{\n" + second)

    def test_it_goes_on_where_something_cannot_be_asked(self, opened, capsys, between):
        opened.view.faults.add("machines")
        between.append(opened.view.faults.clear)
        assert main(["cluster", "check", VNF, "--watch"]) == 130
        out = capsys.readouterr().out
        assert out.index("Could not be asked: Heat") < out.index("No differences.")


def test_clusters_that_wait_for_a_verb_come_first(monkeypatch, capsys):
    def summary(name, api, operation, state):
        known = {"operation": operation, "operation_state": state}
        return ClusterSummary(name, name, api, "INSTANTIATED", **known)

    found = [
        summary("a", "v1", "HEAL", "COMPLETED"),
        summary("b", "v1", "HEAL", "FAILED_TEMP"),
        summary("c", "v2", "INSTANTIATE", "FAILED_TEMP"),
        # Its direction is not known here.
        summary("d", "v2", "SCALE", "FAILED_TEMP"),
    ]
    lookup = types.SimpleNamespace(listed=lambda files: found)
    monkeypatch.setattr(host_records, "lookup", lambda _: lookup)
    words = ["cluster", "list", "-c", "VNF Name", "-c", "Operation State"]
    assert main([*words, "-f", "json"]) == 0
    rows = [tuple(row.values()) for row in json.loads(capsys.readouterr().out)]
    assert rows == [*((name, "FAILED_TEMP") for name in "bcd"), ("a", "COMPLETED")]
    assert main(words) == 0
    out = capsys.readouterr().out
    assert "| b        | FAILED_TEMP: retry or fail             |" in out
    assert "| c        | FAILED_TEMP: retry or rollback or fail |" in out
    assert re.search(r"\| d +\| FAILED_TEMP +\|", out)
