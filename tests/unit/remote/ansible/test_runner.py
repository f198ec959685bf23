# SPDX-License-Identifier: Apache-2.0
"""Detached runs, with real bash and flock and a stand-in for ansible-playbook.

The stand-in runs the playbook, which here is a bash script that each test writes.
"""

import contextlib
import dataclasses
import fcntl
import json
import os
import shlex
import shutil
import signal
import stat
import threading
import time
from pathlib import Path

import pytest

from tacker_k8s_mgmt import errors
from tacker_k8s_mgmt.model import playbooks
from tacker_k8s_mgmt.model.playbooks import (
    DEFAULT_FORKS,
    Forks,
    PlaybookRequest,
    RunRecord,
)
from tacker_k8s_mgmt.remote.ansible import playbook_runner
from tests.helpers import ssh_keys
from tests.helpers.kubeapi import wait_for
from tests.helpers.sshd import PASSWORD, is_alive

FAKE_ANSIBLE = """
printf '%s\\0' "$PWD" "$@" >"$HOME/argv"
env >"$HOME/env"
echo started >>"$HOME/starts"
event() {
    read -r up _ </proc/uptime
    (umask 077; printf '%s, "up": %s}\\n' "${1%\\}}" "$up" >>"$K8S_MGMT_EVENTS")
}
wait_for() { until [ -e "$HOME/$1" ]; do sleep 0.02; done; }
. "./${!#}"
"""
PLAY = """
event '{"event": "playbook", "plays": 2, "time": 1}'
event '{"event": "play", "name": "Prepare", "time": 2}'
event '{"event": "task", "name": "kubeadm : Join", "time": 3}'
"""


@pytest.fixture
def site(sshd, tmp_path, log_in):
    place = Site(sshd, tmp_path, log_in)
    yield place
    for pid in marked(str(tmp_path)):
        os.kill(pid, signal.SIGKILL)
    for sockets in place.workdir.glob("runs/*/control"):
        shutil.rmtree(sockets.read_text().strip())


class Site:
    """A kubespray checkout and a cluster's directory, and runners for it."""

    def __init__(self, sshd, path, log_in):
        self.sshd = sshd
        self.log_in = log_in
        self.root = path / "kube spray"
        self.workdir = path / "clusters" / "a b"
        self.root.mkdir()
        self.workdir.mkdir(parents=True)
        (self.workdir / "hosts.yaml").write_text("all: {}\n")
        (self.workdir / "vars.json").write_text("{}")
        (self.root / "ansible.cfg").touch()
        self.program = sshd.program("ansible-playbook", FAKE_ANSIBLE)
        self.playbook("exit 0")

    def playbook(self, script, name="cluster.yml"):
        (self.root / name).write_text(script)

    def runner(self, connect=None, workdir=None, venv=None, forks=DEFAULT_FORKS):
        connect = connect or (lambda: self.log_in())
        directory = str(workdir or self.workdir)
        return playbook_runner.PlaybookRunner(
            kept(connect), directory, str(self.root), venv, forks
        )

    def run(self, request=None, runner=None, **options):
        request = request or PlaybookRequest("cluster.yml")
        options = {"total": 20, "idle": 20, "poll": 0.05} | options
        return (runner or self.runner()).run(request, **options)

    def failure(self):
        with pytest.raises(errors.PlaybookFailed) as caught:
            self.run()
        return caught.value

    def starts(self):
        with contextlib.suppress(FileNotFoundError):
            return len((self.sshd.home / "starts").read_text().splitlines())
        return 0

    def touch(self, name):
        (self.sshd.home / name).touch()

    def background(self, *args, **kwargs):
        """Run in a thread; return a function that waits for the outcome."""
        outcome = []

        def work():
            try:
                outcome.append(self.run(*args, **kwargs))
            except Exception as error:
                outcome.append(error)

        thread = threading.Thread(target=work, daemon=True)
        thread.start()

        def join():
            thread.join(60)
            return outcome[0]

        return join

    def started(self, script, **options):
        """Run a script in the background, which has begun."""
        self.playbook(script)
        join = self.background(**options)
        wait_for(self.starts)
        return join

    def watched(self, **options):
        """Run in the background up to the first event; and the events."""
        seen = []
        join = self.background(on_progress=seen.append, **options)
        wait_for(lambda: seen)
        return join, seen

    def reconnected(self):
        """Drop all sessions, and wait for the next login."""
        logins = self.sshd.logins
        self.sshd.drop()
        wait_for(lambda: self.sshd.logins > logins)

    def run_dirs(self):
        return sorted((self.workdir / "runs").iterdir())

    def kill(self, kill=os.killpg):
        """Kill the only run, or with `os.kill` its wrapper alone."""
        (run,) = self.run_dirs()
        kill(int((run / "pid").read_text().split()[0]), signal.SIGKILL)
        return run

    def earlier_runs(self, year):
        for number in range(12):
            run = f"{year}0101T0000000{number:02}Z-cluster-00000000"
            (self.workdir / "runs" / run).mkdir(parents=True)
            (self.workdir / "runs" / run / "rc").write_text("0 1\n")


