# SPDX-License-Identifier: Apache-2.0
"""Programs of other Debian releases, and sudoers files that both sudos take."""

import dataclasses
import fnmatch
import shutil
import subprocess

import pytest

from lab import LabError, suites
from lab.cloud import base
from lab.report import Report
from lab.settings import Settings, from_environment

PROGRAM = suites.Program(
    name="thing-newest",
    package="thing",
    file="usr/bin/thing",
    branch="3.4.",
    version="3.4.7-1",
    suites=("sid",),
    day="20261030T120000Z",
)
MIRROR, FORMER = "http://mirror/debian", f"{suites.FORMER_DAYS}/{PROGRAM.day}"


@pytest.fixture
def archives(monkeypatch):
    """Versions by archive; one that is not named does not answer."""
    known = {}

    def unpack(tree, uri, program, version):
        if uri not in known:
            raise LabError("no answer")
        found = fnmatch.filter(known[uri], version)
        if not found:
            raise LabError(f"Version {version} was not found")
        tree.mkdir()
        (tree / found[0]).touch()

    monkeypatch.setattr(suites, "_unpack", unpack)
    monkeypatch.setattr(suites, "_mirror", lambda: MIRROR)
    return known


@pytest.mark.parametrize(
    ("mirror", "former", "version", "other"),
    [
        pytest.param(["3.4.7-1", "3.2.1"], [], "3.4.7-1", False, id="mirror"),
        pytest.param(["3.4.8-1"], ["3.4.7-1"], "3.4.7-1", False, id="former day"),
        pytest.param(["3.5.0-1", "3.4.8-1"], [], "3.4.8-1", True, id="branch"),
    ],
)
def test_the_pinned_version_comes_before_others(
    archives, tmp_path, capsys, mirror, former, version, other
):
    archives.update({MIRROR: mirror, FORMER: former})
    (found,) = suites._unpacked(tmp_path, Report(), PROGRAM).iterdir()
    assert found.name == version
    assert ("in place of" in capsys.readouterr().out) is other


def test_what_no_archive_has_is_an_error_with_what_each_said(archives, tmp_path):
    archives[MIRROR] = ["3.5.0-1"]
    with pytest.raises(LabError) as caught:
        suites._unpacked(tmp_path, Report(), PROGRAM)
    assert f"{MIRROR}, 3.4.*: Version 3.4.* was not found" in str(caught.value)
    assert f"{FORMER}, 3.4.7-1: no answer" in str(caught.value)


def test_a_new_pin_is_not_ready(tmp_path):
    settings = Settings(tmp_path / "state", tmp_path / "cache")
    assert not suites.is_ready(settings, PROGRAM)
    tree = suites._tree(settings, PROGRAM)
    (tree / "lib").mkdir(parents=True)
    (tree / "lib" / "ld-linux-x86-64.so.2").touch()
    suites._write_script(suites.path(settings, PROGRAM), tree, PROGRAM)
    assert suites.is_ready(settings, PROGRAM)
    assert not suites.is_ready(
        settings, dataclasses.replace(PROGRAM, version="3.4.8-1")
    )


@pytest.mark.parametrize("program", suites.TESTED, ids=lambda one: one.name)
def test_programs_are_there_and_start(program):
    script = suites.path(from_environment(), program)
    assert script.exists(), "python3 -m lab install --with-tests"
    option = "-V" if program is suites.VISUDO_RS else "-v"
    said = subprocess.run(
        [script, option], capture_output=True, text=True, timeout=60, check=True
    )
    assert program.branch in said.stdout


@pytest.mark.parametrize("rust", [False, True])
def test_the_hosts_sudoers_are_those_of_either_sudo(tmp_path, rust):
    text = base.SUDOERS.replace("@includedir /etc/sudoers.d\n", "")
    rules = (
        f"{one.name} ALL=(ALL:ALL) {one.sudo}\n"
        for one in (*base.VM_ACCOUNTS, base.KEYED, base.STOCK_ACCOUNT)
    )
    file = tmp_path / "sudoers"
    file.write_text(text + "".join(rules))
    file.chmod(0o440)
    own = shutil.which("visudo", path="/usr/sbin:/usr/bin")
    program = suites.path(from_environment(), suites.VISUDO_RS) if rust else own
    subprocess.run([program, "-cqf", file], check=True, timeout=60)
