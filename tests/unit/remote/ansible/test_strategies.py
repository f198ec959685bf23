# SPDX-License-Identifier: Apache-2.0
"""Which strategy a run gets, what is said of it, and when the run is repeated without.

A stand-in for ansible-playbook is a script of a Python environment that has what the
tests say of ansible-core and mitogen.
"""

import json
import shutil
import venv
from pathlib import Path

import pytest

from tacker_k8s_mgmt import errors
from tacker_k8s_mgmt.kubespray import strategies
from tacker_k8s_mgmt.model.playbooks import Means, PlaybookRequest
from tacker_k8s_mgmt.remote.ansible import playbook_runner
from tacker_k8s_mgmt.remote.ansible.playbook_runner import PlaybookRunner

VARIABLES = ("ANSIBLE_STRATEGY", "ANSIBLE_STRATEGY_PLUGINS", "K8S_MGMT_MITOGEN")
PINNED = max(strategies.MITOGEN)
OURS = "strategy k8s_linear"
#: Does what the next line of the file `outcomes` says: prints a text, and exits.
PROGRAM = """#!{python}
import json, os, sys, time
from pathlib import Path
home = Path({home!r})
up = float(Path("/proc/uptime").read_text().split()[0])
found = {{name: os.environ.get(name) for name in {variables}}}
with (home / "runs").open("a") as file:
    file.write(json.dumps(found) + "\\n")
number = len((home / "runs").read_text().splitlines())
code, text, *events = json.loads((home / "outcomes").read_text())[number - 1]
with open(os.environ["K8S_MGMT_EVENTS"], "a") as file:
    for event in [{{"event": "playbook", "plays": 1}}, *events]:
        file.write(json.dumps({{"time": 1.0, "up": up, **event}}) + "\\n")
print(text)
while (home / "hold").exists():
    time.sleep(0.05)
sys.exit(code)
"""


@pytest.fixture(scope="module")
def environment(tmp_path_factory):
    path = tmp_path_factory.mktemp("python") / "venv"
    venv.create(path, with_pip=False)
    return path


class Site:
    """A checkout, a cluster's directory, and a server with this Python environment."""

    def __init__(self, directory: Path, environment: Path, sshd, log_in):
        self.root, self.workdir = directory / "kubespray", directory / "cluster"
        self.home, self._log_in = sshd.home, log_in
        for place in (self.root, self.workdir):
            place.mkdir()
        (self.root / "ansible.cfg").touch()
        (self.workdir / "hosts.yaml").write_text("all: {}\n")
        (self.workdir / "vars.json").write_text("{}")
        self.venv = directory / "venv"
        shutil.copytree(environment, self.venv, symlinks=True)
        (self.packages,) = self.venv.glob("lib/python3*/site-packages")
        python = self.venv / "bin" / "python"
        text = PROGRAM.format(python=python, home=str(self.home), variables=VARIABLES)
        program = self.venv / "bin" / "ansible-playbook"
        program.write_text(text)
        program.chmod(0o755)
        self.ends([0, ""])

    def has(self, **versions: str):
        """Put packages with these versions into the environment."""
        modules = {"ansible_core": "ansible", "mitogen": "ansible_mitogen"}
        for name, version in versions.items():
            (self.packages / modules[name]).mkdir()
            (self.packages / modules[name] / "__init__.py").touch()
            information = self.packages / f"{name}-{version}.dist-info"
            information.mkdir()
            metadata = f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n"
            (information / "METADATA").write_text(metadata)

    def ends(self, *outcomes):
        """Say how each run ends: exit code, output, events."""
        (self.home / "outcomes").write_text(json.dumps(outcomes))

    def runner(self, strategy: str = "auto"):
        return PlaybookRunner(
            self._log_in,
            str(self.workdir),
            str(self.root),
            str(self.venv),
            means=Means(strategy),
        )

    def run(self, strategy: str = "auto", seen=None):
        """Run a playbook; returns the variables of each Ansible, and the notes."""
        seen = [] if seen is None else seen
        try:
            self.runner(strategy).run(
                PlaybookRequest("cluster.yml"),
                total=30,
                idle=30,
                poll=0.05,
                on_progress=seen.append,
            )
        finally:
            self.runs = [
                json.loads(line)
                for line in (self.home / "runs").read_text().splitlines()
            ]
        return self.runs, (seen[-1].notes if seen else ())


@pytest.fixture
def site(tmp_path, environment, sshd, log_in):
    return Site(tmp_path, environment, sshd, log_in)


# --- the choice -----------------------------------------------------------------------


@pytest.mark.parametrize("core", strategies.CORES)
def test_known_ansible_gets_our_strategy(site, core):
    site.has(ansible_core=f"{core[0]}.{core[1]}.7")
    (run,), notes = site.run()
    assert run["ANSIBLE_STRATEGY"] == "k8s_linear"
    assert run["K8S_MGMT_MITOGEN"] is None
    plugin = Path(run["ANSIBLE_STRATEGY_PLUGINS"]) / "k8s_linear.py"
    assert plugin.is_relative_to(site.workdir / "runs")
    assert notes == (OURS,)


