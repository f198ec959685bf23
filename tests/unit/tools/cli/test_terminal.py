# SPDX-License-Identifier: Apache-2.0
"""Names and texts of others cannot steer the operator's terminal."""

import ast
import io
import json
import logging
import re
import types
import warnings
import zipfile
from pathlib import Path

import pytest
from rich.text import Text

from tacker_k8s_mgmt import errors
from tacker_k8s_mgmt.model import playbooks
from tacker_k8s_mgmt.model.playbooks import Progress
from tacker_k8s_mgmt.remote.ssh import channel
from tacker_k8s_mgmt.text import in_line, printable
from tacker_k8s_mgmt.tools import cli
from tacker_k8s_mgmt.tools.cli import base, host_records, main
from tacker_k8s_mgmt.tools.cli.commands import request
from tacker_k8s_mgmt.tools.cloud.interview import Question
from tacker_k8s_mgmt.tools.render.console import Console
from tests.helpers import source
from tests.helpers.hostile import ESCAPES, STEERING
from tests.helpers.requests import VNF
from tests.unit.tools.cli import journals

LISTED = {
    **dict.fromkeys(("api", "state", "vim", "url", "operation"), "x"),
    **dict.fromkeys(("operation_state", "operation_id"), "x"),
}


def is_plain(text):
    return not STEERING & set(text)


def test_characters_that_steer_become_blanks_and_lines_stay():
    assert is_plain(printable(ESCAPES))
    assert printable("a\tb\nc ü 漢 é") == "a\tb\nc ü 漢 é"
    assert in_line("a\tb\nc\r\x85d") == "a b c  d"
    every = "".join(map(chr, range(0x110000)))
    assert is_plain(printable(every))


def prints(node):
    """Whether a call writes to the terminal by itself."""
    if not isinstance(node, ast.Call):
        return False
    called = ast.unparse(node.func)
    return called == "print" or bool(
        re.search(r"\b(stdout|stderr)(\.buffer)?\.write(lines)?$", called)
        or re.search(r"\b(print_exc(eption)?|print_stack|logging\.Formatter)$", called)
    )


def test_there_is_one_way_out_to_the_terminal():
    root = Path(cli.__file__).parent
    found = {
        str(path.relative_to(root))
        for path in root.rglob("*.py")
        for node in ast.walk(source.module(path))
        if prints(node)
    }
    assert found == {"base.py"}


def test_each_text_of_a_command_is_plain(capsys):
    base.show(ESCAPES)
    base.complain(ESCAPES)
    base.show(ESCAPES, end="")
    said = capsys.readouterr()
    assert "gnp.exe" in said.out
    assert is_plain(said.out + said.err)


@pytest.mark.parametrize("option", [[], ["-v"], ["-v", "-v"], ["--debug"]])
def test_logs_warnings_and_tracebacks(monkeypatch, capsys, option):
    def lookup(files):
        warnings.warn(ESCAPES, stacklevel=1)
        logging.getLogger("tacker_k8s_mgmt.remote").info("a host says %s", ESCAPES)
        try:
            raise ValueError(ESCAPES)
        except ValueError:
            logging.getLogger("library").exception("no %s", ESCAPES)
            raise

    monkeypatch.setattr(host_records, "lookup", lookup)
    warnings_of_python = warnings.showwarning
    with warnings.catch_warnings():
        warnings.simplefilter("always")
        assert main([*option, "cluster", "check", VNF]) == 1
    said = capsys.readouterr()
    assert "gnp.exe" in said.err
    assert ("UserWarning" in said.err) == any("-v" in one for one in option)
    assert is_plain(said.out + said.err)
    assert ("Traceback" in said.err) == bool(option)
    assert warnings.showwarning is warnings_of_python


def test_questions_with_names_of_a_cloud(capsys, monkeypatch):
    monkeypatch.setattr("sys.stdin", io.StringIO("1\n"))
    question = Question("image", f"image {ESCAPES}", ESCAPES, (ESCAPES,))
    assert request.on_terminal(question) == ESCAPES
    assert is_plain(capsys.readouterr().err)


def test_errors_with_what_another_host_printed():
    tail = channel.last_lines(f"one\n{ESCAPES}two\rthree\n")
    assert is_plain(tail)
    error = errors.CommandFailed(host="h", command=ESCAPES, rc=1, tail=ESCAPES)
    assert is_plain(str(error))
    problem = errors.DiscoveryError("a", [f"no VM {ESCAPES}"])
    assert is_plain(str(problem))


def test_names_of_plays_and_messages_of_tasks():
    # Also where only the conductor's log has them.
    events = [
        '{"event": "play", "name": "\\u001b[2J", "number": 1}',
        '{"event": "task", "name": "a\\nWARNING forged \\u0007"}',
        '{"event": "failed", "host": "h\\u009b", "task": "t", "message": "\\u202e"}',
    ]
    progress = playbooks.fold(Progress(), events)
    assert is_plain(progress.where())
    assert "\n" not in progress.where()
    assert is_plain("".join(playbooks.described(progress.seen)))