def kept(connect):
    """One session as long as it lives, as the site of an operation has it."""
    opened = []

    def session():
        if not opened or not opened[-1].alive:
            opened.append(connect())
        return opened[-1]

    return session


def marked(path):
    """Return the processes of the runs below a path."""
    found = []
    for environ in Path("/proc").glob("[0-9]*/environ"):
        with contextlib.suppress(OSError):
            if f"K8S_MGMT_RUN={path}".encode() in environ.read_bytes():
                found.append(int(environ.parent.name))
    return found


# --- a run ---------------------------------------------------------------------------


def test_run_to_the_end_is_recorded(site):
    site.playbook(PLAY)
    seen = []
    before = time.time()
    record = site.run(on_progress=seen.append)
    assert (record.rc, record.live) == (0, False)
    assert before - 1 < record.started <= record.ended < time.time() + 1
    assert seen[-1].where() == 'play 1/2 "Prepare", task 1 "kubeadm : Join"'
    assert site.runner().last() == record
    assert record.digest == PlaybookRequest("cluster.yml").digest


def test_ansible_gets_its_own_world(site):
    request = PlaybookRequest("cluster.yml", {"node": "w 1"}, "w1,it's")
    record = site.run(request)
    cwd, *argv = (site.sshd.home / "argv").read_text().split("\0")[:-1]
    run = site.workdir / "runs" / record.run
    assert cwd == str(site.root)
    assert argv == [
        *("-i", f"{site.workdir}/hosts.yaml", "--become-user=root"),
        *("-e", f"@{site.workdir}/vars.json", "-e", f"@{run}/vars.json"),
        *("--limit", "w1,it's", "cluster.yml"),
    ]
    assert json.loads((run / "vars.json").read_text()) == {"node": "w 1"}
    lines = (site.sshd.home / "env").read_text().splitlines()
    env = dict(line.split("=", 1) for line in lines if "=" in line)
    assert env["ANSIBLE_CONFIG"] == f"{site.root}/ansible.cfg"
    assert env["ANSIBLE_CACHE_PLUGIN_CONNECTION"] == f"{site.workdir}/facts"
    assert env["ANSIBLE_LOCAL_TEMP"] == f"{run}/tmp"
    assert env["ANSIBLE_CALLBACK_PLUGINS"].startswith(f"{run}/plugins:")
    options = shlex.split(env["ANSIBLE_SSH_ARGS"])
    assert f'UserKnownHostsFile="{site.workdir}/known_hosts"' in options
    assert "StrictHostKeyChecking=yes" in options
    assert "GlobalKnownHostsFile=/dev/null" in options
    assert "ServerAliveInterval=10" in options
    # ssh adds a hash of 40 characters and a suffix of 17; sun_path ends at 108.
    assert len(env["ANSIBLE_SSH_CONTROL_PATH_DIR"]) < 45
    assert not os.path.exists(env["ANSIBLE_SSH_CONTROL_PATH_DIR"])


def test_virtual_environment_comes_first_in_the_path(site, tmp_path):
    venv = tmp_path / "venv"
    (venv / "bin").mkdir(parents=True)
    site.program.rename(venv / "bin" / "ansible-playbook")
    site.playbook('[ "$VIRTUAL_ENV" = "${PATH%%/bin:*}" ]')
    assert site.run(runner=site.runner(venv=str(venv))).rc == 0


def test_links_that_are_led_elsewhere_meanwhile_do_no_harm(site, tmp_path):
    checkout, other, venv = (tmp_path / name for name in ("v1", "v2", "venv-v1"))
    (venv / "bin").mkdir(parents=True)
    (venv / "bin" / "tool").write_text("#!/bin/bash\n")
    (venv / "bin" / "tool").chmod(0o755)
    site.playbook("exit 0", name="later")
    site.root.rename(checkout)
    other.mkdir()
    links = {site.root: checkout, tmp_path / "venv": venv}
    for link, target in links.items():
        link.symlink_to(target)
    runner = site.runner(venv=str(tmp_path / "venv"))
    script = 'wait_for go\ntool && . "${ANSIBLE_CONFIG%/*}/later"'
    join = site.started(script, runner=runner)
    for link in links:
        link.unlink()
        link.symlink_to(other)
    site.touch("go")
    assert join().rc == 0


