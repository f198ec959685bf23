# SPDX-License-Identifier: Apache-2.0
"""Regular expressions of packages that would keep a command busy, or fill memory."""

import json
import signal
import subprocess
import sys
import time

import pytest

from tacker_k8s_mgmt.tools.csar import hot

FOR_EVER = "(a|a)*b"


def problems(pattern, value):
    constraints = [{"allowed_pattern": pattern}]
    return hot.value_problems({"type": "string", "constraints": constraints}, value)


def test_pattern_that_would_take_for_ever_is_given_up(monkeypatch):
    monkeypatch.setattr(hot, "_LIMIT", 0.5)
    value = "a" * 50
    assert problems(FOR_EVER, value) == [
        f"{value} takes too long to compare with {FOR_EVER}"
    ]


def test_comparison_ends_without_its_parent_too():
    # Of a parent that ignores the signal, too.
    def ignore():
        signal.signal(signal.SIGALRM, signal.SIG_IGN)

    done = subprocess.run(
        [sys.executable, "-I", "-S", "-c", hot._CHILD],
        input=json.dumps([FOR_EVER, "a" * 50, 0.5]).encode(),
        timeout=60,
        check=False,
        preexec_fn=ignore,
    )
    assert done.returncode == -signal.SIGALRM


def test_parent_does_not_wait_for_a_comparison_that_does_not_end(monkeypatch):
    monkeypatch.setattr(hot, "_LIMIT", 0.5)
    monkeypatch.setattr(hot, "_CHILD", "import time; time.sleep(60)")
    started = time.monotonic()
    assert hot.problem("a", "a") == hot.TOO_MUCH
    assert time.monotonic() - started < 50


def test_comparison_imports_no_module_of_the_package(monkeypatch, tmp_path):
    # A check of a package works in its directory.
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    for name in ("json", "re", "resource", "signal"):
        (tmp_path / f"{name}.py").write_text("raise SystemExit(11)\n")
    assert hot.problem("a", "a") == ""


def test_comparison_has_a_limit_of_memory():
    head, _, _ = hot._CHILD.partition("pattern, text")
    assert "setrlimit" in head
    for size, code in ((1 << 20, 0), (1 << 30, 1)):
        done = subprocess.run(
            [sys.executable, "-I", "-S", "-c", f"{head}bytearray({size})"],
            stderr=subprocess.DEVNULL,
            timeout=60,
            check=False,
        )
        assert done.returncode == code


def test_comparison_that_fails_proves_nothing(monkeypatch):
    monkeypatch.setattr(hot, "_CHILD", "raise MemoryError")
    assert hot.problem("a", "a") == hot.TOO_MUCH


@pytest.mark.parametrize(
    ("pattern", "value", "why"),
    [
        ("[a-z]+", "abc", ""),
        ("[a-z]+", "abc1", "does not match"),
        ("[a-z]+", "abc\n", "does not match"),
        ("a|ab", "ab", ""),
        ("(", "abc", ""),
        ("a{99999999999999999999}", "a", ""),
        pytest.param("(" * 5000 + ")" * 5000, "a", "", id="nested"),
        ("é+", "éé", ""),
        ("\\ud800", "\ud800", ""),
    ],
)
def test_whole_text_is_compared_with_what_is_a_pattern(pattern, value, why):
    assert hot.problem(pattern, value) == why


def test_pattern_is_data_and_no_code():
    assert hot.problem('"""\nraise SystemExit(0)', "x") == "does not match"
