# SPDX-License-Identifier: Apache-2.0
"""Playbook runs on the Ansible server that outlive the SSH connection.

A run is started detached and followed by short calls, so that the driver re-attaches
after a dropped session or a restart of the conductor. See :mod:`.run_directory` for its
files on the server.
"""

import logging
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any, TypeVar

from tacker_k8s_mgmt import errors
from tacker_k8s_mgmt.model import playbook_runs
from tacker_k8s_mgmt.model.playbook_runs import (
    DEFAULT_FORKS,
    Forks,
    PlaybookRequest,
    Progress,
    RunRecord,
)
from tacker_k8s_mgmt.remote.ansible.run_directory import (
    START_LIMIT,
    RunDirectories,
    View,
)
from tacker_k8s_mgmt.remote.backoff import Backoff
from tacker_k8s_mgmt.remote.ssh.session import Session

LOG = logging.getLogger(__name__)

_PATIENCE = 30.0  # seconds without contact, before or after the run itself

T = TypeVar("T")


@dataclass(frozen=True)
class _Limits:
    total: float
    idle: float

    def passed(self, view: View) -> str:
        """Return which limit the run has exceeded, or ""."""
        if view.begun is not None and view.up - view.begun > self.total:
            return f"it ran longer than {self.total:g} s"
        if view.silence > self.idle:
            return f"it reported nothing for more than {self.idle:g} s"
        return ""

    def passed_here(self, since: Backoff) -> str:
        """Return the same, by this host's clock."""
        return f"it ran longer than {self.total:g} s" if since.spent() else ""


