# SPDX-License-Identifier: Apache-2.0
"""The command line as a whole: help, unknown commands, version, exit codes."""

import importlib.metadata
import json
import logging
import os
import runpy
import subprocess
import sys
from pathlib import Path

import pytest
import setuptools

from tacker_k8s_mgmt.errors import ClusterError
from tacker_k8s_mgmt.tools.cli import main
from tacker_k8s_mgmt.tools.cli.commands.runs import RunsList
from tests.unit.tools.cli.bodies import installation, simple
from tests.unit.tools.cli.command_line import (
    COMMANDS,
    VERBS,
    commands_in,
    help_of,
    parsed,
)
from tests.unit.tools.cli.journals import completed

ROOT = Path(__file__).resolve().parents[4]
#: In one order in all processes of a run.
GROUPS = sorted({group for group, _ in VERBS})
MODULE = [sys.executable, "-m", "tacker_k8s_mgmt.tools.cli"]


@pytest.mark.parametrize(
    "words", [(), *((group,) for group in GROUPS), *COMMANDS], ids=str
)
def test_every_help_has_examples_that_the_command_line_takes(capsys, words):
    text = help_of(capsys, *words)
    examples = list(commands_in(text.split("examples:\n")[1]))
    assert examples
    for example in examples:
        assert "--help" in example or parsed(example)


@pytest.mark.parametrize("words", COMMANDS, ids=" ".join)
def test_every_command_shows_its_exit_codes(capsys, words):
    assert "\nexit codes: 0 " in help_of(capsys, *words)


@pytest.mark.parametrize("words", [["runs", "list"], ["runs"], []])
def test_help_is_an_option_as_well(capsys, words):
    shown = help_of(capsys, *words)
    try:
        code = main([*words, "--help"])
    except SystemExit as end:
        code = end.code
    assert code == 0
    assert capsys.readouterr().out == shown


def test_help_may_be_asked_for_at_the_end_of_a_long_command_line(capsys):
    shown = help_of(capsys, "csar", "build")
    assert main(["csar", "build", "simple", "-o", "x.zip", "--force", "-h"]) == 0
    assert capsys.readouterr().out == shown


def test_a_command_imports_no_other_group():
    program = (
        "import sys; from tacker_k8s_mgmt.tools import cli\n"
        "cli.main(['runs', 'list', '-h'])\n"
        "ours = 'tacker_k8s_mgmt.tools.cli.commands'\n"
        "print(*(name for name in sys.modules if name.startswith(ours)))"
    )
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True
    )
    commands = "tacker_k8s_mgmt.tools.cli.commands"
    assert set(done.stdout.splitlines()[-1].split()) == {commands, f"{commands}.runs"}


def test_the_version_is_that_of_the_installation(capsys):
    with pytest.raises(SystemExit) as caught:
        main(["--version"])
    assert caught.value.code == 0
    version = importlib.metadata.version("tacker-k8s-mgmt")
    assert capsys.readouterr().out == f"tacker-k8s-mgmt {version}\n"


def test_the_installed_program_is_this_one():
    (found,) = [
        point
        for point in importlib.metadata.entry_points(group="console_scripts")
        if point.name == "tacker-k8s-mgmt"
    ]
    assert found.load() is main


def test_everything_that_is_no_python_is_installed_as_well(monkeypatch):
    given = {}
    monkeypatch.setattr(setuptools, "setup", lambda **words: given.update(words))
    runpy.run_path(str(ROOT / "setup.py"))
    installed = {
        path
        for name, patterns in given["package_data"].items()
        for pattern in patterns
        for path in ROOT.joinpath(*name.split(".")).glob(pattern)
    }
    for path in (ROOT / "tacker_k8s_mgmt").rglob("*"):
        if path.is_file() and path.suffix not in (".py", ".pyc"):
            assert path in installed


UNKNOWN = {
    "a group": (["run"], "has no command 'run'; did you mean runs? It has: app, "),
    "nothing like a group": (["xyz"], "has no command 'xyz'. It has: app, "),
    "a verb": (["runs", "lst"], "runs has no command 'lst'; did you mean list? It has"),
    "nothing like a verb": (["csar", "xyz"], "csar has no command 'xyz'. It has: "),
}


@pytest.mark.parametrize(("words", "said"), UNKNOWN.values(), ids=UNKNOWN.keys())
def test_an_unknown_command_is_reported_with_the_nearest_one(capsys, words, said):
    assert main(words) == 2
    captured = capsys.readouterr()
    assert captured.out == ""
    assert said in captured.err
    assert len(captured.err.splitlines()) == 1


