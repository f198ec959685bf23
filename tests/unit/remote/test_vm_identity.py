# SPDX-License-Identifier: Apache-2.0
"""What a VM says of itself, and whether Ansible can work there."""

import subprocess
import time
import types
from pathlib import Path

import pytest

from tacker_k8s_mgmt import errors
from tacker_k8s_mgmt.model.nodes import Role
from tacker_k8s_mgmt.remote import vms
from tests.helpers.fakes.nodes import machine

BOOT = Path("/proc/sys/kernel/random/boot_id")
VM = machine(Role.WORKER, 1)


@pytest.fixture
def small(tmp_path):
    """A file system on which 1 MiB is free, for moments."""
    place = tmp_path / "small"
    place.mkdir()
    try:
        subprocess.run(
            ["mount", "-t", "tmpfs", "-o", "size=1m", "small", place], check=True
        )
    except subprocess.CalledProcessError:
        pytest.skip("only root mounts")
    yield place
    subprocess.run(["umount", place], check=True)


class TestProbe:
    def test_a_vm_with_room_is_usable_and_left_as_it_was(self, session, sshd):
        before = sorted(sshd.home.iterdir())
        vms.probe(session)
        assert sorted(sshd.home.iterdir()) == before

    def test_a_full_disk_is_told_from_a_refused_login(self, session, sshd):
        # An empty file can still be made there.
        sshd.program("head", 'exec /usr/bin/head "$@" >/dev/full')
        with pytest.raises(errors.UnusableError, match="No space left on device"):
            vms.probe(session)
        assert list(sshd.home.glob(".tacker-k8s-mgmt.*")) == []

    @pytest.mark.parametrize("variable", ["HOME", "TMPDIR"])
    def test_so_is_a_disk_that_is_nearly_full(self, session, sshd, small, variable):
        """Ansible makes files in both places: some 700 KiB, unpacked."""
        sshd.variables[variable] = str(small)
        with pytest.raises(errors.UnusableError, match="No space left on device"):
            vms.probe(session)
        assert list(small.iterdir()) == []

    def test_without_a_directory_for_files_too(self, session, sshd):
        why = "mktemp: failed to create directory: Read-only file system"
        sshd.program("mktemp", f"echo '{why}' >&2; exit 1")
        with pytest.raises(errors.UnusableError, match="Read-only file system"):
            vms.probe(session)


class Answering:
    """A session whose host answers after a while, by a clock that is ahead."""

    def __init__(self, ahead, before=0.0, after=0.0):
        self.ahead, self.pauses, self.now = ahead, (before, after), 1e9

    def time(self):
        return self.now

    def run(self, argv, timeout, sudo):
        self.now += self.pauses[0]
        told = f"{self.now + self.ahead}" if self.ahead is not None else "+%s.%N"
        self.now += self.pauses[1]
        return types.SimpleNamespace(stdout=f"machine\nboot\n{told}\n[]\n")


class TestClock:
    @pytest.fixture
    def seen(self, monkeypatch):
        """How far a VM's clock seems to be ahead."""

        def read(*situation):
            session = Answering(*situation)
            monkeypatch.setattr(time, "time", session.time)
            return vms.read(session, VM).ahead

        return read

    @pytest.mark.parametrize("ahead", [-3600, -10, 0, 10, 3600])
    def test_it_is_measured(self, seen, ahead):
        assert seen(ahead) == ahead

    @pytest.mark.parametrize("pauses", [(0, 20), (20, 0), (10, 10), (60, 60)])
    @pytest.mark.parametrize("ahead", [-70, -5, 0, 5, 70])
    def test_a_slow_answer_adds_nothing(self, seen, ahead, pauses):
        found = seen(ahead, *pauses)
        assert abs(found) <= abs(ahead)
        assert abs(found) >= abs(ahead) - sum(pauses)
        assert found * ahead >= 0

    @pytest.mark.parametrize("told", [None, *map(float, ("nan", "inf", "-inf"))])
    def test_what_is_no_time_is_no_difference(self, seen, told):
        assert seen(told) == 0

    @pytest.mark.parametrize("ahead", [-500, 500])
    def test_on_a_real_host(self, session, monkeypatch, ahead):
        real = time.time
        monkeypatch.setattr(time, "time", lambda: real() - ahead)
        found = vms.read(session, VM)
        assert found.ahead == pytest.approx(ahead, abs=20)
        assert found.boot_id == BOOT.read_text().strip()
