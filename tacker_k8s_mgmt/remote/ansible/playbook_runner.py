# SPDX-License-Identifier: Apache-2.0
"""Playbook runs on the Ansible server that outlive the SSH connection.

A run is started detached and followed by short calls, so that the driver re-attaches
after a dropped session or a restart of the conductor. The scripts of ``run_files`` do
the work on the server, and the only state between calls is a run's id. A run's
directory ``<workdir>/runs/<id>`` holds::

    request.json  the request without variables      vars.json     the run's variables
    files.tar.gz  our plugins; unpacked by run.sh    resolved.json downloads, evaluated
    log           Ansible's output                   events.jsonl  our callback's lines
    pid           pid, start time, boot id, epoch,   rc            exit code, epoch
                  uptime
"""

import io
import json
import logging
import posixpath
import secrets
import tarfile
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from functools import cache, partial
from importlib import resources
from typing import Any, TypeVar

from tacker_k8s_mgmt import errors
from tacker_k8s_mgmt.kubespray import runs, strategies
from tacker_k8s_mgmt.model import playbooks, untrusted
from tacker_k8s_mgmt.model.playbooks import (
    DEFAULT_FORKS,
    NO_MEANS,
    Forks,
    Means,
    PlaybookRequest,
    Progress,
    RunRecord,
)
from tacker_k8s_mgmt.remote.ssh.channel import last_lines
from tacker_k8s_mgmt.remote.ssh.session import Session
from tacker_k8s_mgmt.remote.timing import Backoff

START_LIMIT = 60.0  # seconds until a started run has taken its lock
_LIMIT = 30.0  # seconds for one call
_STOP_GRACE = 20  # seconds between TERM and KILL
_CHUNK = 1024 * 1024  # bytes of events per call
_ERRORS = ("ERROR!", "[ERROR]")
_PLUGIN = "k8s_mgmt_events.py"
_STRATEGY = "k8s_linear.py"
_RESOLVER = "k8s_mgmt_resolve.py"
_RECORDED = ("playbook", "limit", "digest")
_IDENTITY = ("playbook", "digest")


@dataclass(frozen=True)
class View:
    """A run's state, as the Ansible server knows it.

    Times are epoch seconds, for people, or seconds since the server's boot: its clock
    may be set while the run works.

    :param state: absent, starting, running, done or lost.
    :param started: when it began, epoch; likewise ``ended``.
    :param latest: the run that held the lock last, live or not.
    :param up: now, since the boot.
    :param asked: when it was requested, since the boot.
    :param begun: when it began, since the boot; None if that is not recorded.
    :param heard: when its last event was written, since the boot.
    :param stamp: the server's time, for names that sort.
    :param lines: event lines from the requested offset on, not redacted.
    :param consumed: the length of these lines in bytes.
    :param more: whether further lines can be read at once.
    """

    run: str
    state: str
    rc: int | None
    started: float | None
    ended: float | None
    latest: str
    up: float
    asked: float | None
    begun: float | None
    heard: float | None
    stamp: str
    lines: tuple[str, ...] = field(default=(), repr=False)
    consumed: int = 0
    more: bool = False

    @property
    def silence(self) -> float:
        """Seconds since the last event or, without one, since the start."""
        known = [at for at in (self.asked, self.begun, self.heard) if at is not None]
        return self.up - max(known, default=self.up)

    @property
    def live(self) -> bool:
        """Whether the run is in progress."""
        return self.state == "running" or (
            # A negative time is one before the last boot.
            self.state == "starting" and 0 <= self.silence <= START_LIMIT
        )


