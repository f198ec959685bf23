# SPDX-License-Identifier: Apache-2.0
"""The process of a hook in the v2 API: its streams, its settings and its end."""

import os
import pathlib
import pickle
import re
import signal
import subprocess
import sys
import time

import pytest

pytest.importorskip("tacker", reason="the contract is with an installed Tacker")

from tacker.sol_refactored.common import exceptions as sol_ex

from tests.contract import v2_world
from tests.contract.v2_operations import instantiate, no_secrets
from tests.helpers.requests import VNF, additional_params

#: What must not be loaded for a VNF that is none of ours.
HEAVY = ("tacker", "oslo_config", "oslo_log", "pydantic", "paramiko", "eventlet")
#: The exit code of a script that SIGTERM has ended, and no exception.
ENDED = 128 + signal.SIGTERM
_LIST_MODULES = """\
import atexit, sys
atexit.register(lambda: open({path!r}, "w").write(" ".join(sys.modules)))
"""


def given(operation="instantiate_end", params=None, **instance):
    """What Tacker writes to the script."""
    return {
        "operation": operation,
        "request": {"additionalParams": params or {}},
        "vnf_instance": {"id": VNF, **instance},
        "grant_request": None,
        "grant_response": None,
        "tmp_csar_dir": "/nowhere",
        "user_script_err_handling_data": {},
    }


@pytest.fixture
def script(v2_package, v2_environment, tmp_path):
    """Run the package's script as it is; the process that has ended."""
    directory = v2_world.unpack(v2_package, tmp_path / "csar")

    def run(sent):
        return subprocess.run(
            [sys.executable, directory / "Definitions" / ".." / v2_world.SHIM],
            input=pickle.dumps(sent),
            capture_output=True,
            check=False,
        )

    return run


def site_customize(tmp_path, monkeypatch, code):
    """Have Python run this before the script."""
    (tmp_path / "sitecustomize.py").write_text(code)
    path = os.pathsep.join([str(tmp_path), str(v2_world.ROOT)])
    monkeypatch.setenv("PYTHONPATH", path)


class TestOthersVnfs:
    @pytest.mark.parametrize(
        "operation", ["instantiate_start", "scale_end", "heal_start", "terminate_end"]
    )
    def test_nothing_is_done_and_next_to_nothing_loaded(
        self, script, tmp_path, monkeypatch, operation
    ):
        listing = tmp_path / "modules"
        site_customize(tmp_path, monkeypatch, _LIST_MODULES.format(path=str(listing)))
        monkeypatch.setenv("TACKER_K8S_MGMT_CONFIG", "/not/even/looked/at")
        done = script(given(operation, params={"other": 1}, metadata={"other": 2}))
        assert (done.returncode, done.stdout, done.stderr) == (0, b"", b"")
        modules = listing.read_text().split()
        assert "tacker_k8s_mgmt.hooks.v2.program" in modules
        assert not set(HEAVY) & set(modules)
        assert not (tmp_path / "state").exists()


def catches(pid, number):
    """Whether a process has a handler for a signal."""
    status = pathlib.Path(f"/proc/{pid}/status").read_text()
    (mask,) = re.findall(r"^SigCgt:\s*(\w+)", status, re.M)
    return bool(int(mask, 16) >> (number - 1) & 1)


@pytest.fixture
def waiting(v2_package, v2_environment, tmp_path):
    """The package's script, which has been told nothing yet."""
    shim = v2_world.unpack(v2_package, tmp_path / "csar") / v2_world.SHIM
    pipe = subprocess.PIPE
    with subprocess.Popen(
        [sys.executable, shim], stdin=pipe, stdout=pipe, stderr=pipe
    ) as running:
        while not catches(running.pid, signal.SIGTERM):
            assert running.poll() is None
            time.sleep(0.02)
        yield running
        running.kill()


def test_end_of_the_conductor_is_an_error_with_a_verb(waiting):
    waiting.terminate()
    out, error = waiting.communicate(timeout=60)
    assert (waiting.returncode, out) == (ENDED, b"")
    assert b"`retry` continues from where the work was" in error


def test_nothing_is_done_after_it_when_nobody_reads_that(waiting):
    waiting.stderr.close()
    waiting.terminate()
    assert waiting.wait(timeout=60) == ENDED
    assert waiting.stdout.read() == b""


def test_missing_distribution_is_reported_with_the_remedy(
    script, tmp_path, monkeypatch
):
    site_customize(
        tmp_path, monkeypatch, "import sys; sys.modules['tacker_k8s_mgmt'] = None\n"
    )
    done = script(given())
    assert (done.returncode, done.stdout) == (1, b"")
    (line,) = done.stderr.decode().splitlines()
    assert sys.prefix in line
    assert f"`{sys.executable} -m pip install .` in a clone" in line