class TestForks:
    """How many hosts Ansible works on at the same time."""

    @pytest.fixture
    def forks(self, site):
        def run(forks=DEFAULT_FORKS):
            site.playbook('echo "${ANSIBLE_FORKS-unset}" >"$HOME/forks"')
            site.run(runner=site.runner(forks=forks))
            return (site.sshd.home / "forks").read_text().strip()

        return run

    @pytest.mark.parametrize(
        ("cores", "mebibytes", "most", "expected"),
        [
            (1, 4000, 100, "10"),
            (8, 16000, 100, "80"),
            (64, 500_000, 100, "100"),
            (8, 2350, 100, "23"),
            (8, 100, 100, "5"),
            (8, 16000, 8, "8"),
            ("", "", 100, "5"),
        ],
    )
    def test_cores_and_memory_decide(
        self, site, forks, cores, mebibytes, most, expected
    ):
        site.sshd.program("nproc", f"echo {cores}")
        memory = f"*/proc/meminfo*) echo {mebibytes}; exit ;;"
        site.sshd.program("awk", f'case $* in {memory} esac; exec /usr/bin/awk "$@"')
        assert forks(Forks(most=most)) == expected

    def test_memory_is_read_as_the_kernel_writes_it(self, site, forks):
        site.sshd.program("nproc", "echo 1000")
        said = Path("/proc/meminfo").read_text().split("MemAvailable:")[1].split()[0]
        assert forks(Forks(most=5000)) in _about(int(said) // 1024 // 100)

    @pytest.mark.parametrize("line", ["forks = 7", "forks=7", "FORKS : 7"])
    def test_forks_of_the_checkout_stay(self, site, forks, line):
        (site.root / "ansible.cfg").write_text(f"[defaults]\n{line}\n")
        assert forks() == "unset"

    @pytest.mark.parametrize("line", ["#forks = 7", "other_forks = 7"])
    def test_other_lines_of_the_checkout_do_not_count(self, site, forks, line):
        (site.root / "ansible.cfg").write_text(f"[defaults]\n{line}\n")
        assert int(forks()) >= 5

    def test_forks_of_the_user_stay_where_the_checkout_has_no_configuration(
        self, site, forks
    ):
        (site.root / "ansible.cfg").unlink()
        (site.sshd.home / ".ansible.cfg").write_text("[defaults]\nforks = 7\n")
        assert forks() == "unset"

    def test_forks_of_the_login_stay(self, site, forks):
        site.sshd.variables = {"ANSIBLE_FORKS": "9"}
        assert forks() == "9"

    def test_the_request_beats_them_all(self, site, forks):
        (site.root / "ansible.cfg").write_text("[defaults]\nforks = 7\n")
        site.sshd.variables = {"ANSIBLE_FORKS": "9"}
        assert forks(Forks(wanted=50)) == "50"

    def test_other_forks_are_no_other_run(self, site):
        join = site.started("wait_for go")
        again = site.background(runner=site.runner(forks=Forks(wanted=50)))
        time.sleep(0.5)
        site.touch("go")
        assert again().run == join().run
        assert site.starts() == 1


class TestConnections:
    """What Ansible's ssh keeps open between tasks, with the real ssh."""

    CONNECT = """
    ssh_to() { eval "ssh $ANSIBLE_SSH_ARGS $*"; }
    ssh_to -i '"$HOME/key"' -S '"$ANSIBLE_SSH_CONTROL_PATH_DIR/a node"' \\
        -l ansible -p PORT 127.0.0.1 true
    ssh_to -S '"$ANSIBLE_SSH_CONTROL_PATH_DIR/a node"' -O check host 2>"$HOME/master"
    """

    @pytest.fixture(autouse=True)
    def node(self, site):
        pair = ssh_keys.make("ed25519")
        site.sshd.authorized.add(pair.public)
        key = site.sshd.home / "key"
        key.write_text(pair.private)
        key.chmod(0o600)
        known = f"{site.sshd.key.get_name()} {site.sshd.key.get_base64()}"
        line = f"[127.0.0.1]:{site.sshd.port} {known}\n"
        (site.workdir / "known_hosts").write_text(line)
        self.connect = self.CONNECT.replace("PORT", str(site.sshd.port))

    def connected(self, site):
        """A run that keeps a connection, and does not end."""
        site.playbook(f"{self.connect} wait_for never")
        join = site.background()
        said = site.sshd.home / "master"
        wait_for(lambda: said.exists() and "pid=" in said.read_text())
        return join

    def master(self, site):
        said = (site.sshd.home / "master").read_text()
        return int(said.split("pid=")[1].split(")")[0])

    def test_they_end_with_the_run(self, site):
        site.playbook(f"{self.connect} kill -0 $(tr -dc 0-9 <$HOME/master)")
        site.run()
        assert not is_alive(self.master(site))

    def test_they_end_with_a_run_that_is_ended(self, site, monkeypatch):
        monkeypatch.setattr(playbook_runner, "_STOP_GRACE", 1)
        join = self.connected(site)
        site.kill(os.kill)
        assert site.runner().stop() is True
        join()
        wait_for(lambda: not is_alive(self.master(site)))

    def test_the_next_run_ends_those_of_a_killed_one(self, site):
        join = self.connected(site)
        site.kill()
        assert isinstance(join(), errors.PlaybookLost)
        assert is_alive(self.master(site))
        site.playbook("exit 0")
        site.run()
        wait_for(lambda: not is_alive(self.master(site)))

    @pytest.mark.parametrize(
        ("config", "variables", "expected"),
        [
            ("", {}, "True"),
            ("[ssh_connection]\npipelining = False\n", {}, "unset"),
            ("[connection]\npipelining=no\n", {}, "unset"),
            ("", {"ANSIBLE_SSH_PIPELINING": "False"}, "unset"),
        ],
    )
    def test_pipelining_is_on_unless_the_operator_has_set_it(
        self, site, config, variables, expected
    ):
        (site.root / "ansible.cfg").write_text(config)
        site.sshd.variables = variables
        site.playbook('echo "${ANSIBLE_PIPELINING-unset}" >"$HOME/pipelining"')
        site.run()
        said = (site.sshd.home / "pipelining").read_text().strip()
        assert said == expected


def _about(number):
    """Other processes take and give memory meanwhile."""
    return [str(near) for near in range(number - 20, number + 20)]


def test_nothing_in_a_run_directory_is_for_others(site):
    site.playbook("echo output; event '{}'")
    site.run()
    (run,) = site.run_dirs()
    modes = {
        path.relative_to(site.workdir): stat.S_IMODE(path.stat().st_mode)
        for path in (run.parent, run, *run.rglob("*"))
    }
    assert {path.name for path in modes} >= {"log", "events.jsonl", "rc", "vars.json"}
    assert {path: mode for path, mode in modes.items() if mode & 0o077} == {}


def test_a_killed_ansible_leaves_no_core_dump(site):
    site.playbook("[ $(ulimit -Sc) = 0 ] || exit 1")
    # As where an operator has allowed them.
    site.sshd.program("setsid", 'ulimit -Sc "$(ulimit -Hc)"\nexec /usr/bin/setsid "$@"')
    assert site.run().rc == 0


def test_ansible_keeps_the_operators_umask(site):
    site.playbook("umask >$HOME/umask")
    site.run()
    mask = os.umask(0)
    os.umask(mask)
    assert int((site.sshd.home / "umask").read_text(), 8) == mask


def test_locale_of_the_server_does_not_matter(site, decimal_comma):
    site.sshd.variables = decimal_comma
    site.playbook(PLAY + '[ "$LC_ALL" = C.UTF-8 ] && wait_for go')
    join, _ = site.watched()
    assert site.runner().last().live
    site.touch("go")
    record = join()
    assert record.rc == 0
    assert record.started <= record.ended < time.time() + 1


def test_run_is_ended_whatever_the_locale_of_the_server(site, decimal_comma):
    site.sshd.variables = decimal_comma
    join = site.started("wait_for never")
    assert site.runner().stop() is True
    assert isinstance(join(), errors.PlaybookFailed)


def test_answer_that_cannot_be_read_is_shown(site):
    site.sshd.program("date", f"echo '\"now\"'; echo 'for {PASSWORD}' >&2")
    with pytest.raises(errors.RemoteError, match='"stamp":""now""') as caught:
        site.runner().last()
    assert str(site.workdir) in str(caught.value)
    assert str(caught.value).endswith("for ***")


def test_secret_variables_are_in_no_command(site):
    site.run(PlaybookRequest("cluster.yml", {"registry_password": "r3gistry"}))
    assert len(site.sshd.commands) > 3
    assert not [line for line in site.sshd.commands if "r3gistry" in line]
    assert "r3gistry" not in (site.sshd.home / "argv").read_text()


def test_standard_input_is_empty(site):
    site.playbook('read -r answer; [ -z "$answer" ]')
    assert site.run().rc == 0


def test_only_the_last_runs_are_kept(site):
    site.earlier_runs(2020)
    record = site.run()
    names = [path.name for path in site.run_dirs()]
    assert len(names) == 10
    assert names[-1] == record.run
    assert names[0].startswith("20200101T000000003Z")


# --- failures ------------------------------------------------------------------------


def test_run_keeps_its_own_directory_after_the_clock_was_set_back(site):
    site.earlier_runs(2099)
    record = site.run()
    run = site.workdir / "runs" / record.run
    assert {"log", "rc", "vars.json"} <= {path.name for path in run.iterdir()}


def failed(host, message="it broke", event="failed", **fields):
    fields |= {"event": event, "host": host, "task": "etcd : Start", "time": 5}
    return f"event {shlex.quote(json.dumps(fields | {'message': message}))}\n"


def recap(**hosts):
    counts = {host: {"failed": n, "unreachable": 0} for host, n in hosts.items()}
    return f"event {shlex.quote(json.dumps({'event': 'recap', 'hosts': counts}))}\n"


def test_failure_names_host_task_and_message_without_secrets(site):
    message = f"login with {PASSWORD}\n  failed"
    site.playbook(failed("w2", message) + recap(w1=0, w2=1) + "exit 2")
    error = site.failure()
    assert error.problems == ("w2: etcd : Start: login with *** failed",)
    assert error.tasks == (
        {"host": "w2", "task": "etcd : Start", "message": "login with *** failed"},
    )
    assert error.fields["rc"] == 2
    assert f"{site.workdir}/runs/" in str(error)


def test_exit_code_0_is_success_whatever_the_text_says(site):
    site.playbook(failed("w2") + recap(w2=1) + "echo 'fatal: [w2]: FAILED! failed=1'")
    assert site.run().rc == 0


def test_exit_code_other_than_0_is_failure_whatever_the_text_says(site):
    site.playbook(recap(w1=0) + "echo 'w1 : ok=5 failed=0'; exit 4")
    assert "failed=0" in str(site.failure())


def test_failure_before_any_task_shows_the_end_of_the_log(site):
    site.playbook(f"echo 'ERROR! the role {PASSWORD} was not found' >&2; exit 1")
    assert site.failure().problems == ("ERROR! the role *** was not found",)


@pytest.mark.parametrize(
    ("missing", "reason"),
    [("program", "not found"), ("root", "No such file or directory")],
)
def test_missing_installation_is_a_failure_with_its_reason(site, missing, reason):
    place = getattr(site, missing)
    place.rename(place.with_name("gone"))
    site.sshd.environment = lambda: {
        "HOME": str(site.sshd.home),
        "PATH": f"{site.sshd.bin}:/usr/bin:/bin",
    }
    assert reason in str(site.failure())


def test_killed_ansible_is_reported_with_its_signal(site):
    site.playbook(failed("w2", "rescued later") + "kill -9 $$")
    killed = "ERROR! ansible-playbook was killed: KILL"
    assert site.failure().problems == (killed,)


def test_more_failures_than_can_be_read_are_counted(site):
    hosts = {f"w{n}": 1 for n in range(1, 7)}
    site.playbook("".join(map(failed, hosts)) + recap(**hosts) + "exit 2")
    assert site.failure().problems[2:] == (
        "w3: etcd : Start: it broke",
        "3 more: w4, w5, w6",
    )


def test_many_events_are_read_in_bounded_parts(site, monkeypatch):
    monkeypatch.setattr(playbook_runner, "_CHUNK", 10_000)
    seen, sizes = [], []
    real = playbook_runner.RunDirectories.look

    def look(*args, **kwargs):
        view = real(*args, **kwargs)
        sizes.append(view.consumed)
        return view

    monkeypatch.setattr(playbook_runner.RunDirectories, "look", look)
    event = json.dumps({"event": "task", "name": "kubernetes/node : Copy", "time": 5})
    many = f"yes {shlex.quote(event)} | head -n 2000"
    site.playbook(f'{PLAY}{many} >>"$K8S_MGMT_EVENTS"')
    site.run(on_progress=seen.append)
    assert seen[-1].tasks == 2001
    assert max(sizes) <= 10_000


class TestKindOfRun:
    """What estimates of later runs go by."""

    @pytest.fixture
    def kind(self, site):
        def run(galaxy, limit=""):
            (site.root / "galaxy.yml").write_text(galaxy)
            names = "${K8S_MGMT_KIND-unset} ${K8S_MGMT_HISTORY-unset}"
            site.playbook(f'echo "{names}" >"$HOME/kind"')
            site.run(PlaybookRequest("cluster.yml", limit=limit))
            return (site.sshd.home / "kind").read_text().strip()

        return run

    @pytest.mark.parametrize(
        "version", ["version: 2.31.0", 'version: "v2.31.0"', "version:  2.31.0 # it"]
    )
    def test_has_playbook_and_release(self, site, kind, version):
        path = f"{site.sshd.home}/.cache/tacker-k8s-mgmt/durations.jsonl"
        said = kind(f"name: kubespray\n{version}\n")
        assert said == f"cluster.yml, kubespray 2.31.0 {path}"

    def test_tells_limited_runs_from_others(self, kind):
        said = kind("version: 2.31.0", "w1")
        assert said.startswith("cluster.yml, kubespray 2.31.0, limited /")

    def test_is_where_the_login_has_its_cache(self, site, kind):
        site.sshd.variables = {"XDG_CACHE_HOME": "/var/cache/of mine"}
        path = "/var/cache/of mine/tacker-k8s-mgmt/durations.jsonl"
        assert kind("version: 2.31.0").endswith(path)

    @pytest.mark.parametrize("galaxy", ["", "name: kubespray", "version: main"])
    def test_is_none_without_a_release(self, kind, galaxy):
        assert kind(galaxy) == "unset unset"


# --- it outlives the connection ------------------------------------------------------


def test_dropped_sessions_do_not_matter(site):
    site.playbook(PLAY + 'wait_for go; event \'{"event": "task", "name": "Last"}\'')
    join, seen = site.watched()
    for _ in range(3):
        site.reconnected()
    site.touch("go")
    assert join().rc == 0
    assert site.starts() == 1
    # Every event was counted once.
    assert (seen[-1].tasks, seen[-1].task) == (2, "Last")


def test_restarted_conductor_attaches_to_its_run(site):
    site.playbook(PLAY + "wait_for go")

    def die(progress):
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        site.run(on_progress=die)
    live = site.runner().last()
    assert (live.live, live.rc) == (True, None)
    join, seen = site.watched()
    site.touch("go")
    record = join()
    assert (record.run, record.rc, site.starts()) == (live.run, 0, 1)
    assert seen[-1].task == "kubeadm : Join"


@pytest.mark.parametrize(
    ("fault", "expected"),
    [
        pytest.param("refuse_connections", errors.ConnectError, id="no-contact"),
        pytest.param("refuse_logins", errors.AuthError, id="password-changed"),
    ],
)
def test_lost_contact_is_reported_and_the_run_goes_on(site, fault, expected):
    site.playbook(PLAY + "wait_for go")
    runner = site.runner(connect=lambda: site.log_in(deadline=0.2))
    join, _ = site.watched(idle=1, runner=runner)
    setattr(site.sshd, fault, 10_000)
    site.sshd.drop()
    outcome = join()
    assert isinstance(outcome, expected)
    setattr(site.sshd, fault, 0)
    live = site.runner().last()
    assert live.live
    assert f"run {live.run} continues by itself." in str(outcome)
    join, _ = site.watched()
    site.touch("go")
    record = join()
    assert (record.run, record.rc, site.starts()) == (live.run, 0, 1)


def test_starting_twice_at_once_gives_one_run(site):
    site.playbook(PLAY + "sleep 0.5")
    joins = [site.background() for _ in range(3)]
    records = [join() for join in joins]
    assert [type(record) for record in records] == [RunRecord] * 3, records
    assert len({record.run for record in records}) == 1
    assert site.starts() == 1
    assert len(site.run_dirs()) == 1


def test_session_that_drops_while_starting_starts_no_second_run(site, monkeypatch):
    real = playbook_runner.RunDirectories.start
    calls = []

    def broken(self, session, request, view):
        run = real(self, session, request, view)
        calls.append(run)
        if len(calls) == 1:
            raise errors.ConnectionLost(host="b", command="start", reason="cut")
        return run

    monkeypatch.setattr(playbook_runner.RunDirectories, "start", broken)
    site.playbook("sleep 0.5")
    assert site.run().run == calls[0]
    assert site.starts() == 1


def test_another_playbook_for_the_same_cluster_is_refused_while_one_runs(site):
    site.playbook("exit 0", name="scale.yml")
    join = site.started(PLAY + "wait_for go")
    with pytest.raises(errors.BusyError, match=r"cluster\.yml \(run 2.*-cluster-"):
        site.run(PlaybookRequest("scale.yml"))
    site.touch("go")
    assert join().rc == 0
    assert site.run(PlaybookRequest("scale.yml")).playbook == "scale.yml"


def test_clusters_do_not_wait_for_each_other(site, tmp_path):
    other = tmp_path / "clusters" / "b"
    other.mkdir()
    (other / "hosts.yaml").write_text("all: {}\n")
    (other / "vars.json").write_text("{}")
    join = site.started("wait_for go")
    site.playbook("exit 0", name="scale.yml")
    request = PlaybookRequest("scale.yml")
    assert site.run(request, runner=site.runner(workdir=other)).rc == 0
    site.touch("go")
    assert join().rc == 0


# --- limits --------------------------------------------------------------------------

BUSY_FAMILY = """
setsid bash -c 'trap "" TERM; sleep 100' &
sleep 100 &
echo $$ $! >"$HOME/pids"
"""


@pytest.mark.parametrize(
    ("limits", "script", "reason"),
    [
        ({"idle": 0.8}, "sleep 100", "reported nothing for more than 0.8 s"),
        (
            {"total": 0.8},
            "while sleep 0.1; do event '{}'; done",
            "ran longer than 0.8 s",
        ),
    ],
    ids=["idle", "total"],
)
def test_limit_ends_every_process_of_the_run(site, limits, script, reason, monkeypatch):
    monkeypatch.setattr(playbook_runner, "_STOP_GRACE", 1)
    site.playbook(PLAY + BUSY_FAMILY + script)
    with pytest.raises(errors.PlaybookTimeout) as caught:
        site.run(**limits)
    assert reason in str(caught.value)
    assert 'task 1 "kubeadm : Join"' in str(caught.value)
    pids = (site.sshd.home / "pids").read_text().split()
    assert [pid for pid in pids if is_alive(pid)] == []
    assert marked(site.workdir) == []
    record = site.runner().last()
    assert (record.live, record.rc is not None and record.rc != 0) == (False, True)


def test_unwatched_run_over_its_limit_makes_room(site):
    site.playbook("wait_for never", name="old.yml")
    join = site.background(PlaybookRequest("old.yml"))
    wait_for(site.starts)
    time.sleep(2.1)
    assert site.run(total=2, idle=2).rc == 0
    assert isinstance(join(), errors.PlaybookFailed)


class TestClock:
    """The Ansible server's clock is set while a run works."""

    @pytest.fixture(params=[3600, -3600], ids=["forward", "back"])
    def step(self, site, request):
        """Set the clock, for all that asks `date`."""

        def by(seconds=request.param):
            real = shutil.which("date")
            moved = f'"@$(( $({real} +%s) + {seconds} ))"'
            site.sshd.program("date", f'exec {real} -d {moved} "$@"')

        return by

    @pytest.fixture
    def files_show(self, site):
        """Write the time of other clocks on the files of the runs."""

        def at(seconds):
            for path in site.workdir.glob("runs/*/*"):
                os.utime(path, (time.time() + seconds,) * 2)

        return at

    def test_a_healthy_run_goes_on(self, site, step):
        site.playbook(PLAY + "wait_for go\n" + PLAY)
        join, _ = site.watched(total=600, idle=300)
        step()
        assert site.runner().last().live
        time.sleep(0.2)
        site.touch("go")
        assert join().rc == 0

    @pytest.mark.parametrize("age", [-7200, 7200])
    def test_a_silent_one_is_ended_in_time(self, site, step, files_show, age):
        site.playbook(PLAY + "wait_for never")
        join, _ = site.watched(total=600, idle=2)
        step()
        files_show(age)
        assert "reported nothing" in str(join())

    @pytest.mark.parametrize("age", [-7200, 7200])
    def test_another_playbook_does_not_end_it(self, site, step, files_show, age):
        join = site.started(PLAY + "wait_for go", total=600, idle=300)
        step()
        files_show(age)
        other = PlaybookRequest("scale.yml")
        with pytest.raises(errors.BusyError):
            site.run(other, total=600, idle=300)
        site.touch("go")
        assert join().rc == 0

    @pytest.mark.parametrize("up", [-120.0, 1e9], ids=["long ago", "before the boot"])
    def test_a_run_that_never_began_makes_room(self, site, files_show, up):
        run = site.workdir / "runs" / "20990101T000000000Z-cluster-00000000"
        run.mkdir(parents=True)
        now = float(Path("/proc/uptime").read_text().split()[0])
        record = {"playbook": "cluster.yml", "limit": "", "digest": "-", "up": now + up}
        (run / "request.json").write_text(json.dumps(record))
        files_show(3600)
        assert not site.runner().last().live

    def test_it_is_ended_with_its_grace(self, site, step, monkeypatch):
        monkeypatch.setattr(playbook_runner, "_STOP_GRACE", 30)
        script = "trap 'sleep 1; exit 3' TERM\nwait_for never"
        join = site.started(script, total=600, idle=300)
        step()
        assert site.runner().stop()
        assert join().fields["rc"] == 3

    def test_the_time_of_a_task_is_not_that_of_the_clock(self):
        lines = [
            '{"event": "play", "name": "p", "time": 9000, "up": 10}',
            '{"event": "task", "name": "t", "time": 9000, "up": 10}',
            '{"event": "recap", "time": 1000, "up": 15, "hosts": {}}',
        ]
        (slowest,) = playbooks.fold(playbooks.Progress(), lines).summary.slowest
        assert slowest.seconds == 5


def test_stop_ends_the_live_run_and_only_that(site):
    assert site.runner().stop() is False
    join = site.started("wait_for never")
    assert site.runner().stop() is True
    outcome = join()
    assert isinstance(outcome, errors.PlaybookFailed)
    assert "ended on request" in str(outcome)
    assert site.runner().stop() is False


def test_killed_run_is_lost_and_can_be_started_again(site):
    join = site.started("wait_for never")
    run = site.kill()
    assert isinstance(join(), errors.PlaybookLost)
    last = site.runner().last()
    assert (last.rc, last.live) == (None, False)
    sockets = Path((run / "control").read_text().strip())
    assert sockets.is_dir()
    site.playbook("exit 0")
    assert site.run().rc == 0
    assert not sockets.exists()


def test_who_looks_is_not_taken_for_a_run(site):
    join = site.started("wait_for never")
    site.kill()
    join()
    with (site.workdir / "run.lock").open() as lock:
        fcntl.flock(lock, fcntl.LOCK_SH)
        assert not site.runner().last().live


def test_run_counts_as_live_while_ansible_lives(site):
    """Even if its wrapper was killed: a second one must not start beside it."""
    join = site.started("wait_for go")
    site.kill(os.kill)
    time.sleep(0.2)
    assert site.runner().last().live
    site.touch("go")
    assert isinstance(join(), errors.PlaybookLost)


class TestDeletedLock:
    """The file ``run.lock`` is deleted while a run holds its lock."""

    @pytest.fixture
    def join(self, site):
        join = site.started("wait_for go")
        (site.workdir / "run.lock").unlink()
        return join

    def test_the_run_is_followed_to_its_end(self, site, join):
        assert site.runner().last().live
        site.touch("go")
        assert join().rc == 0

    def test_the_same_request_attaches_to_it(self, site, join):
        again = site.background()
        time.sleep(0.5)
        site.touch("go")
        assert again().run == join().run
        assert site.starts() == 1

    def test_another_one_is_refused(self, site, join):
        with pytest.raises(errors.BusyError):
            site.run(PlaybookRequest("scale.yml"))
        site.touch("go")
        assert join().rc == 0

    def test_no_second_one_starts_that_was_decided_on_before(self, site, join):
        """The scripts themselves refuse it, whatever their caller has seen."""
        dirs = playbook_runner.RunDirectories(str(site.workdir), str(site.root))
        session = site.log_in()
        view = dirs.look(session)
        unseen = dataclasses.replace(view, latest="")
        second = dirs.start(session, PlaybookRequest("scale.yml"), unseen)
        wait_for(lambda: dirs.look(session, second).state == "absent")
        site.touch("go")
        assert join().rc == 0
        assert site.starts() == 1

    def test_it_can_be_ended(self, site, join):
        assert site.runner().stop() is True
        assert isinstance(join(), errors.PlaybookFailed)

    def test_a_killed_one_is_lost(self, site, join):
        site.kill()
        assert isinstance(join(), errors.PlaybookLost)


def test_server_where_no_run_gets_the_lock_is_an_error(site, monkeypatch):
    monkeypatch.setattr(playbook_runner, "START_LIMIT", 2.0)
    site.sshd.program("flock", "exit 127")
    with pytest.raises(errors.RemoteError, match="flock"):
        site.run()
    assert site.starts() == 0


def test_wrong_password_is_not_waited_out(site):
    def refused():
        return site.log_in(endpoint=site.sshd.endpoint(password="wrong"))

    with pytest.raises(errors.AuthError):
        site.run(runner=site.runner(connect=refused))


@pytest.fixture
def opened():
    """The sessions that ``runner`` has opened."""
    return []


@pytest.fixture
def runner(site, opened):
    def connect():
        opened.append(site.log_in())
        return opened[-1]

    return site.runner(connect=connect)


def test_one_login_serves_all_and_stays_for_others(site, runner, opened):
    record = site.run(runner=runner)
    assert runner.last() == record
    assert runner.stop() is False
    assert [session.alive for session in opened] == [True]
    assert site.sshd.logins == 1


def test_session_that_does_not_answer_is_closed_and_replaced(site, runner, opened):
    assert runner.last() is None
    site.sshd.drop()
    assert runner.last() is None
    assert [session.alive for session in opened] == [False, True]


def test_end_of_a_run_is_seen_at_once_whatever_the_pause_between_looks(site):
    """Were the end not waited for, the test would not end within its patience."""
    join = site.started(PLAY + "wait_for go", total=3600, idle=3600, poll=600)
    site.touch("go")
    assert join().rc == 0
