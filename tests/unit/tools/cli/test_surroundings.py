# SPDX-License-Identifier: Apache-2.0
"""Every command in surroundings that programs are seldom tried in.

It ends with one of the documented exit codes, and never with a traceback.
"""

import json
import os
import re
import stat
import subprocess
import sys

import pytest

from tests.unit.tools.cli import journals
from tests.unit.tools.cli.bodies import simple
from tests.unit.tools.cli.command_line import COMMANDS
from tests.unit.tools.cli.processes import BROKEN, CLOSED, ROOT, Case, run

#: Those that the documentation has.
CODES = frozenset(
    int(code)
    for code in re.findall(
        r"^(\d+) {2,}",
        (ROOT / "doc/source/cli.rst").read_text().split(".. _exit-codes:")[1][:900],
        re.MULTILINE,
    )
)
CONFIG = ("--config-file", "tacker.conf")
STATE = ("--state-path", "state")
#: Arguments with which a command does something. The others get a VNF instance.
ARGUMENTS = {
    "complete": (),
    "csar build": ("simple", "-o", "built.zip", "--force"),
    "csar check": ("built.zip", "--request", "request.json"),
    "csar cnf": ("-o", "cnf.zip", "--force"),
    "help": (),
    "inventory preview": ("request.json",),
    "params check": ("request.json",),
    "preflight": (
        *("request.json", *STATE, "--connect-timeout", "0.1"),
        *("--key-directory", "state", "--secret-directory", "state"),
    ),
    "request init": ("--offline", "-y", "-o", "-"),
    "runs follow": STATE,
    "runs list": STATE,
    "runs metrics": (*STATE, "--print"),
    "runs pages": (*STATE, "pages", "--force"),
    "runs show": STATE,
    "app show": (journals.VNF, "web", *CONFIG),
    "cluster list": CONFIG,
    "cluster plan": (journals.VNF, "request.json", *CONFIG),
    "cluster heal": (journals.VNF, "load balancer", "--print"),
    "cluster upgrade": (journals.VNF, journals.VNF, "--print"),
    "cluster label": (journals.VNF, "load balancer", "a=b", "--print"),
    "cluster taint": (journals.VNF, "load balancer", "a:NoExecute", "--print"),
    "cluster maintenance": ("begin", journals.VNF, "load balancer", "--print"),
    "cluster scale": (journals.VNF, "--workers", "+1", "--print"),
    **{
        f"cluster {verb}": (journals.VNF, "--print")
        for verb in ("fail", "retry", "rollback")
    },
    "cluster kubeconfig": (journals.VNF, "--user", "a", "-o", "-", *CONFIG),
    "cluster access": (journals.VNF, "-o", "vim.json", *CONFIG),
    "tenant access": (journals.VNF, "blue", *CONFIG),
}
LINES = {
    " ".join(words): (*words, *ARGUMENTS.get(" ".join(words), (journals.VNF, *CONFIG)))
    for words in (*COMMANDS, ("complete",), ("help",))
}
#: One of each form of output.
FORMS = {
    "a table": LINES["runs list"],
    "a table that fits": (*LINES["runs list"], "--fit-width"),
    "a document": (*LINES["runs show"], "--json"),
    "a text": LINES["runs show"],
    "values": LINES["params check"],
    "checks": LINES["preflight"],
    "an operation": LINES["runs follow"],
    "help": ("csar", "build", "-h"),
    "the program's help": ("help",),
    "a wrong option": ("runs", "list", "--nonsense"),
    "a wrong command": ("nonsense",),
    "the version": ("--version",),
}


@pytest.fixture(scope="module")
def directory(tmp_path_factory):
    """With a file for each argument."""
    made = tmp_path_factory.mktemp("surroundings")
    journals.completed(made / "state")
    journals.failed(made / "state")
    (made / "request.json").write_text(json.dumps(simple()))
    (made / "tacker.conf").write_text("[database]\nconnection = sqlite:///absent.db\n")
    ends = run([Case(LINES["csar build"])], made)
    assert ends[0].code == 0, ends[0].err
    return made


@pytest.fixture(scope="module")
def full(directory):
    """A device like /dev/full, never the system's own."""
    path = directory / "full"
    try:
        os.mknod(path, stat.S_IFCHR | 0o666, os.makedev(1, 7))
    except PermissionError:
        pytest.skip("only root makes devices")
    return str(path)


def refuse_tracebacks(cases, ends):
    for case, end in zip(cases, ends, strict=True):
        assert end.code in CODES, (case, end)
        for text in ("Traceback", "Exception ignored", "Logging error"):
            assert text not in end.out + end.err, (case, end)
        # The name of an exception is of no help to those who do not know Python.
        assert not re.search(r"^\w*(Error|Exception): ", end.err, re.M), (case, end)


