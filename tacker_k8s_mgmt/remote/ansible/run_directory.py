# SPDX-License-Identifier: Apache-2.0
"""Playbook runs as directories on the Ansible server.

The scripts of ``run_files`` do the work there. Every call here is short, and the only
state between calls is a run's id. A run's directory ``<workdir>/runs/<id>`` holds::

    request.json  the request without variables      vars.json     the run's variables
    log           Ansible's output                   events.jsonl  our callback's lines
    pid           pid, start time, boot id, epoch,   rc            exit code, epoch
                  uptime
"""

import json
import secrets
from dataclasses import dataclass, field
from functools import cache
from importlib import resources
from typing import Any

from tacker_k8s_mgmt import errors
from tacker_k8s_mgmt.model import json_text
from tacker_k8s_mgmt.model.playbook_runs import (
    DEFAULT_FORKS,
    Forks,
    PlaybookRequest,
    RunRecord,
)
from tacker_k8s_mgmt.remote.ssh.channel import last_lines
from tacker_k8s_mgmt.remote.ssh.session import Session

START_LIMIT = 60.0  # seconds until a started run has taken its lock
_LIMIT = 30.0  # seconds for one call
_STOP_GRACE = 20  # seconds between TERM and KILL
_CHUNK = 1024 * 1024  # bytes of events per call
_ERRORS = ("ERROR!", "[ERROR]")
_PLUGIN = "k8s_mgmt_events.py"
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
                **_checked(json_text.parse(head)),
                lines=tuple(complete.splitlines()),
                consumed=len(complete),
                more=len(body) >= _CHUNK and bool(complete),
            )
            return json_text.checked(view)
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
            request = json_text.parse(session.get(path) or b"{}")
            playbook, digest = (str(request.get(name, "")) for name in _IDENTITY)
        except (ValueError, AttributeError):
            raise errors.SpoiledFile(
                path=path, host=session.host, reason="it is no request"
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
        session.run(["mkdir", "-m", "0700", path, f"{path}/plugins"], timeout=_LIMIT)
        session.put(f"{path}/plugins/{_PLUGIN}", _file(_PLUGIN))
        session.put(f"{path}/vars.json", json.dumps(dict(request.extra_vars)))
        session.put(f"{path}/run.sh", _script("run.sh"))
        session.put(f"{path}/request.json", json.dumps(record))
        launch = ["env", f"K8S_MGMT_RUN={path}", "setsid", "-f", "bash"]
        place = [self.workdir, run, view.latest, self.root, self.venv]
        forks = [str(self.forks.wanted or ""), str(self.forks.most)]
        limit = ["--limit", request.limit] if request.limit else []
        arguments = [*place, *forks, request.playbook, *limit]
        session.run([*launch, f"{path}/run.sh", *arguments], timeout=_LIMIT)
        return run

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


@cache
def _script(name: str) -> str:
    """A script, after the functions that the scripts share."""
    return _file("leader.sh") + _file(name)


def _file(name: str) -> str:
    folder = resources.files("tacker_k8s_mgmt.remote.ansible") / "run_files"
    return (folder / name).read_text(encoding="utf-8")
