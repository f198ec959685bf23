# SPDX-License-Identifier: Apache-2.0
"""Which environments there are, and when they are rebuilt."""

import io
import re
import sys
from pathlib import Path

import pytest

from lab import LabError, command, environments, files
from lab import pins as all_pins
from lab.report import Report

ALL = (*all_pins.NAMES, environments.TOOLS)


@pytest.fixture
def pins(tmp_path, monkeypatch):
    directory = tmp_path / "pins"
    directory.mkdir()
    for name in ALL:
        (directory / f"{name}.txt").write_text("thing==1\n")
    monkeypatch.setattr(environments, "PINS", directory)
    return directory


@pytest.fixture
def ran(lab, monkeypatch):
    """The programs that are run; creating an environment makes its directory."""
    commands = []

    def run(argv, **_):
        commands.append(argv)
        if argv[1:3] == ["-m", "venv"]:
            (Path(argv[-1]) / "bin").mkdir(parents=True)
            (Path(argv[-1]) / "bin" / "python").symlink_to("/bin/true")
        return ""

    monkeypatch.setattr(command, "run", run)
    monkeypatch.setattr(files, "is_named_by_processes", lambda *_: False)
    lab.cache.mkdir()
    return commands


def report():
    return Report(io.StringIO())


@pytest.mark.parametrize("name", ALL)
def test_pins_name_every_package_once_with_one_version(name):
    lines = environments.pins(name).read_text().splitlines()
    packages = [line for line in lines if not line.startswith("#")]
    assert packages
    pin = re.compile(r"[A-Za-z0-9._-]+==[^=\s;]+( ?; python_\w*version .*)?")
    for line in packages:
        assert pin.fullmatch(line)
    names = [all_pins.normalized(package.split("==")[0]) for package in packages]
    assert len(set(names)) == len(names)


@pytest.mark.parametrize("name", environments.TESTED)
def test_test_tools_do_not_change_what_tacker_runs_with(name):
    both = [environments.pins(each) for each in (name, environments.TESTS)]
    tacker, tests = map(all_pins.versions, both)
    assert not tacker.keys() & tests.keys()


def test_an_environment_is_another_one_when_its_pins_change(lab, pins):
    before = environments.path(lab, "tacker")
    (pins / "openstack.txt").write_text("thing==2\n")
    assert environments.path(lab, "tacker") == before
    (pins / "tacker.txt").write_text("thing==2\n")
    assert environments.path(lab, "tacker") != before


def test_finished_environments_are_left_alone(lab, pins, ran):
    environments.prepare(lab, report())
    assert all(environments.is_ready(lab, name) for name in environments.NAMES)
    ran.clear()
    environments.prepare(lab, report())
    assert ran == []


def test_an_environment_that_was_cut_off_is_built_from_scratch(lab, pins, ran):
    half = environments.path(lab, "ansible")
    (half / "rest").mkdir(parents=True)
    environments.prepare(lab, report(), ["ansible"])
    assert environments.is_ready(lab, "ansible")
    assert not (half / "rest").exists()


@pytest.mark.parametrize("in_use", [False, True], ids=["no lab runs", "a lab runs"])
def test_former_environments_go_unless_a_lab_may_use_them(
    lab, pins, ran, monkeypatch, in_use
):
    monkeypatch.setattr(files, "is_named_by_processes", lambda *_: in_use)
    former = lab.cache / "envs" / "tacker-0123456789ab"
    former.mkdir(parents=True)
    environments.prepare(lab, report())
    assert former.exists() is in_use


@pytest.fixture
def environment(lab):
    """An environment with nothing but its Python."""
    path = lab.cache / "envs" / "x"
    (path / "bin").mkdir(parents=True)
    (path / "bin" / "python").symlink_to(sys.executable)
    (path / "lib").mkdir()
    return path


def test_pip_takes_over_where_uv_cannot(lab, environment, monkeypatch):
    ran = []

    def run(argv, **_):
        ran.append(Path(argv[0]).name)
        if ran[-1] == "uv":
            raise LabError("no such index")
        return ""

    monkeypatch.setattr(command, "run", run)
    environments.install(lab, environment, ["thing"])
    assert ran == ["pip", "uv", "pip"]


def test_what_is_installed_has_byte_code(lab, environment, monkeypatch):
    monkeypatch.setenv("PYTHONDONTWRITEBYTECODE", "1")
    module = environment / "lib" / "thing.py"
    monkeypatch.setattr(command, "run", lambda *_, **__: module.touch() or "")
    environments.install(lab, environment, ["thing"])
    (compiled,) = (environment / "lib" / "__pycache__").iterdir()
    assert compiled.name.startswith("thing.")


@pytest.mark.parametrize(
    ("configured", "expected"),
    [
        pytest.param("", {}, id="nothing"),
        pytest.param(
            "global.index-url='https://mirror/simple'\n:env:.cert='/etc/ca.pem'\n",
            {
                "UV_DEFAULT_INDEX": "https://mirror/simple",
                "SSL_CERT_FILE": "/etc/ca.pem",
            },
            id="mirror and certificates",
        ),
    ],
)
def test_uv_uses_the_index_that_pip_is_configured_for(
    lab, environment, monkeypatch, configured, expected
):
    seen = {}

    def run(argv, *, env=None, **_):
        seen.update(env or {})
        return configured if "config" in argv else ""

    for name in ("UV_DEFAULT_INDEX", "SSL_CERT_FILE"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setattr(command, "run", run)
    environments.install(lab, environment, ["thing"])
    names = ("UV_DEFAULT_INDEX", "SSL_CERT_FILE")
    assert {name: seen[name] for name in names if name in seen} == expected


@pytest.mark.parametrize(
    ("cmdline", "used"),
    [
        pytest.param("{cache}/envs/tacker-1/bin/python\0x", True, id="of this cache"),
        pytest.param("/other/envs/tacker-1/bin/python\0x", False, id="of another"),
    ],
)
def test_a_running_lab_is_seen_by_its_processes(lab, tmp_path, cmdline, used):
    process = tmp_path / "proc" / "17"
    process.mkdir(parents=True)
    (process / "cmdline").write_text(cmdline.format(cache=lab.cache))
    place = f"{lab.cache}/envs/"
    assert files.is_named_by_processes(place, "cmdline", tmp_path / "proc") is used
