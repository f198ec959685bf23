# SPDX-License-Identifier: Apache-2.0
"""Sessions with VMs: one for each, opened on first use and again after it dropped."""

import threading
import types
from concurrent.futures import ThreadPoolExecutor

import pytest

from tacker_k8s_mgmt import errors
from tacker_k8s_mgmt.model.nodes import Role
from tacker_k8s_mgmt.remote import vms
from tacker_k8s_mgmt.remote.ssh import login
from tests.helpers.fakes.nodes import machine
from tests.helpers.samples import parsed

FIRST, SECOND = machine(Role.WORKER, 5), machine(Role.CONTROL_PLANE, 4)
KEYS = object()


class Session:
    def __init__(self, endpoint, options):
        self.endpoint, self.options = endpoint, options
        self.alive, self.closed = True, False

    def close(self):
        self.closed = True


class Bed:
    """The sessions, and what they have opened.

    :ivar refuses: logins end with an error.
    """

    def __init__(self, monkeypatch):
        self.opened, self.keys_read, self.refuses = [], 0, False
        self.begun = threading.Event()
        self.may_end = threading.Event()
        self.may_end.set()
        monkeypatch.setattr(login, "open_ssh", self._connect)
        self.params = parsed()
        self.account = self.params.account(FIRST.role)
        self.sessions = vms.VmSessions(
            self.params,
            types.SimpleNamespace(redact="redact"),
            types.SimpleNamespace(machine=lambda account, host: (account, host)),
            self._keys,
            timeout=7,
        )

    def _keys(self):
        self.keys_read += 1
        return KEYS

    def _connect(self, endpoint, **options):
        self.begun.set()
        assert self.may_end.wait(10)
        if self.refuses:
            raise errors.AuthError(user="u", host=endpoint[1], port=22, reason="denied")
        session = Session(endpoint, options)
        self.opened.append(session)
        return session


@pytest.fixture
def bed(monkeypatch):
    return Bed(monkeypatch)


def test_a_login_is_that_of_the_vms_role_with_the_usual_limit(bed):
    for vm in (FIRST, SECOND):
        session = bed.sessions.get(vm)
        assert session.endpoint == (bed.params.account(vm.role), vm.ssh_address)
    on_refused = session.options.pop("on_refused")
    assert on_refused("why") is None
    assert session.options == {
        "host_keys": KEYS,
        "redact": "redact",
        "deadline": 7,
        "auth_grace": 0,
    }


def test_limit_grace_and_account_of_a_further_session(bed):
    refusals = []
    session = bed.sessions.log_in(FIRST, "another", 0, 3, refusals.append)
    assert session.endpoint == ("another", FIRST.ssh_address)
    session.options["on_refused"]("why")
    assert (session.options["deadline"], session.options["auth_grace"]) == (0, 3)
    assert refusals == ["why"]
    # It is not the VM's session.
    assert bed.sessions.get(FIRST, "another") is bed.opened[1]


def test_each_vm_has_one_until_it_drops(bed):
    first = bed.sessions.get(FIRST)
    assert bed.sessions.get(FIRST) is first
    assert bed.sessions.get(SECOND) is not first
    first.alive = False
    again = bed.sessions.get(FIRST)
    assert again is not first
    assert bed.sessions.get(FIRST) is again
    assert len(bed.opened) == 3


def test_one_that_is_kept_is_used(bed):
    own = bed.sessions.log_in(FIRST, bed.account)
    bed.sessions.keep(FIRST, bed.account, own)
    assert bed.sessions.get(FIRST) is own
    assert len(bed.opened) == 1


class TestLent:
    def test_it_is_the_one_that_the_vm_has_and_stays(self, bed):
        with bed.sessions.lend(FIRST) as session:
            assert bed.sessions.get(FIRST) is session
        assert not session.closed
        with bed.sessions.lend(FIRST) as again:
            assert again is session

    def test_another_account_has_another_one(self, bed):
        with bed.sessions.lend(FIRST, "another") as session:
            assert session.endpoint == ("another", FIRST.ssh_address)
        assert bed.sessions.get(FIRST) is not session
        assert bed.sessions.get(FIRST, "another") is session

    def test_where_there_are_many_it_is_closed(self, bed):
        many = [machine(Role.WORKER, number) for number in range(10, 50)]
        for vm in (SECOND, *many):
            with bed.sessions.lend(vm) as session:
                pass
        assert session.closed
        assert not bed.sessions.get(SECOND).closed
        assert sum(not session.closed for session in bed.opened) == vms._MOST_KEPT

    def test_many_threads_make_room_at_once(self, bed, monkeypatch):
        monkeypatch.setattr(vms, "_MOST_KEPT", 3)
        many = [machine(Role.WORKER, number) for number in range(10, 210)]

        def use(vm):
            with bed.sessions.lend(vm) as session:
                assert not session.closed

        with ThreadPoolExecutor(8) as pool:
            list(pool.map(use, many))
        assert sum(not session.closed for session in bed.opened) <= 3 + 8

    def test_so_is_one_that_would_be_kept(self, bed, monkeypatch):
        monkeypatch.setattr(vms, "_MOST_KEPT", 0)
        own = bed.sessions.log_in(FIRST, bed.account)
        bed.sessions.keep(FIRST, bed.account, own)
        assert own.closed
        assert bed.sessions.get(FIRST) is not own

    def test_those_with_a_former_vm_are_closed(self, bed):
        former, other = bed.sessions.get(FIRST), bed.sessions.get(SECOND)
        bed.sessions.drop(FIRST.ssh_address)
        assert (former.closed, other.closed) == (True, False)
        assert bed.sessions.get(FIRST) is not former


class TestExpected:
    def test_the_login_is_made_meanwhile_and_once(self, bed):
        bed.may_end.clear()
        bed.sessions.expect(FIRST)
        assert bed.begun.wait(10)
        bed.sessions.expect(FIRST)
        bed.may_end.set()
        session = bed.sessions.get(FIRST)
        assert bed.sessions.get(FIRST) is session
        assert bed.opened == [session]

    def test_the_keys_are_read_before_its_thread(self, bed):
        """Threads may share the keys, not their reading."""
        bed.may_end.clear()
        bed.sessions.expect(FIRST)
        assert bed.keys_read >= 1
        bed.may_end.set()
        bed.sessions.get(FIRST)

    def test_a_vm_with_a_session_needs_none(self, bed):
        session = bed.sessions.get(FIRST)
        bed.sessions.expect(FIRST)
        assert bed.sessions.get(FIRST) is session
        assert bed.opened == [session]

    def test_its_error_is_that_of_the_first_use(self, bed):
        bed.refuses = True
        bed.sessions.expect(FIRST)
        with pytest.raises(errors.AuthError):
            bed.sessions.get(FIRST)
        bed.refuses = False
        assert bed.sessions.get(FIRST).alive


def test_all_are_closed_even_those_that_nobody_asked_for(bed):
    bed.sessions.get(FIRST)
    bed.sessions.expect(SECOND)
    bed.sessions.close()
    assert [session.closed for session in bed.opened] == [True, True]


def test_close_does_not_mind_a_login_that_failed(bed):
    session = bed.sessions.get(FIRST)
    bed.refuses = True
    bed.sessions.expect(SECOND)
    bed.sessions.close()
    assert session.closed