@pytest.mark.parametrize("version", ["2.14.18", "2.19.0", "2.20.1", "2.1.5"])
@pytest.mark.parametrize("strategy", ["auto", "k8s_linear", "mitogen_linear"])
def test_other_ansible_has_its_own(site, version, strategy):
    site.has(ansible_core=version, mitogen=PINNED)
    (run,), (note,) = site.run(strategy)
    assert run["ANSIBLE_STRATEGY"] == "linear"
    assert run["K8S_MGMT_MITOGEN"] is None
    assert (
        note == f"strategy linear: k8s_linear is not tested with ansible-core {version}"
    )


def test_unknown_ansible_has_its_own(site):
    (run,), (note,) = site.run()
    assert run["ANSIBLE_STRATEGY"] == "linear"
    assert note.endswith("ansible-core of this server")


def test_linear_is_linear(site):
    site.has(ansible_core="2.18.1", mitogen=PINNED)
    (site.root / "ansible.cfg").write_text("[defaults]\nstrategy = free\n")
    (run,), notes = site.run("linear")
    assert run == {**dict.fromkeys(VARIABLES), "ANSIBLE_STRATEGY": "linear"}
    assert notes == ()
    (started,) = (site.workdir / "runs").iterdir()
    assert not (started / "strategies").exists()


@pytest.mark.parametrize("line", ["strategy = free", "strategy_plugins=/opt/plugins"])
@pytest.mark.parametrize("strategy", ["auto", "k8s_linear"])
def test_only_a_strategy_by_name_beats_the_configured_one(site, line, strategy):
    site.has(ansible_core="2.18.1")
    (site.root / "ansible.cfg").write_text(f"[defaults]\n{line}\n")
    (run,), notes = site.run(strategy)
    by_name = strategy == "k8s_linear"
    assert run["ANSIBLE_STRATEGY"] == ("k8s_linear" if by_name else None)
    assert notes == ((OURS,) if by_name else ())


def test_by_default_a_run_has_what_is_configured(site):
    site.has(ansible_core="2.18.1", mitogen=PINNED)
    (run,), notes = site.run("configured")
    assert (run, notes) == (dict.fromkeys(VARIABLES), ())
    (started,) = (site.workdir / "runs").iterdir()
    assert not (started / "strategies").exists()


def test_strategy_of_the_login_stays(site, sshd):
    site.has(ansible_core="2.18.1")
    sshd.variables = {"ANSIBLE_STRATEGY": "free"}
    (run,), notes = site.run()
    assert (run["ANSIBLE_STRATEGY"], notes) == ("free", ())


@pytest.mark.parametrize("strategy", ["auto", "mitogen_linear"])
def test_mitogen_that_is_known_is_used(site, strategy):
    site.has(ansible_core="2.18.1", mitogen=PINNED)
    (run,), notes = site.run(strategy)
    assert run["ANSIBLE_STRATEGY"] == "k8s_linear"
    assert run["K8S_MGMT_MITOGEN"] == PINNED
    assert notes == (f"{OURS} with mitogen {PINNED}",)


@pytest.mark.parametrize("strategy", ["auto", "mitogen_linear"])
def test_mitogen_that_is_not_known_is_left_out(site, strategy):
    site.has(ansible_core="2.18.1", mitogen="0.3.2")
    (run,), (note,) = site.run(strategy)
    assert run["ANSIBLE_STRATEGY"] == "k8s_linear"
    assert run["K8S_MGMT_MITOGEN"] is None
    assert note == (
        f"{OURS} without mitogen: mitogen 0.3.2 is not known to work with ansible-core "
        "2.18.1"
    )


def test_mitogen_that_is_asked_for_and_missing_is_said(site):
    site.has(ansible_core="2.18.1")
    _, (note,) = site.run("mitogen_linear")
    assert note == f"{OURS} without mitogen: it is not in Ansible's Python environment"


def test_mitogen_is_not_used_if_the_request_has_k8s_linear(site):
    site.has(ansible_core="2.18.1", mitogen=PINNED)
    (run,), notes = site.run("k8s_linear")
    assert run["K8S_MGMT_MITOGEN"] is None
    assert notes == (OURS,)


# --- the repetition -------------------------------------------------------------------

REPEATED = "the strategy has failed; the run is repeated with linear"
UNEXPECTED = [250, "ERROR! Unexpected Exception, this is probably a bug: oops"]
INVALID = [1, "ERROR! Invalid play strategy specified: k8s_linear"]
FAILED = [2, "fatal: [h1]: FAILED! => no space left on device"]
UNREACHABLE = [4, "fatal: [h1]: UNREACHABLE!"]
OF_MITOGEN = [2, "fatal: [h1]: FAILED! => mitogen.core.StreamError: EOF on stream"]


@pytest.mark.parametrize("outcome", [UNEXPECTED, INVALID])
def test_run_whose_strategy_fails_is_repeated_with_linear(site, outcome):
    site.has(ansible_core="2.18.1")
    site.ends(outcome, [0, "fine"])
    (first, second), notes = site.run()
    assert first["ANSIBLE_STRATEGY"] == "k8s_linear"
    assert second["ANSIBLE_STRATEGY"] == "linear"
    assert notes == (OURS, REPEATED)


