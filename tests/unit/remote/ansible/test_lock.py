# SPDX-License-Identifier: Apache-2.0
"""The cluster's lock: one holder, said by name, free as soon as it is gone."""

import threading
import time

import pytest

from tacker_k8s_mgmt import errors
from tacker_k8s_mgmt.remote.ansible import cluster_directory
from tacker_k8s_mgmt.remote.ansible.cluster_directory import ClusterLock, LockedSession


@pytest.fixture
def impatient(monkeypatch):
    monkeypatch.setattr(cluster_directory, "_PATIENCE", 0.3)


@pytest.fixture
def first(log_in, tmp_path):
    """The lock of the cluster, held."""
    lock = ClusterLock(log_in(), str(tmp_path), "scale_end of VNF a")
    lock.acquire()
    assert lock.held
    return lock


def free_again(session, workdir):
    """Whether someone else gets the lock before long."""
    other = ClusterLock(session, workdir, "scale_end")
    deadline = time.monotonic() + 60
    while time.monotonic() < deadline:
        try:
            other.acquire()
        except errors.LockedError:
            time.sleep(0.1)
        else:
            return other.held
    return False


def test_the_error_names_the_holder_of_the_lock(first, log_in, tmp_path, impatient):
    with pytest.raises(errors.LockedError) as caught:
        ClusterLock(log_in(), str(tmp_path), "heal_start").acquire()
    text = str(caught.value)
    assert "scale_end of VNF a of conductor" in text
    assert "since 0 min" in text
    assert "nothing was changed" in text


def test_locale_of_the_server_does_not_matter(sshd, log_in, tmp_path, decimal_comma):
    sshd.variables = decimal_comma
    (tmp_path / "operation.lock").mkdir()
    with pytest.raises(errors.RemoteError, match=r"operation\.lock could not be taken"):
        ClusterLock(log_in(), str(tmp_path), "scale_end").acquire()
    (tmp_path / "operation.lock").rmdir()
    first = ClusterLock(log_in(), str(tmp_path), "scale_end")
    first.acquire()
    assert first.held


def test_again_by_the_same_is_harmless(first):
    first.acquire()
    assert first.held


def test_it_goes_with_the_session(session, log_in, tmp_path, impatient):
    first = ClusterLock(session, str(tmp_path), "scale_end")
    first.acquire()
    session.close()
    assert not first.held
    assert free_again(log_in(), str(tmp_path))


def test_it_goes_with_a_dropped_connection(first, sshd, log_in, tmp_path, impatient):
    sshd.drop()
    assert free_again(log_in(), str(tmp_path))


def test_clusters_do_not_share_a_lock(log_in, tmp_path):
    session = log_in()
    locks = []
    for name in ("one", "two"):
        (tmp_path / name).mkdir()
        locks.append(ClusterLock(session, str(tmp_path / name), "scale_end"))
        locks[-1].acquire()
    assert [lock.held for lock in locks] == [True, True]


def test_no_directory_is_an_error_of_its_own(log_in, tmp_path):
    with pytest.raises(errors.RemoteError, match=r"operation\.lock could not be taken"):
        ClusterLock(log_in(), str(tmp_path / "none"), "scale_end").acquire()


def test_owner_that_wrote_half_a_line_is_not_an_error_in_itself(
    first, log_in, tmp_path, impatient
):
    (tmp_path / "operation.lock").write_text('{"operation": "sca')
    with pytest.raises(errors.LockedError, match="an unknown operation"):
        ClusterLock(log_in(), str(tmp_path), "heal_start").acquire()


def test_owner_that_releases_it_soon_is_waited_for(log_in, tmp_path, impatient):
    session = log_in()
    first = ClusterLock(session, str(tmp_path), "scale_end of CNF a")
    first.acquire(within=600.0)
    second = ClusterLock(log_in(), str(tmp_path), "scale_end")
    ended = threading.Timer(3.0, session.close)
    ended.start()
    second.acquire()
    assert second.held
    # A promise that was not kept is an error as before.
    with pytest.raises(errors.LockedError, match="scale_end of conductor"):
        ClusterLock(log_in(), str(tmp_path), "heal_start").acquire()
    (tmp_path / "operation.lock").write_text('{"within": 0.5}')
    with pytest.raises(errors.LockedError, match="an unknown operation"):
        ClusterLock(log_in(), str(tmp_path), "heal_start").acquire()


class Session:
    alive = True


class Lock:
    """The lock of one session; ``busy`` sessions do not get it."""

    busy: tuple[Session, ...] = ()

    def __init__(self, session, directory, operation):
        self.session = session
        self.taken = False

    @property
    def held(self):
        return self.taken and self.session.alive

    def acquire(self, patience=None, within=0.0):
        if self.session in self.busy:
            raise errors.LockedError(path="/c", host="a", owner="scale_end")
        self.taken = True


@pytest.fixture
def opened():
    """The sessions with the Ansible server that were opened, in order."""
    return []


@pytest.fixture
def server(opened, monkeypatch):
    monkeypatch.setattr(cluster_directory, "ClusterLock", Lock)

    def connect():
        opened.append(Session())
        return opened[-1]

    return LockedSession(connect, "/c", "scale")


def test_one_session_serves_files_lock_and_runs(server, opened):
    server.lock()
    assert server.get() is server.for_run() is opened[0]
    assert len(opened) == 1


def test_lock_goes_with_its_session_and_is_taken_again_with_the_next(server, opened):
    server.lock()
    opened[0].alive = False
    assert server.get() is opened[1]
    assert server._lock.session is opened[1]
    assert server._lock.held


def test_without_the_lock_only_a_run_is_followed(server, opened, monkeypatch):
    server.lock()
    opened[0].alive = False
    second = Session()
    monkeypatch.setattr(server, "_connect", lambda: second)
    monkeypatch.setattr(Lock, "busy", (second,))
    assert server.for_run() is server.for_run() is second
    with pytest.raises(errors.LockedError):
        server.get()
    monkeypatch.setattr(Lock, "busy", ())
    assert server.get() is second
    assert server._lock.held


def test_a_reconnect_takes_no_lock_that_was_not_held(server, opened):
    server.get()
    opened[0].alive = False
    server.for_run()
    server.get()
    assert server._lock is None
