"""The command line as a whole: help, unknown commands, version, exit codes."""

import importlib.metadata
import json
import os
import runpy
import subprocess
import sys
from pathlib import Path

import pytest
import setuptools

from tacker_k8s_mgmt import cli
from tacker_k8s_mgmt.cli import main
from tacker_k8s_mgmt.errors import ClusterError
from tests.unit.cli.bodies import installation, simple
from tests.unit.cli.command_line import VERBS, commands_in, help_of

ROOT = Path(__file__).resolve().parents[3]
MODULE = [sys.executable, "-m", "tacker_k8s_mgmt.cli"]


def test_a_command_needs_its_own_group_alone():
    assert [group.NAME for group in cli.groups()] == list(cli.GROUPS)
    for name in cli.GROUPS:
        (group,) = cli.groups([name, "list"])
        assert name == group.NAME


@pytest.mark.parametrize("words", [(), *((n,) for n, _ in VERBS), *VERBS], ids=str)
def test_every_help_has_examples_that_the_command_line_takes(capsys, words):
    text = help_of(capsys, *words)
    examples = list(commands_in(text.split("examples:\n")[1]))
    assert examples
    for example in examples:
        if "--help" not in example:
            assert callable(cli.parser().parse_args(example).function)


@pytest.mark.parametrize("words", VERBS, ids=str)
def test_every_command_shows_its_exit_codes(capsys, words):
    assert "\nexit codes: 0 " in help_of(capsys, *words)


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
    "a group": (["run"], "has no command 'run'; did you mean runs? It has: csar, "),
    "nothing like a group": (["xyz"], "has no command 'xyz'. It has: csar, "),
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


@pytest.mark.parametrize("words", [[], *([name] for name in dict(VERBS))])
def test_without_a_command_the_help_is_shown(capsys, words):
    assert main(words) == 2
    captured = capsys.readouterr()
    assert captured.out == ""
    assert "examples:" in captured.err


@pytest.mark.parametrize("words", [["--nonsense"], ["csar", "check"], ["runs", "-x"]])
def test_a_wrong_option_is_exit_code_2(words):
    with pytest.raises(SystemExit) as caught:
        main(words)
    assert caught.value.code == 2


ERRORS = {
    "one of ours": (ClusterError(detail="The reason.", hint="The hint."), 1),
    "one of the system": (PermissionError(13, "Permission denied", "/x"), 1),
    "Ctrl-C": (KeyboardInterrupt(), 130),
}


@pytest.mark.parametrize(("error", "code"), ERRORS.values(), ids=ERRORS.keys())
def test_an_error_is_one_line_and_an_exit_code(monkeypatch, capsys, error, code):
    def fail(args):
        raise error

    monkeypatch.setattr("tacker_k8s_mgmt.cli.commands.runs._list", fail)
    assert main(["runs", "list"]) == code
    said = capsys.readouterr().err
    assert len(said.splitlines()) == (0 if code == 130 else 1)
    assert "Traceback" not in said


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