@pytest.mark.parametrize("form", [[], ["-f", "value"], ["-f", "yaml"], ["-f", "json"]])
def test_lists_of_what_tacker_records(monkeypatch, capsys, form):
    row = types.SimpleNamespace(vnf_id=VNF, name=ESCAPES, vms={ESCAPES: 1}, **LISTED)
    lookup = types.SimpleNamespace(listed=lambda files: [row])
    monkeypatch.setattr(host_records, "lookup", lambda _: lookup)
    assert main(["cluster", "list", *form]) == 0
    out = capsys.readouterr().out
    assert "gnp.exe" in out
    assert is_plain(out)


CLUSTER = types.SimpleNamespace(
    vnf_id=VNF,
    name="my-cluster",
    api="v2",
    state="NOT_INSTANTIATED",
    vim="k8s_my-cluster_2c0e",
    url="https://192.168.100.200:6443",
    vms={"masterNode": 1, "workerNode": 2},
    operation="INSTANTIATE",
    operation_state="ROLLING_BACK",
    operation_id=VNF,
)


@pytest.fixture
def clusters(monkeypatch):
    """Has Tacker record these."""

    def has(*clusters):
        lookup = types.SimpleNamespace(listed=lambda files: clusters)
        monkeypatch.setattr(host_records, "lookup", lambda _: lookup)

    return has


def test_a_table_of_clusters_fits_a_narrow_terminal(capsys, clusters):
    clusters(CLUSTER)
    assert main(["cluster", "list"]) == 0
    out = capsys.readouterr().out
    assert max(map(len, out.splitlines())) <= 80
    for word in ("my-cluster", "NOT_INSTANTIATED", "ROLLING_BACK"):
        assert f" {word} " in out
    assert VNF not in out


def test_a_cluster_without_a_name_is_listed_by_its_id(capsys, clusters):
    nameless = types.SimpleNamespace(**{**vars(CLUSTER), "name": ""})
    clusters(nameless)
    assert main(["cluster", "list"]) == 0
    assert f"| {VNF} |" in capsys.readouterr().out
    assert main(["cluster", "list", "--json"]) == 0
    (row,) = json.loads(capsys.readouterr().out)
    assert (row["VNF Instance ID"], row["VNF Name"]) == (VNF, "")


@pytest.mark.parametrize(
    "form", [["--long"], ["-f", "json"], ["-f", "value"], ["-c", "API URL"]]
)
def test_other_forms_and_a_long_table_have_all_columns(capsys, clusters, form):
    clusters(CLUSTER)
    assert main(["cluster", "list", *form]) == 0
    assert CLUSTER.url in capsys.readouterr().out


@pytest.mark.parametrize("is_terminal", [True, False])
def test_tables_of_what_hosts_report(capsys, is_terminal):
    console = Console(force_terminal=is_terminal, no_color=True, width=200)
    console.table(["VM", "CLUSTER"], [[Text(ESCAPES), Text(f"NotReady {ESCAPES}")]])
    console.say(ESCAPES, "bold")
    out = capsys.readouterr().out
    assert "gnp.exe" in out
    assert "]0;owned\x07" not in out
    assert "\x1b[2J" not in out
    assert "\u202e" not in out


def test_reports_of_a_cluster_that_cannot_be_asked(monkeypatch, capsys):
    def opened(vnf_id, files):
        raise errors.TackerError(detail=f"no VNF instance {ESCAPES}")

    lookup = types.SimpleNamespace(open_cluster=opened)
    monkeypatch.setattr(host_records, "lookup", lambda _: lookup)
    assert main(["cluster", "check", VNF]) == 2
    assert is_plain(capsys.readouterr().err)


@pytest.mark.parametrize("form", [[], ["--json"], ["-f", "yaml"], ["-f", "value"]])
@pytest.mark.parametrize("verb", ["show", "list"])
def test_journals(tmp_path, capsys, verb, form):
    journals.failed(tmp_path, error=ESCAPES)
    words = [VNF] if verb == "show" else []
    options = ["--state-path", str(tmp_path), *form]
    assert main(["runs", verb, *words, *options]) in (0, 1)
    assert is_plain(capsys.readouterr().out)


def test_names_in_a_package(tmp_path, capsys):
    package = tmp_path / "evil.zip"
    with zipfile.ZipFile(package, "w") as made:
        for name in (f"../{ESCAPES}", f"Definitions/{ESCAPES}.yaml"):
            made.writestr(name, "x")
    assert main(["csar", "check", str(package)]) == 1
    assert is_plain(capsys.readouterr().out)


def test_names_in_a_request(tmp_path, capsys):
    body = tmp_path / "request.json"
    body.write_text(
        '{"additionalParams": {"k8s_cluster_installation_param":'
        ' {"worker\\u001b[2J": 1, "profile": "\\u001b]0;a\\u0007"}}}'
    )
    assert main(["params", "check", str(body)]) == 1
    assert is_plain(capsys.readouterr().out)
