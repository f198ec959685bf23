# SPDX-License-Identifier: Apache-2.0
"""How ``make test`` runs its checks."""

import configparser
import os
import re
import subprocess
import sys
from unittest import mock

import pytest

from lab.settings import from_environment
from tests import __main__ as all_checks
from tests.children import Children
from tests.documents import browser
from tests.tree import ROOT


@pytest.mark.parametrize("own", [True, False])
def test_byte_code_is_kept_but_not_in_another_users_tree(monkeypatch, own):
    owner = ROOT.stat().st_uid
    monkeypatch.setattr(os, "geteuid", lambda: owner if own else owner + 1)
    given = all_checks.byte_code("/scratch")
    assert given["PYTHONDONTWRITEBYTECODE"] == ""
    assert given["PYTHONPYCACHEPREFIX"] == ("" if own else "/scratch/bytecode")


@pytest.mark.parametrize("own", [True, False])
def test_the_lab_leaves_no_byte_code_in_another_users_tree(tmp_path, own):
    user = (ROOT / "lab").stat().st_uid + (not own)
    program = f"import os, sys; os.geteuid = lambda: {user}; import lab; "
    program += "print(sys.dont_write_bytecode, os.getenv('PYTHONDONTWRITEBYTECODE'))"
    env = {k: v for k, v in os.environ.items() if not k.startswith("PYTHON")}
    # This test leaves none either, whoever runs it.
    env["PYTHONPYCACHEPREFIX"] = str(tmp_path)
    told = subprocess.run(
        [sys.executable, "-c", program],
        cwd=ROOT,
        env=env,
        capture_output=True,
        text=True,
        check=True,
    )
    assert told.stdout.split() == (["False", "None"] if own else ["True", "1"])


def meet(mine: str, other: str) -> tuple[str, ...]:
    """A check that passes only while the other one runs."""
    line = (
        f"touch {mine}; for i in $(seq 600); do [ -e {other} ] && exit; sleep 0.1; done"
    )
    return ("bash", "-c", f"{line}; exit 1")


def test_quiet_checks_run_side_by_side_and_the_others_after_them(
    tmp_path, monkeypatch, capfd
):
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: {0, 1})
    one, two = str(tmp_path / "one"), str(tmp_path / "two")
    checks = [
        all_checks.Check("loud", ("ls", one, two), shown=True),
        all_checks.Check("one", meet(one, two)),
        all_checks.Check("two", meet(two, one)),
        all_checks.Check("bad", ("bash", "-c", "echo the reason; exit 3")),
    ]
    all_checks.run_all(checks, Children())
    outcomes = {check.name: check.outcome for check in checks}
    assert outcomes.pop("bad") == "FAILED"
    assert set(outcomes.values()) == {"passed"}
    assert "the reason\n    bad: FAILED" in capfd.readouterr().out


@pytest.mark.parametrize("root", [True, False])
def test_databases_of_the_labs_are_made_beside_the_quiet_checks(monkeypatch, root):
    monkeypatch.setattr(os, "geteuid", lambda: 0 if root else 1000)
    checks = all_checks.quick_checks(from_environment(), "/scratch")
    made = [check for check in checks if check.argv[-2:] == ("lab", "databases")]
    assert [check.shown for check in made] == ([False] if root else [])


def test_the_quick_ones_are_all_but_laboratories_and_lowest_versions(monkeypatch):
    ran = []
    monkeypatch.setattr(all_checks.Check, "run", lambda check, _: ran.append(check))
    monkeypatch.setattr(all_checks, "install", lambda *_: mock.Mock(ok=True))
    all_checks.quick(Children())
    assert {check.name for check in ran} == {
        *("ruff check", "ruff format", "mypy", "import-linter", "shellcheck", "docs"),
        *("unit tests", "contract tests"),
    }


@pytest.mark.parametrize("installed", [True, False])
def test_the_summary_says_that_pages_were_not_looked_at(monkeypatch, capsys, installed):
    monkeypatch.setattr(browser, "is_installed", lambda: installed)
    check = all_checks.docs_check(from_environment(), "/scratch", "/scratch/docs")
    check.outcome = "passed"
    assert all_checks.summary([check]) == 0
    told = "pages not looked at: needs chromium" in capsys.readouterr().out
    assert told is not installed


def test_tox_runs_the_same_with_the_lowest_versions():
    tox = configparser.ConfigParser(interpolation=None)
    tox.read(ROOT / "tox.ini")
    found = tox["testenv:lowest"]["commands"].splitlines()
    wanted = (all_checks.VERSIONED, all_checks.VERSIONED_CONTRACT)
    for line, one in zip(found[-2:], wanted, strict=True):
        assert line.endswith(f"{{posargs:{' '.join(one)}}}")


def test_only_these_run_without_the_lowest_versions():
    tests = ROOT / "tests"
    folders = {file.parent for file in tests.glob("unit/*/**/test_*.py")}
    run = {ROOT / name for name in all_checks.VERSIONED}
    without = {one for one in folders if run.isdisjoint((one, *one.parents))}
    assert {str(one.relative_to(tests / "unit")) for one in without} == {
        *("balancer", "benchmarks", "chaos", "documents", "lab", "monitoring"),
        *("operations", "operations/steps", "prepare", "tools/cloud", "tools/tacker"),
    }


def test_no_test_module_imports_another():
    tests = ROOT / "tests"
    found = {
        str(path.relative_to(tests)): lines
        for path in tests.rglob("*.py")
        if (
            lines := re.findall(
                r"^ *(?:from|import) .*\btest_.*", path.read_text(), re.M
            )
        )
    }
    assert found == {}


def test_every_process_collects_the_same_tests():
    """pytest-xdist runs none if a value in the name of a test is another in each."""
    tests = ROOT / "tests"
    modules = [p for kind in ("unit", "contract") for p in (tests / kind).rglob("*.py")]
    drawn = re.compile(r"^\w.*\b(uuid[14]\(\)|time\.time\(\)|token_hex\()", re.M)
    found = {str(p): drawn.findall(p.read_text()) for p in modules}
    assert {name: calls for name, calls in found.items() if calls} == {}
