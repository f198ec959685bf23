# SPDX-License-Identifier: Apache-2.0
"""Programs that integration tests start in processes with their modules."""

import os
import subprocess
import sys
import time
from pathlib import Path

import pytest

from tests.integration import warm


@pytest.fixture(scope="module")
def programs(tmp_path_factory):
    with warm.programs(tmp_path_factory.mktemp("bin")) as place:
        yield place


def done(program, *words, **more):
    argv = [str(program), *words]
    result = subprocess.run(argv, capture_output=True, text=True, timeout=60, **more)
    return result.returncode, result.stdout, result.stderr


@pytest.mark.parametrize("words", [["--version"], ["cluster"], ["no-such-verb"]])
def test_program_says_the_same_as_one_that_starts_anew(programs, words):
    anew = done(Path(sys.executable).with_name("tacker-k8s-mgmt"), *words)
    for _ in range(2):
        assert done(programs / "tacker-k8s-mgmt", *words) == anew


def test_program_has_directory_environment_and_input_of_its_caller(programs, tmp_path):
    (tmp_path / "request.json").write_text("no JSON")
    program = programs / "tacker-k8s-mgmt"
    narrow = done(program, "--help", env={**os.environ, "COLUMNS": "40"})[1]
    assert "Kubernetes cluster VNFs with Tacker\nand kubespray." in narrow
    there = done(program, "preflight", "request.json", cwd=tmp_path)
    assert there[0] == 2
    assert "request.json is no JSON" in there[2]
    assert "standard input is no JSON" in done(program, "preflight", "-", input="?")[2]


def test_program_ends_with_its_caller(programs):
    reader, writer = os.pipe()
    with open(reader), open(writer, "w") as held:
        argv = [str(programs / "tacker-k8s-mgmt"), "preflight", "-"]
        caller = subprocess.Popen(argv, stdin=reader, stdout=subprocess.PIPE)
        time.sleep(0.5)
        caller.kill()
        # The program holds the other end as well, until it ends.
        assert caller.communicate(timeout=30)[0] == b""
        assert not held.closed