@pytest.mark.parametrize("words", [[], *([group] for group in GROUPS)])
def test_without_a_command_the_help_is_shown(capsys, words):
    assert main(words) == 2
    captured = capsys.readouterr()
    assert captured.out == ""
    assert "examples:" in captured.err


WRONG = (["--nonsense"], ["csar", "check"], ["runs", "-x"], ["runs", "list", "-x"])


@pytest.mark.parametrize("words", WRONG, ids=" ".join)
def test_a_wrong_option_is_exit_code_2(words):
    try:
        code = main(words)
    except SystemExit as end:
        code = end.code
    assert code == 2


ERRORS = {
    "one of ours": (ClusterError(detail="The reason.", hint="The hint."), 1),
    "one of the system": (PermissionError(13, "Permission denied", "/x"), 2),
    "Ctrl-C": (KeyboardInterrupt(), 130),
}


@pytest.mark.parametrize(("error", "code"), ERRORS.values(), ids=ERRORS.keys())
def test_an_error_is_one_line_and_an_exit_code(monkeypatch, capsys, error, code):
    def fail(self, args):
        raise error

    monkeypatch.setattr(RunsList, "take_action", fail)
    assert main(["runs", "list"]) == code
    said = capsys.readouterr().err
    assert len(said.splitlines()) == (0 if code == 130 else 1)
    assert "Traceback" not in said


def test_what_nobody_has_foreseen_is_named(monkeypatch, capsys):
    def fail(self, args):
        raise KeyError("x")

    monkeypatch.setattr(RunsList, "take_action", fail)
    assert main(["runs", "list"]) == 1
    assert capsys.readouterr().err == "KeyError: 'x'\n"
    assert main(["--debug", "runs", "list"]) == 1
    assert "in fail\n" in capsys.readouterr().err


NEAREST = {
    "--jsn": "unrecognized arguments: --jsn; did you mean --json?\n",
    "--stat-pat=/x": "--stat-pat=/x; did you mean --state-path?\n",
    "--xyzzy": "unrecognized arguments: --xyzzy\n",
}


@pytest.mark.parametrize("option", NEAREST)
def test_an_unknown_option_is_reported_with_the_nearest_one(capsys, option):
    with pytest.raises(SystemExit) as caught:
        main(["runs", "list", option])
    assert caught.value.code == 2
    assert capsys.readouterr().err.endswith(NEAREST[option])


def test_an_unknown_option_of_the_program_is_reported_likewise(capsys):
    with pytest.raises(SystemExit) as caught:
        main(["--vresion"])
    assert caught.value.code == 2
    assert capsys.readouterr().err.endswith(
        "unrecognized arguments: --vresion; did you mean --version?\n"
    )


def test_an_unknown_column_is_reported_with_those_there_are(tmp_path, capsys):
    completed(tmp_path)
    assert main(["runs", "list", "--state-path", str(tmp_path), "-c", "x"]) == 2
    assert "Recognized columns are ('VNF Instance ID'," in capsys.readouterr().err


LOGGED = {
    (): "a warning\n",
    ("-q",): "",
    ("-v",): "a warning\nnews\n",
    ("-vv",): "a warning\nnews\nours\n",
}


@pytest.mark.parametrize("options", LOGGED, ids=str)
def test_as_much_is_logged_as_asked_for(monkeypatch, capsys, options):
    def log(self, args):
        logging.getLogger("library").warning("a warning")
        logging.getLogger("library").info("news")
        logging.getLogger("library").debug("a secret")
        logging.getLogger("tacker_k8s_mgmt.x").debug("ours")
        return RunsList.main_columns, ()

    for name in (None, "tacker_k8s_mgmt"):
        monkeypatch.setattr(logging.getLogger(name), "level", logging.WARNING)
    monkeypatch.setattr(RunsList, "take_action", log)
    for words in ([*options, "runs", "list"], ["runs", "list", *options]):
        assert main(words) == 0
    assert capsys.readouterr().err == LOGGED[options] * 2


def test_what_a_terminal_cannot_write_does_no_harm(tmp_path):
    request = tmp_path / "request.json"
    body = simple()
    installation(body)["vim_name"] = "g\u00fcnstig"
    request.write_text(json.dumps(body))
    done = subprocess.run(
        [*MODULE, "params", "check", str(request)],
        env={**os.environ, "PYTHONIOENCODING": "ascii"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert (done.returncode, done.stderr) == (0, "")
    assert "g\\xfcnstig" in done.stdout