@dataclass(frozen=True)
class RunDirectories:
    """The runs of one cluster.

    Each method with a session raises ``RemoteError`` if a request fails.

    :param root: the kubespray checkout; Ansible runs in it, with its ``ansible.cfg``.
    :param venv: the virtual environment with Ansible; "" to search the login's PATH.
    """

    workdir: str
    root: str
    venv: str = ""
    forks: Forks = DEFAULT_FORKS
    means: Means = NO_MEANS

    def log(self, run: str) -> str:
        """The path of a run's log."""
        return f"{self._path(run)}/log"

    def look(
        self, session: Session, run: str = "", offset: int = 0, wait: float = 0
    ) -> View:
        """Return the state of a run, and its events from an offset on.

        :param run: "" for the live run or, without one, the newest.
        :param wait: seconds to wait for the end of a run in progress first.
        """
        arguments = [self.workdir, run, str(offset), str(_CHUNK), f"{wait:g}"]
        result = session.run(
            ["bash", "-s", "--", *arguments],
            stdin=_script("watch.sh"),
            timeout=_LIMIT + wait,
        )
        head, _, body = result.stdout.partition("\n")
        complete = body[: body.rfind("\n") + 1]
        try:
            view = View(
                **_checked(untrusted.parse_json(head)),
                lines=tuple(complete.splitlines()),
                consumed=len(complete),
                more=len(body) >= _CHUNK and bool(complete),
            )
            return untrusted.checked(view)
        except (ValueError, TypeError, KeyError):
            answer = session.redact(f"{head}\n{result.stderr}")
            raise errors.RemoteError(
                detail=f"On {session.host}, the state of the runs in {self.workdir} "
                f"could not be read from this answer: {last_lines(answer)}"
            ) from None

    def record(self, session: Session, view: View) -> RunRecord:
        """Return the record of a run, given its state."""
        path = f"{self._path(view.run)}/request.json"
        try:
            request = untrusted.parse_json(session.get(path) or b"{}")
            playbook, digest = (str(request.get(name, "")) for name in _IDENTITY)
        except (ValueError, AttributeError):
            raise errors.DamagedFile(
                path=path, host=session.host, reason="it is not a request"
            ) from None
        return RunRecord(
            run=view.run,
            playbook=playbook,
            digest=digest,
            log=self.log(view.run),
            live=view.live,
            rc=view.rc,
            started=view.started,
            ended=view.ended,
        )

    def start(self, session: Session, request: PlaybookRequest, view: View) -> str:
        """Start a detached run, and return its id at once.

        :param view: the state on which the start is based. If another run has started
            since, this one removes its directory and ends.
        """
        # Two starts in the same millisecond must not share a directory.
        unique = f"{request.digest[:8]}-{secrets.token_hex(2)}"
        run = f"{view.stamp}-{request.name}-{unique}"
        path = self._path(run)
        record = {name: getattr(request, name) for name in _RECORDED}
        record["up"] = view.up
        runs = ["install", "-d", "-m", "0700", "--", f"{self.workdir}/runs"]
        session.run(runs, timeout=_LIMIT)
        session.run(["mkdir", "-m", "0700", path], timeout=_LIMIT)
        files = {f"plugins/{_PLUGIN}", *self._means_files(request)}
        session.put(f"{path}/files.tar.gz", _archive(files))
        session.put(f"{path}/vars.json", json.dumps(dict(request.extra_vars)))
        session.put(f"{path}/run.sh", _script("run.sh"))
        session.put(f"{path}/request.json", json.dumps(record))
        variables = {
            "K8S_MGMT_RUN": path,
            "K8S_MGMT_STRATEGY": self.means.strategy,
            "K8S_MGMT_RESOLVES": "yes" if _RESOLVER in files else "",
            **strategies.variables(),
        }
        environment = [f"{name}={value}" for name, value in variables.items()]
        launch = ["env", *environment, "setsid", "-f", "bash"]
        place = [self.workdir, run, view.latest, self.root, self.venv]
        forks = [str(self.forks.wanted or ""), str(self.forks.most)]
        limit = ["--limit", request.limit] if request.limit else []
        arguments = [*place, *forks, request.playbook, *limit]
        session.run([*launch, f"{path}/run.sh", *arguments], timeout=_LIMIT)
        return run

    def _means_files(self, request: PlaybookRequest) -> Iterator[str]:
        if self.means.strategy not in ("configured", "linear"):
            yield f"strategies/{_STRATEGY}"
        if self.means.resolves and request.playbook in runs.DOWNLOADING:
            yield _RESOLVER

    def end(self, session: Session, run: str) -> None:
        """End a run with all processes that it started on the server.

        :raises CommandFailed: a process could not be ended.
        """
        session.run(
            ["bash", "-s", "--", self.workdir, run, str(_STOP_GRACE)],
            stdin=_script("stop.sh"),
            timeout=_STOP_GRACE + _LIMIT,
        )

    def log_tail(self, session: Session, run: str) -> str:
        """Return the end of the log, which has the reason if no task failed."""
        tail = session.run(
            ["tail", "-c", "8192", self.log(run)], timeout=_LIMIT, check=False
        )
        return _reason(session.redact(tail.stdout)) or "no output"

    def _path(self, run: str) -> str:
        return f"{self.workdir}/runs/{run}"


def _checked(state: dict[str, Any]) -> dict[str, Any]:
    """The fields of a state, which the server may have made up.

    :raises TypeError, KeyError: a field is of another type, or missing.
    """
    texts = [state[name] for name in ("run", "state", "latest", "stamp")]
    times = [state[name] for name in ("started", "ended", "asked", "begun", "heard")]
    numbers = [state["up"], *(at for at in times if at is not None)]
    if not all(isinstance(text, str) for text in texts):
        raise TypeError("text")
    if not all(isinstance(number, int | float) for number in numbers):
        raise TypeError("number")
    if not isinstance(state["rc"], int | None):
        raise TypeError("rc")
    return state


def _reason(log: str) -> str:
    """Return Ansible's error message and two more lines, or the end of the log."""
    lines = log.splitlines()
    starts = [n for n, line in enumerate(lines) if line.startswith(_ERRORS)]
    if starts:
        lines = lines[starts[-1] : starts[-1] + 3]
    return last_lines("\n".join(lines), chars=600)


def _archive(paths: Iterable[str]) -> bytes:
    """An archive with files of ``run_files``, at these paths."""
    archive = io.BytesIO()
    with tarfile.open(fileobj=archive, mode="w:gz") as tar:
        for path in sorted(paths):
            content = _file(posixpath.basename(path)).encode()
            member = tarfile.TarInfo(path)
            member.size, member.mode = len(content), 0o600
            tar.addfile(member, io.BytesIO(content))
    return archive.getvalue()


@cache
def _script(name: str) -> str:
    """A script, after the functions that the scripts share."""
    return _file("leader.sh") + _file(name)


def _file(name: str) -> str:
    folder = resources.files("tacker_k8s_mgmt.remote.ansible") / "run_files"
    return (folder / name).read_text(encoding="utf-8")


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
        means: Means = NO_MEANS,
    ) -> None:
        self._connect = connect
        self._dirs = RunDirectories(workdir, kubespray_root, venv or "", forks, means)

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
            return view, playbooks.fold(progress, view.lines, session.redact)

        try:
            return self._retry(read, patience=limits.idle)
        except errors.RemoteError as error:
            continues = f"The playbook run {run} continues by itself."
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
            described = playbooks.described(failed)
            raise errors.PlaybookFailed(
                playbook=request.playbook,
                host=session.host,
                rc=view.rc,
                failures=described or (self._dirs.log_tail(session, view.run),),
                tasks=playbooks.failure_fields(failed),
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
