"""The run directories in a cluster's work directory, and what can be done with them.

What happens on the Ansible server is in the scripts of ``run_files``; every call here
is short and leaves nothing to remember but a run's id. A run's directory
``<workdir>/runs/<id>`` holds::

    request.json  what was asked (no variables)      vars.json     the run's variables
    log           Ansible's output                   events.jsonl  our callback's lines
    pid           pid, start time, boot id, epoch    rc            exit code, epoch
"""

import json
import secrets
from dataclasses import dataclass, field
from functools import cache
from importlib import resources

from tacker_k8s_mgmt import errors
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
_CHUNK = 1024 * 1024  # bytes of events per look
_ERRORS = ("ERROR!", "[ERROR]")
_PLUGIN = "k8s_mgmt_events.py"


@dataclass(frozen=True)
class View:
    """One look at a run; times in epoch seconds of the Ansible server.

    :param state: absent, starting, running, done or lost.
    :param latest: the run that had the lock last, live or not.
    :param changed: when files of the run were last changed.
    :param stamp: the server's time, for names that sort.
    :param lines: event lines from the asked offset on, not redacted.
    :param consumed: bytes that these lines took.
    :param more: whether there are further lines already.
    """

    run: str
    state: str
    rc: int | None
    started: float | None
    ended: float | None
    latest: str
    now: float
    changed: list[float]
    stamp: str
    lines: tuple[str, ...] = field(default=(), repr=False)
    consumed: int = 0
    more: bool = False

    @property
    def silence(self) -> float:
        """Seconds since the last event, or else since the start."""
        return self.now - max(self.changed, default=self.now)

    @property
    def live(self) -> bool:
        """Whether the run is under way."""
        return self.state == "running" or (
            self.state == "starting" and self.silence <= START_LIMIT
        )


@dataclass(frozen=True)
class RunDirectories:
    """The runs of one cluster.

    :param root: the kubespray checkout; playbooks run in it, with its ``ansible.cfg``.
    :param venv: the virtual environment with Ansible; "" for the login's PATH.
    :param forks: how many hosts Ansible works on at the same time.
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
        """Look at a run and its events from an offset on.

        :param run: "" for the live run or else the newest one.
        :param wait: seconds to wait first for the end of the run that is under way.
        :raises RemoteError: the server could not be asked, or its answer be read.
        """
        place = [self.workdir, run, str(offset), str(_CHUNK), f"{wait:g}"]
        asked = session.run(
            ["bash", "-s", "--", *place],
            stdin=_script("watch.sh"),
            timeout=_LIMIT + wait,
        )
        head, _, body = asked.stdout.partition("\n")
        whole = body[: body.rfind("\n") + 1]
        try:
            return View(
                **json.loads(head),
                lines=tuple(whole.splitlines()),
                consumed=len(whole),
                more=len(body) >= _CHUNK and bool(whole),
            )
        except (ValueError, TypeError):
            answer = session.redact(f"{head}\n{asked.stderr}")
            raise errors.RemoteError(
                detail=f"On {session.host}, the state of the runs in {self.workdir} "
                f"could not be read from this answer: {last_lines(answer)}"
            ) from None

    def record(self, session: Session, view: View) -> RunRecord:
        """Return what is recorded of the run that was looked at."""
        asked = json.loads(session.get(f"{self._path(view.run)}/request.json") or b"{}")
        return RunRecord(
            run=view.run,
            playbook=asked.get("playbook", ""),
            digest=asked.get("digest", ""),
            log=self.log(view.run),
            live=view.live,
            rc=view.rc,
            started=view.started,
            ended=view.ended,
        )

    def start(self, session: Session, request: PlaybookRequest, view: View) -> str:
        """Start a run detached, and return its id at once.

        :param view: the look that this is decided on. If another run started since,
            this one removes its directory and ends.
        """
        # Two starts in the same millisecond must not share a directory.
        unique = f"{request.digest[:8]}-{secrets.token_hex(2)}"
        run = f"{view.stamp}-{request.name}-{unique}"
        path = self._path(run)
        asked = {"playbook": request.playbook, "args": request.args}
        asked["digest"] = request.digest
        folders = ["install", "-d", "-m", "0700", "--", f"{self.workdir}/runs"]
        session.run(folders, timeout=_LIMIT)
        session.run(["mkdir", "-m", "0700", path, f"{path}/plugins"], timeout=_LIMIT)
        session.put(f"{path}/plugins/{_PLUGIN}", _file(_PLUGIN))
        session.put(f"{path}/vars.json", json.dumps(dict(request.extra_vars)))
        session.put(f"{path}/run.sh", _script("run.sh"))
        session.put(f"{path}/request.json", json.dumps(asked))
        launch = ["env", f"K8S_MGMT_RUN={path}", "setsid", "-f", "bash"]
        place = [self.workdir, run, view.latest, self.root, self.venv]
        forks = [str(self.forks.wanted or ""), str(self.forks.most)]
        asked_for = [*forks, request.playbook, *request.args]
        session.run([*launch, f"{path}/run.sh", *place, *asked_for], timeout=_LIMIT)
        return run

    def end(self, session: Session, run: str) -> None:
        """End a run with every process that it started on the server.

        :raises CommandFailed: some process is still there.
        """
        session.run(
            ["bash", "-s", "--", self.workdir, run, str(_STOP_GRACE)],
            stdin=_script("stop.sh"),
            timeout=_STOP_GRACE + _LIMIT,
        )

    def last_words(self, session: Session, run: str) -> str:
        """Return the end of the log: where no task failed it tells the reason."""
        tail = session.run(
            ["tail", "-c", "8192", self.log(run)], timeout=_LIMIT, check=False
        )
        return _reason(session.redact(tail.stdout)) or "no output"

    def _path(self, run: str) -> str:
        return f"{self.workdir}/runs/{run}"


def _reason(log: str) -> str:
    """Return Ansible's error message, or else the end of the log.

    The message is followed by an excerpt of the file it is about.
    """
    lines = log.splitlines()
    starts = [n for n, line in enumerate(lines) if line.startswith(_ERRORS)]
    if starts:
        lines = lines[starts[-1] : starts[-1] + 3]
    return last_lines("\n".join(lines), chars=600)


@cache
def _script(name: str) -> str:
    """A script with the functions that it shares with others."""
    return _file("leader.sh") + _file(name)


def _file(name: str) -> str:
    folder = resources.files("tacker_k8s_mgmt.remote.ansible") / "run_files"
    return (folder / name).read_text(encoding="utf-8")
