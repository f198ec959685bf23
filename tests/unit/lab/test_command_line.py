# SPDX-License-Identifier: Apache-2.0
"""``python3 -m lab``."""

import os
from pathlib import Path

import pytest

from lab import LabError, __main__, manager
from lab.real.site import Wanted


class Recorder:
    """Takes the place of the lab."""

    def __init__(self, settings, report):
        self.settings = settings

    def __getattr__(self, name):
        def call(*args, **kwargs):
            calls.append((name, *args, kwargs))

        return call


calls: list = []


@pytest.fixture(autouse=True)
def recorder(monkeypatch):
    calls.clear()
    for name in ("MIRROR", "ARTIFACTS"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setattr(__main__, "Lab", Recorder)


def run(monkeypatch, *words):
    monkeypatch.setattr("sys.argv", ["lab", *words])
    return __main__.main()


PLAIN = {"real": False, "memory": None, "kubespray": None}


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        pytest.param(["up"], ("up", PLAIN), id="up"),
        pytest.param(
            ["up", "--real", "--memory", "2G"],
            ("up", {**PLAIN, "real": True, "memory": 2**31}),
            id="up, with systemd in VMs",
        ),
        pytest.param(
            [*("up", "--kubespray", "v2.31.0", "--also", "v2.30.0")],
            ("up", {**PLAIN, "kubespray": Wanted("v2.31.0", ("v2.30.0",))}),
            id="up, with the real kubespray",
        ),
        pytest.param(
            [*("up", "--kubespray", "v2.31.0", "--mirror", "mine")],
            ("up", {**PLAIN, "kubespray": Wanted("v2.31.0", (), Path("mine"))}),
            id="up, with the user's mirror",
        ),
        pytest.param(
            [*("up", "--kubespray", "v2.31.0", "--artifacts", "build")],
            ("up", {**PLAIN, "kubespray": Wanted("v2.31.0", (), "build")}),
            id="up, with what is built here",
        ),
        pytest.param(["databases"], ("make_databases", {}), id="databases"),
        pytest.param(["down"], ("down", {"keep": False}), id="down"),
        pytest.param(["down", "--keep"], ("down", {"keep": True}), id="down, keep"),
        pytest.param(["install"], ("install", {"with_tests": False}), id="install"),
        pytest.param(
            ["logs", "heat-api", "-f"],
            ("logs", "heat-api", {"follow": True}),
            id="logs of one, followed",
        ),
        pytest.param(["logs"], ("logs", None, {"follow": False}), id="all logs"),
        pytest.param(
            ["exec", "--", "ls", "-l", "--", "x"],
            ("execute", ["ls", "-l", "--", "x"], {}),
            id="options of a command are its own",
        ),
        pytest.param(
            ["pins", "tacker", "tests", "--upper-constraints", "list.txt"],
            ("renew_pins", ["tacker", "tests"], Path("list.txt"), {}),
            id="pins of some, by a list",
        ),
        pytest.param(["pins"], ("renew_pins", [], None, {}), id="all pins"),
        pytest.param(
            ["restart", "--kill", "tacker-conductor"],
            ("end", "restart", ["tacker-conductor"], {"kill": True}),
            id="restart",
        ),
        pytest.param(
            ["stop", "tacker-conductor-2"],
            ("end", "stop", ["tacker-conductor-2"], {"kill": False}),
            id="stop one service",
        ),
    ],
)
def test_commands(monkeypatch, words, expected):
    assert run(monkeypatch, *words) == 0
    assert calls == [expected]


def test_pins_of_what_is_no_environment_are_refused(monkeypatch, capsys):
    with pytest.raises(SystemExit):
        run(monkeypatch, "pins", "attic")
    assert "attic" in capsys.readouterr().err
    assert calls == []


@pytest.mark.parametrize(
    ("environment", "words", "source"),
    [
        ({"ARTIFACTS": "internet"}, [], "internet"),
        ({"ARTIFACTS": "internet", "MIRROR": "/mine"}, [], Path("/mine")),
        ({"MIRROR": "/mine"}, ["--artifacts", "build"], "build"),
        ({"ARTIFACTS": ""}, [], None),
    ],
)
def test_files_and_images_come_from_where_the_environment_says(
    monkeypatch, environment, words, source
):
    for name, value in environment.items():
        monkeypatch.setenv(name, value)
    assert run(monkeypatch, "up", "--kubespray", "v2.31.0", *words) == 0
    ((_, options),) = calls
    assert options["kubespray"].source == source


def test_unknown_source_of_files_is_refused(monkeypatch, capsys):
    monkeypatch.setenv("ARTIFACTS", "/logs")
    assert run(monkeypatch, "up", "--kubespray", "v2.31.0") == 2
    assert "neither internet nor build" in capsys.readouterr().err


@pytest.mark.parametrize("code", [1, 2, 3])
def test_an_error_is_one_text_and_its_code(monkeypatch, capsys, code):
    def fail(self, **_):
        raise LabError("no disk: free some", code)

    monkeypatch.setattr(Recorder, "up", fail, raising=False)
    assert run(monkeypatch, "up") == code
    assert capsys.readouterr().err == "no disk: free some\n"


@pytest.mark.parametrize(
    "words",
    [["up"], ["databases"], ["down"], ["status"], ["exec", "--", "true"], ["shell"]],
    ids=str,
)
def test_only_root_runs_a_lab(monkeypatch, capsys, tmp_path, words):
    monkeypatch.setattr(__main__, "Lab", manager.Lab)
    monkeypatch.setattr(os, "geteuid", lambda: 1000)
    assert run(monkeypatch, "--state", str(tmp_path / "lab"), *words) == 2
    assert "sudo" in capsys.readouterr().err
    assert not (tmp_path / "lab").exists()


def test_a_foreign_directory_is_not_taken_down(monkeypatch, capsys, tmp_path):
    monkeypatch.setattr(__main__, "Lab", manager.Lab)
    monkeypatch.setattr(os, "geteuid", lambda: 0)
    (tmp_path / "letters").touch()
    cache = str(tmp_path / "cache")
    assert run(monkeypatch, "--state", str(tmp_path), "--cache", cache, "down") == 2
    assert (tmp_path / "letters").exists()


@pytest.mark.parametrize(
    ("words", "api"), [([], "v2"), (["--api", "v1"], "v1"), (["--api", "v2"], "v2")]
)
def test_the_demo_is_of_v2_unless_told_otherwise(monkeypatch, words, api):
    assert run(monkeypatch, "demo", *words) == 0
    (started,) = (call for call in calls if call[0] == "execute")
    assert started[1][1:3] == ["-m", "lab.demo_script"]
    assert started[1][4] == api