class PlaybookRunner:
    """Runs playbooks for one cluster, one at a time. Not thread-safe.

    :param connect: returns the session with the Ansible server, or opens another, with
        its own deadline, if that is closed. A session that breaks is closed here.
    :param workdir: the cluster's directory there; ``hosts.yaml`` is the inventory,
        ``vars.json`` has variables of every run.
    :param kubespray_root: the kubespray checkout.
    :param venv: the virtual environment with Ansible; None to search the login's PATH.

    Each method raises ``RemoteError`` if there is no contact with the server for too
    long. A run that was started continues.
    """

    def __init__(
        self,
        connect: Callable[[], Session],
        workdir: str,
        kubespray_root: str,
        venv: str | None = None,
        forks: Forks = DEFAULT_FORKS,
    ) -> None:
        self._connect = connect
        self._dirs = RunDirectories(workdir, kubespray_root, venv or "", forks)

    def run(
        self,
        request: PlaybookRequest,
        *,
        total: float,
        idle: float,
        poll: float = 5.0,
        on_progress: Callable[[Progress], None] = lambda progress: None,
    ) -> RunRecord:
        """Run a playbook to its end, or attach to the live run of the same request.

        :param total: seconds for the run, counted on the server.
        :param idle: seconds without a new event, and seconds without contact.
        :param poll: seconds between two reports of progress; the end is seen at once.
        :param on_progress: called after each change.
        :raises PlaybookFailed: exit code other than 0.
        :raises PlaybookTimeout: a limit was exceeded; the run's processes were ended.
        :raises PlaybookLost: the run vanished without an exit code.
        :raises BusyError: a run of another request is live and within the limits.
        """
        limits = _Limits(total, idle)
        run = self._retry(lambda session: self._begin(session, request, limits))
        return self._follow(request, run, limits, poll, on_progress)

    def last(self) -> RunRecord | None:
        """Return the live run, else the newest one, else None."""

        def last(session: Session) -> RunRecord | None:
            view = self._dirs.look(session)
            return None if view.state == "absent" else self._dirs.record(session, view)

        return self._retry(last)

    def stop(self) -> bool:
        """End the live run with all its processes; return whether there was one."""
        view = self._retry(self._dirs.look)
        if view.live:
            self._retry(lambda session: self._dirs.end(session, view.run))
        return view.live

    def _begin(
        self, session: Session, request: PlaybookRequest, limits: _Limits
    ) -> str:
        """Attach to a run of this request or start one; returns its id."""
        waiting, raced = Backoff(START_LIMIT), False
        while True:
            view = self._dirs.look(session)
            if raced and not view.live:
                # The other run has ended; it may be one of the same request.
                view = self._dirs.look(session, view.latest)
            if (view.live or raced) and (
                self._dirs.record(session, view).digest == request.digest
            ):
                run = view.run
                LOG.info("%s: attached to run %s", session.host, run)
            else:
                self._make_room(session, view, limits)
                run = self._dirs.start(session, request, view)
                LOG.info("%s: started run %s", session.host, run)
            if self._has_begun(session, run):
                return run
            if waiting.spent():
                raise errors.RemoteError(
                    detail=f"On {session.host}, {request.playbook} could not be started"
                    ": another run was always quicker, or `flock` is missing."
                )
            raced = True

    def _make_room(self, session: Session, view: View, limits: _Limits) -> None:
        """End a live run that exceeds the limits: no driver seems to follow it."""
        if not view.live:
            return
        reason = limits.passed(view)
        if not reason:
            record = self._dirs.record(session, view)
            raise errors.BusyError(
                playbook=record.playbook, run=view.run, host=session.host
            )
        LOG.warning("%s: run %s is ended: %s", session.host, view.run, reason)
        self._dirs.end(session, view.run)

    def _has_begun(self, session: Session, run: str) -> bool:
        """Wait until the run has its lock; returns False if another run took it."""
        waiting = Backoff(START_LIMIT, first=0.05, longest=0.5)
        while True:
            state = self._dirs.look(session, run).state
            if state != "starting" or waiting.spent():
                return state != "absent"
            waiting.pause()

    def _follow(
        self,
        request: PlaybookRequest,
        run: str,
        limits: _Limits,
        poll: float,
        on_progress: Callable[[Progress], None],
    ) -> RunRecord:
        progress, offset, wait = Progress(), 0, 0.0
        starting = Backoff(START_LIMIT, first=0.05, longest=poll)
        # The server counts the time, and may have another clock, or lie.
        here = Backoff(limits.total + START_LIMIT)
        while True:
            view, after = self._read_on(limits, run, offset, progress, wait)
            offset += view.consumed
            if after != progress:
                on_progress(after)
            progress = after
            wait = 0.0
            if view.more and not here.spent():
                continue
            if not view.live:
                return self._retry(partial(self._conclude, request, view, progress))
            if reason := limits.passed(view) or limits.passed_here(here):
                return self._retry(
                    partial(self._give_up, request, view, progress, reason)
                )
            if view.state == "running":
                wait = poll
            else:
                starting.pause()  # it has no lock yet whose release could be awaited

    def _read_on(
        self, limits: _Limits, run: str, offset: int, progress: Progress, wait: float
    ) -> tuple[View, Progress]:
        """Return the run's state and the progress with its new events."""

        def read(session: Session) -> tuple[View, Progress]:
            view = self._dirs.look(session, run, offset, wait)
            return view, playbook_runs.fold(progress, view.lines, session.redact)

        try:
            return self._retry(read, patience=limits.idle)
        except errors.RemoteError as error:
            continues = f"The playbook run {run} goes on by itself."
            error.hint = f"{error.hint} {continues}".lstrip()
            raise

    def _conclude(
        self, request: PlaybookRequest, view: View, end: Progress, session: Session
    ) -> RunRecord:
        log = self._dirs.log(view.run)
        if view.rc is None:
            raise errors.PlaybookLost(
                playbook=request.playbook, host=session.host, log=log
            )
        if view.rc != 0:
            # A run that was killed did not end because of a failed task.
            killed = 128 < view.rc <= 192
            failed = () if killed else end.failures
            described = playbook_runs.described(failed)
            raise errors.PlaybookFailed(
                playbook=request.playbook,
                host=session.host,
                rc=view.rc,
                failures=described or (self._dirs.log_tail(session, view.run),),
                tasks=playbook_runs.listed(failed),
                log=log,
            )
        return self._dirs.record(session, view)

    def _give_up(
        self,
        request: PlaybookRequest,
        view: View,
        progress: Progress,
        reason: str,
        session: Session,
    ) -> RunRecord:
        self._dirs.end(session, view.run)
        ended = self._dirs.look(session, view.run)
        if ended.rc == 0:
            return self._dirs.record(session, ended)  # it succeeded meanwhile
        raise errors.PlaybookTimeout(
            playbook=request.playbook,
            host=session.host,
            reason=reason,
            last=progress.where(),
            log=self._dirs.log(view.run),
        )

    def _retry(self, work: Callable[[Session], T], patience: float = _PATIENCE) -> T:
        """Do idempotent work, with a new session whenever the connection breaks.

        :param patience: seconds without contact.
        """
        silence: Backoff | None = None
        while True:
            session: Session | None = None
            try:
                session = self._connect()
                return work(session)
            except (errors.ConnectError, errors.CommandTimeout) as error:
                if session is not None:
                    session.close()
                silence = silence or Backoff(patience)
                if silence.spent():
                    raise
                LOG.warning("contact with the Ansible server lost: %s", error)
                silence.pause()


class Playbooks:
    """Playbook runs with the time limits of Tacker's configuration.

    :param options: the ``[k8s_mgmt]`` group of Tacker's configuration.
    :param prepare: called before each run.
    """

    def __init__(
        self, runner: PlaybookRunner, options: Any, prepare: Callable[[], None]
    ) -> None:
        self._runner = runner
        self._options = options
        self._prepare = prepare

    def done(self, request: PlaybookRequest) -> bool:
        """Return whether the latest run was this one, and succeeded."""
        last = self._runner.last()
        return last is not None and last.digest == request.digest and last.rc == 0

    def live(self, request: PlaybookRequest) -> bool:
        """Return whether this run is in progress."""
        last = self._runner.last()
        return last is not None and last.digest == request.digest and last.live

    def run(
        self,
        request: PlaybookRequest,
        nodes: int,
        on_progress: Callable[[Progress], None],
    ) -> None:
        """Run a playbook, or re-attach to the same run if it is in progress.

        :param nodes: their number, which decides the time limit.
        :raises K8sMgmtError: see :meth:`PlaybookRunner.run`.
        """
        options = self._options
        self._prepare()
        self._runner.run(
            request,
            total=options.playbook_base_timeout + nodes * options.playbook_node_timeout,
            idle=options.playbook_idle_timeout,
            poll=options.poll_interval,
            on_progress=on_progress,
        )

    def stop(self) -> bool:
        """See :meth:`PlaybookRunner.stop`."""
        return self._runner.stop()