@pytest.mark.parametrize("outcome", [OF_MITOGEN, UNREACHABLE, [6, "both"]])
def test_run_that_mitogen_fails_is_repeated_without_it(site, outcome):
    site.has(ansible_core="2.18.1", mitogen=PINNED)
    site.ends(outcome, [0, "fine"])
    (first, second), notes = site.run()
    assert first["K8S_MGMT_MITOGEN"] == PINNED
    assert second["K8S_MGMT_MITOGEN"] is None
    assert second["ANSIBLE_STRATEGY"] == "linear"
    assert notes[-1] == REPEATED


@pytest.mark.parametrize(
    ("mitogen", "outcome"),
    [(True, FAILED), (False, FAILED), (False, UNREACHABLE), (True, [137, "killed"])],
)
def test_run_that_fails_otherwise_is_not_repeated(site, mitogen, outcome):
    site.has(ansible_core="2.18.1", **({"mitogen": PINNED} if mitogen else {}))
    site.ends(outcome, [0, "never"])
    with pytest.raises(errors.PlaybookFailed):
        site.run()
    assert len(site.runs) == 1


@pytest.mark.parametrize("strategy", ["linear", "auto"])
def test_run_of_another_strategy_is_not_repeated(site, strategy):
    site.has(ansible_core="2.18.1")
    (site.root / "ansible.cfg").write_text("[defaults]\nstrategy = free\n")
    site.ends(UNEXPECTED, [0, "never"])
    with pytest.raises(errors.PlaybookFailed):
        site.run(strategy)
    assert len(site.runs) == 1


def test_run_is_repeated_once(site):
    site.has(ansible_core="2.18.1")
    site.ends(UNEXPECTED, UNEXPECTED, [0, "never"])
    with pytest.raises(errors.PlaybookFailed, match="Unexpected Exception"):
        site.run()
    assert len(site.runs) == 2


def test_failures_of_the_first_run_are_not_those_of_the_second(site):
    site.has(ansible_core="2.18.1", mitogen=PINNED)

    def failed(host):
        event = {"event": "failed", "host": host, "task": "Task", "message": "why"}
        recap = {"event": "recap", "hosts": {host: {"failed": 1, "unreachable": 0}}}
        return event, recap

    site.ends([*UNREACHABLE, *failed("of-the-first")], [*FAILED, *failed("h2")])
    seen = []
    with pytest.raises(errors.PlaybookFailed) as caught:
        site.run(seen=seen)
    assert [task["host"] for task in caught.value.tasks] == ["h2"]
    assert seen[-1].notes[-1] == REPEATED


def test_run_that_is_ended_on_request_is_not_repeated(site):
    site.has(ansible_core="2.18.1")
    site.ends(UNEXPECTED, [0, "never"])
    (site.home / "hold").touch()
    stopped = []

    def stop(progress):
        if progress.plays and not stopped:
            stopped.append(site.runner().stop())

    with pytest.raises(errors.PlaybookFailed):
        site.runner().run(
            PlaybookRequest("cluster.yml"),
            total=30,
            idle=30,
            poll=0.05,
            on_progress=stop,
        )
    assert stopped == [True]
    assert len((site.home / "runs").read_text().splitlines()) == 1


@pytest.mark.skipif(
    not shutil.which("ansible-playbook"), reason="no ansible-playbook in PATH"
)
@pytest.mark.parametrize(
    "fault",
    ["raise RuntimeError('oops')", "import os; os._exit(250)", "this is no Python"],
    ids=["at work", "at start", "at import"],
)
def test_real_ansible_whose_strategy_is_broken(site, monkeypatch, log_in, fault):
    """Of a plugin that fails at work Ansible prints no more than the exception."""
    real = playbook_runner._file

    def broken(name):
        if name != "k8s_linear.py":
            return real(name)
        if "raise" not in fault:
            return fault
        return real(name).replace("began = time.monotonic()", fault)

    monkeypatch.setattr(playbook_runner, "_file", broken)
    here = {
        "ansible_connection": "local",
        "ansible_python_interpreter": "{{ ansible_playbook_python }}",
    }
    hosts = {"all": {"hosts": {"h1": here}}}
    (site.workdir / "hosts.yaml").write_text(json.dumps(hosts))
    tasks = [{"set_fact": {"a": 1}}, {"command": "echo done"}]
    play = [{"hosts": "all", "gather_facts": False, "tasks": tasks}]
    (site.root / "cluster.yml").write_text(json.dumps(play))
    directories = str(site.workdir), str(site.root)
    runner = PlaybookRunner(log_in, *directories, means=Means("auto"))
    seen = []
    record = runner.run(
        PlaybookRequest("cluster.yml"),
        total=120,
        idle=120,
        poll=0.1,
        on_progress=seen.append,
    )
    assert record.rc == 0
    assert seen[-1].notes == (OURS, REPEATED)
    assert seen[-1].recap == {"h1": {"failed": 0, "unreachable": 0}}