def test_the_documented_exit_codes_were_found():
    assert {0, 1, 2, 130, 141} == CODES


def test_every_command_has_arguments_here():
    assert ARGUMENTS.keys() <= LINES.keys()


def test_each_command_on_a_full_disk(directory, full):
    cases = [Case(line, stdout=full) for line in LINES.values()]
    ends = run(cases, directory)
    refuse_tracebacks(cases, ends)
    for case, end in zip(cases, ends, strict=True):
        # Those that ask Tacker have no output here.
        if case.words[0] not in ("app", "cluster", "tenant"):
            said = "The output cannot be written: No space left on device\n"
            assert (end.code, end.err.count(said)) == (1, 1), (case, end)


def test_each_command_whose_reader_ends(directory):
    cases = [Case(line, stdout=BROKEN) for line in LINES.values()]
    ends = run(cases, directory)
    refuse_tracebacks(cases, ends)
    for case, end in zip(cases, ends, strict=True):
        if case.words[0] not in ("app", "cluster", "tenant"):
            assert (end.code, end.err) == (141, ""), (case, end)


def test_each_command_with_nothing_open(directory):
    closed = dict.fromkeys(("stdin", "stdout", "stderr"), CLOSED)
    cases = [Case(line, **closed) for line in LINES.values()]
    before = sorted(path.name for path in directory.iterdir())
    refuse_tracebacks(cases, run(cases, directory))
    after = sorted(path.name for path in directory.iterdir())
    assert set(after) - set(before) <= {"cnf.zip", "pages"}


@pytest.mark.parametrize("stream", ["stdin", "stderr"])
def test_each_form_of_output_with_one_stream_closed(directory, stream):
    usual = run([Case(line) for line in FORMS.values()], directory)
    closed = run([Case(line, **{stream: CLOSED}) for line in FORMS.values()], directory)
    assert [(end.code, end.out) for end in closed] == [
        (end.code, end.out) for end in usual
    ]


ENVIRONMENTS = {
    f"COLUMNS={value[:8]}": {"COLUMNS": value, "LINES": value}
    for value in ("0", "1", "-1", "abc", "\u00b2", "10000000000", "1" * 5000)
}


@pytest.mark.parametrize("env", ENVIRONMENTS.values(), ids=ENVIRONMENTS)
def test_each_form_of_output_in_odd_environments(directory, env):
    usual = [Case(line) for line in FORMS.values()]
    ends = run(usual, directory, env)
    refuse_tracebacks(usual, ends)
    wanted = [0, 0, 0, 0, 0, 1, 1, 0, 0, 2, 2, 0]
    assert [end.code for end in ends] == wanted, ends


@pytest.mark.parametrize("stream", ["stdout", "stderr"])
def test_each_form_of_output_on_a_full_disk(directory, full, stream):
    cases = [Case(line, **{stream: full}) for line in FORMS.values()]
    refuse_tracebacks(cases, run(cases, directory))


def test_each_command_with_an_argument_in_latin_1(directory):
    cases = [Case((*line, "caf\udce9")) for line in LINES.values()]
    ends = run(cases, directory)
    said = "The argument 'caf\\udce9' is no text in UTF-8.\n"
    assert {(end.code, end.out, end.err) for end in ends} == {(2, "", said)}


def test_a_tacker_conf_in_latin_1(directory):
    (directory / "latin.conf").write_bytes(b"[k8s_mgmt]\nstate_path = /caf\xe9\n")
    (end,) = run([Case(("runs", "list", "--config-file", "latin.conf"))], directory)
    assert (end.code, end.out) == (2, "")
    assert end.err.startswith("Tacker's configuration could not be read: ")


#: Sends Ctrl-C to itself when a module is imported.
INTERRUPTED = """
import signal, sys

# It is ignored in what a shell has started in the background.
signal.signal(signal.SIGINT, signal.default_int_handler)

class Interrupting:
    def find_spec(self, name, *_):
        if name == "{module}":
            signal.raise_signal(signal.SIGINT)

sys.meta_path.insert(0, Interrupting())
from tacker_k8s_mgmt.tools.cli import main
sys.exit(main())
"""


@pytest.mark.parametrize(
    "module", ["tacker_k8s_mgmt.tools.cli.app", "cliff.app", "tacker_k8s_mgmt.journal"]
)
def test_ctrl_c_while_modules_are_imported(directory, module):
    done = subprocess.run(
        [sys.executable, "-c", INTERRUPTED.format(module=module), *LINES["runs list"]],
        cwd=directory,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        capture_output=True,
        check=False,
        timeout=300,
    )
    assert (done.returncode, done.stdout, done.stderr) == (130, b"", b"")
