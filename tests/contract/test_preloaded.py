# SPDX-License-Identifier: Apache-2.0
"""The Python that other tests start is like Python for who starts it."""

import json
import os
import subprocess
import sys

import pytest

from tests.contract import preloaded

_TELL = """\
import atexit, json, os, sys
told = [sys.argv, os.getcwd(), dict(os.environ), sys.path[0], __name__]
json.dump([*told, "graphlib" in sys.modules, sys.stdin.read()], sys.stdout)
atexit.register(print, "to the end", file=sys.stderr)
sys.exit(7)
"""


@pytest.fixture(scope="module")
def program():
    with preloaded.running(["graphlib"]) as path:
        yield path


@pytest.fixture
def run(tmp_path):
    """Run Python code with whatever is Python; what came of it."""
    script = tmp_path / "script.py"

    def made(python, code, *words):
        script.write_text(code)
        return subprocess.run(
            [python, script, *words],
            cwd=tmp_path,
            env={"PATH": os.environ["PATH"], "LANG": "C.UTF-8", "ONE": "1"},
            input="given",
            capture_output=True,
            text=True,
            check=False,
            timeout=60,
        )

    return made


def test_script_finds_what_it_would_find_and_only_its_imports_are_done(program, run):
    here, there = (run(one, _TELL, "a", "b c") for one in (program, sys.executable))
    assert (here.returncode, here.stderr) == (there.returncode, there.stderr)
    assert (here.returncode, here.stderr) == (7, "to the end\n")
    *told, is_loaded, given = json.loads(here.stdout)
    assert is_loaded
    assert [*told, False, given] == json.loads(there.stdout)


def test_module_is_run_too(program, run, tmp_path):
    (tmp_path / "one.py").write_text("import sys; print(__name__, sys.argv[1:])")
    done = subprocess.run(
        [program, "-m", "one", "a"], cwd=tmp_path, capture_output=True, text=True
    )
    assert (done.returncode, done.stdout) == (0, "__main__ ['a']\n")


def test_nothing_of_a_process_reaches_the_next(program, run):
    assert run(program, "import graphlib; graphlib.kept = 1").returncode == 0
    assert run(program, "import graphlib; graphlib.kept").returncode == 1


@pytest.mark.parametrize(
    "code", ["1 / 0", "import os, signal; os.kill(os.getpid(), signal.SIGKILL)"]
)
def test_what_fails_is_seen_to_fail(program, run, code):
    assert run(program, code).returncode != 0


def test_imports_that_fail_are_an_error_and_not_waited_for(run, capfd):
    with (
        pytest.raises(subprocess.CalledProcessError),
        preloaded.running(["there_is_none"]) as path,
    ):
        assert run(path, "print('run')").returncode != 0
    assert "No module named 'there_is_none'" in capfd.readouterr().err