class TestNoise:
    @pytest.fixture
    def noisy(self, tacker):
        with tacker.world() as site:
            site.noisy = True
        return tacker

    def test_result_reaches_tacker(self, noisy):
        instantiate(noisy)
        assert len(noisy.instance["vimConnectionInfo"]) == 2
        log = (noisy.state / "k8s-mgmt.log").read_text()
        # Printed twice, written twice, by a child twice, and warned of, in each hook.
        assert log.count("noise") >= 2 * 7

    def test_error_is_one_text(self, noisy):
        with noisy.world() as site:
            site.faults.add("run cluster")
        with pytest.raises(sol_ex.MgmtDriverExecutionFailed) as caught:
            instantiate(noisy)
        detail = caught.value.detail
        assert detail.startswith("instantiate_end failed: b'instantiate_end: step 7/11")
        assert "noise" not in detail
        assert "\\n" not in detail
        assert "Warning" not in detail


@pytest.mark.usefixtures("quick_hooks")
class TestErrors:
    def test_defect_is_reported_without_its_text(self, script):
        sent = given(params=additional_params(), vimConnectionInfo="n0de-secret")
        done = script(sent)
        assert done.returncode == 1
        text = done.stderr.decode()
        assert text.startswith("This is a defect of tacker-k8s-mgmt or an unforeseen")
        assert "n0de-secret" not in text
        assert pickle.loads(done.stdout) == {  # noqa: S301
            "user_script_err_handling_data": {"k8s_mgmt": {}}
        }

    def test_hook_of_a_later_release_is_refused(self, script):
        done = script(given("operate_start", params=additional_params()))
        assert done.returncode == 1
        assert b"no hook operate_start" in done.stderr

    def test_what_is_no_pickle_is_a_defect(self, script, v2_package, tmp_path):
        shim = tmp_path / "csar" / v2_world.SHIM
        done = subprocess.run(
            [sys.executable, shim], input=b"nonsense", capture_output=True, check=False
        )
        assert (done.returncode, done.stdout) == (1, b"")
        assert b"UnpicklingError" in done.stderr


@pytest.mark.usefixtures("quick_hooks")
class TestSettings:
    @pytest.mark.parametrize(
        ("text", "named"),
        [
            (None, "there is no {path}"),
            ("password = s3cret\n[broken", "{path} cannot be understood"),
            ("[k8s_mgmt]\nboot_timeout = soon\n", "boot_timeout"),
            ("[k8s_mgmt]\nstate_path = {path}/below\n", "k8s-mgmt.log cannot be"),
        ],
    )
    def test_what_cannot_be_used_is_named(self, script, v2_environment, text, named):
        if text is None:
            v2_environment.unlink()
        else:
            v2_environment.write_text(text.format(path=v2_environment))
        done = script(given(params=additional_params()))
        assert done.returncode == 1
        assert named.format(path=v2_environment) in done.stderr.decode()
        assert b"s3cret" not in done.stderr

    def test_several_files_are_read_in_their_order(
        self, tacker, v2_environment, tmp_path, monkeypatch
    ):
        later = tmp_path / "later.conf"
        later.write_text(f"[k8s_mgmt]\nstate_path = {tmp_path}/elsewhere\n")
        monkeypatch.setenv("TACKER_K8S_MGMT_CONFIG", f"{v2_environment}:{later}")
        instantiate(tacker)
        assert (tmp_path / "elsewhere" / "k8s-mgmt.log").is_file()
        assert not tacker.state.exists()

    def test_tackers_own_state_path_serves_where_ours_is_not_given(
        self, tacker, v2_environment, tmp_path
    ):
        v2_environment.write_text(f"[DEFAULT]\nstate_path = {tmp_path}/tackers\n")
        instantiate(tacker)
        log = tmp_path / "tackers" / "k8s_mgmt" / "k8s-mgmt.log"
        assert "instantiate_end completed" in log.read_text()


def test_script_ends_with_its_conductor(tacker, tmp_path):
    """Its result would be lost, and its lock would block the retry."""
    sign = tmp_path / "sign"
    with tacker.world() as site:
        site.hangs = str(sign)
    sent = given(params=additional_params())
    sent["vnf_instance"]["vimConnectionInfo"] = {"vim1": v2_world.VIM}
    shim = tmp_path / "csar" / v2_world.SHIM
    code = (
        "import subprocess, sys\n"
        f"subprocess.run([sys.executable, {str(shim)!r}], input={pickle.dumps(sent)!r})"
    )
    conductor = subprocess.Popen([sys.executable, "-c", code])
    try:
        process = int(_waited(lambda: sign.exists() and sign.read_text()))
        conductor.send_signal(signal.SIGKILL)
    finally:
        conductor.kill()
        conductor.wait()
    _waited(lambda: not _is_alive(process))
    no_secrets(tacker)


def _is_alive(process):
    try:
        with open(f"/proc/{process}/stat", encoding="utf-8") as file:
            return file.read().split()[2] != "Z"
    except FileNotFoundError:
        return False


def _waited(question):
    deadline = time.monotonic() + 60
    while not (answer := question()):
        assert time.monotonic() < deadline, "it takes too long"
        time.sleep(0.05)
    return answer
