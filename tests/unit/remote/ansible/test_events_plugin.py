# SPDX-License-Identifier: Apache-2.0
"""The callback plugin in a real Ansible, run as the runner runs it.

Skipped where no ansible-playbook is in PATH; ANSIBLE_PLAYBOOK may name another one.
"""

import json
import os
import shutil
import socket
from pathlib import Path

import pytest

from tacker_k8s_mgmt import errors
from tacker_k8s_mgmt.model.playbooks import PlaybookRequest
from tacker_k8s_mgmt.remote.ansible.playbook_runner import PlaybookRunner

PROGRAM = os.environ.get("ANSIBLE_PLAYBOOK") or shutil.which("ansible-playbook")

pytestmark = pytest.mark.skipif(not PROGRAM, reason="no ansible-playbook in PATH")

ANSIBLE_CFG = "[defaults]\nstdout_callback = default\nroles_path = roles\n"
GOOD = """
- name: Prepare
  hosts: nodes
  gather_facts: false
  tasks:
    - name: Works
      command: "true"
      notify: Restart
    - name: May fail
      command: "false"
      ignore_errors: true
    - name: Cannot be reached, and need not
      ping:
      ignore_unreachable: true
      vars: {ansible_connection: ssh, ansible_port: "{{ closed_port }}"}
      when: inventory_hostname == "h1"
    - block:
        - name: Is tried
          fail: {msg: rescued}
      rescue:
        - name: Is rescued
          debug: {msg: "{{ password }}"}
          no_log: true
  handlers:
    - name: Restart
      command: "true"
"""
BATCHES = """
- hosts: nodes
  gather_facts: false
  serial: 1
  tasks:
    - ping:
- hosts: h1
  gather_facts: false
  tasks:
    - ping:
"""
BAD = (
    GOOD
    + """
- name: Install
  hosts: all
  gather_facts: false
  tasks:
    - name: Reach
      ping:
    - name: Loop
      shell: "echo nothing; echo because {{ item }} >&2; exit {{ item }}"
      loop: [0, 3, 4]
      when: inventory_hostname == "h1"
    - name: Secret
      fail: {msg: "{{ password }}"}
      no_log: true
      when: inventory_hostname == "h2"
"""
)
# As in kubespray: the variable decides for every task, and only a download has one.
DOWNLOADS = """
- hosts: nodes
  gather_facts: false
  vars:
    unsafe_show_logs: "{{ download is defined }}"
  tasks:
    - name: Secret
      fail: {msg: "{{ password }}"}
      no_log: "{{ not (unsafe_show_logs | bool) }}"
      when: inventory_hostname == "h2"
    - include_tasks: download.yml
      vars:
        download: {url: "http://me:t0psecret@127.0.0.1:{{ closed_port }}/runc"}
"""
DOWNLOAD = """
- name: Download item
  get_url: {url: "{{ download.url }}", dest: /nowhere/runc}
  no_log: "{{ not (unsafe_show_logs | bool) }}"
"""
# Standard error of kubeadm 1.35 when a check before an upgrade fails.
KUBEADM = """\
W1123 16:55:45.808983   13287 upgradeconfiguration.go:42] [config] WARNING: Ignored \
configuration document with GroupVersionKind kubeadm.k8s.io/v1beta4, \
Kind=InitConfiguration
[preflight] Some fatal errors occurred:
\t[ERROR CreateJob]: Job "upgrade-health-check-1" in the namespace "kube-system" did \
not complete in 15s: no condition of type Complete
[preflight] If you know what you are doing, you can make a check non-fatal \
with `--ignore-preflight-errors=...`
error: error execution phase preflight: preflight checks failed
To see the stack trace of this error execute with --v=5 or higher
"""
UPGRADE = """
- hosts: h1
  gather_facts: false
  tasks:
    - name: Upgrade
      shell: "cat {{ playbook_dir }}/kubeadm >&2; exit 1"
"""


@pytest.fixture
def site(tmp_path, sshd):
    """A checkout and a cluster's directory: two hosts here, one that is not there."""
    root, workdir = tmp_path / "kubespray", tmp_path / "cluster"
    root.mkdir()
    workdir.mkdir()
    (root / "ansible.cfg").write_text(ANSIBLE_CFG)
    (root / "good.yml").write_text(GOOD)
    (root / "bad.yml").write_text(BAD)
    (root / "batches.yml").write_text(BATCHES)
    (root / "downloads.yml").write_text(DOWNLOADS)
    (root / "download.yml").write_text(DOWNLOAD)
    (root / "upgrade.yml").write_text(UPGRADE)
    (root / "kubeadm").write_text(KUBEADM)
    (root / "broken.yml").write_text("- hosts: all\n  roles: [nowhere]\n")
    with socket.create_server(("127.0.0.1", 0)) as server:
        closed = server.getsockname()[1]
    local = {
        "ansible_connection": "local",
        "ansible_python_interpreter": "{{ ansible_playbook_python }}",
    }
    gone = {"ansible_host": "127.0.0.1", "ansible_port": closed}
    nodes = {"hosts": {"h1": local, "h2": local}}
    inventory = {"all": {"hosts": {"h3": gone}, "children": {"nodes": nodes}}}
    (workdir / "hosts.yaml").write_text(json.dumps(inventory))
    variables = {"password": "t0psecret", "closed_port": closed}
    (workdir / "vars.json").write_text(json.dumps(variables))
    if os.path.dirname(PROGRAM) not in os.environ["PATH"].split(":"):
        (sshd.bin / "ansible-playbook").symlink_to(PROGRAM)
    return root, workdir


@pytest.fixture
def run(site, log_in):
    root, workdir = site
    runner = PlaybookRunner(log_in, str(workdir), str(root))

    def run_playbook(name):
        seen = []
        try:
            return seen, runner.run(
                PlaybookRequest(name),
                total=60,
                idle=60,
                poll=0.2,
                on_progress=seen.append,
            )
        except errors.PlaybookFailed as error:
            return seen, error

    return run_playbook


def run_file(site, name):
    (run,) = (Path(site[1]) / "runs").iterdir()
    return (run / name).read_text()


def test_second_run_estimates_by_the_first(run, site):
    (site[0] / "galaxy.yml").write_text("version: 2.31.0\n")
    first, record = run("batches.yml")
    assert not isinstance(record, Exception), run_file(site, "log")
    assert {progress.estimate() for progress in first} == {""}
    assert (first[-1].plays, first[-1].play_number) == (2, 2)
    second, _ = run("batches.yml")
    assert second[-1].former.runs == 1
    assert len(second[-1].former.plays) == 2
    assert second[-1].summary.slowest


def test_rescued_and_ignored_failures_are_none(run, site):
    seen, record = run("good.yml")
    assert not isinstance(record, Exception), run_file(site, "log")
    end = seen[-1]
    assert (end.plays, end.play_number, end.play) == (1, 1, "Prepare")
    assert (end.task, end.failures) == ("Restart", ())
    assert {failure.task for failure in end.seen} == {"Is tried"}
    assert end.recap.keys() == {"h1", "h2"}


def test_failures_are_reported_with_their_reason_and_without_secrets(run, site):
    _, error = run("bad.yml")
    told = dict(line.split(": ", 1) for line in error.problems if "unreach" not in line)
    (unreachable,) = (line for line in error.problems if "unreach" in line)
    assert told["h1"].startswith("Loop: ")
    assert told["h1"].endswith("because 3")
    assert told["h2"] == "Secret: (censored by no_log)"
    assert unreachable.startswith("h3 is unreachable (task Reach): ")
    assert "Connection refused" in unreachable
    events = run_file(site, "events.jsonl")
    assert "t0psecret" not in events + str(error)
    assert all(json.loads(line)["time"] for line in events.splitlines())
    assert "PLAY RECAP" in run_file(site, "log")


def test_failed_download_says_what_and_why(run):
    _, error = run("downloads.yml")
    told = dict(line.split(": ", 1) for line in error.problems)
    assert told["h1"].startswith("Download item: http://127.0.0.1:")
    assert "/runc: " in told["h1"]
    assert "Connection refused" in told["h1"]
    assert told["h2"] == "Secret: (censored by no_log)"


def test_long_output_is_cut_to_its_errors(run):
    _, error = run("upgrade.yml")
    (line,) = error.problems
    assert line == (
        "h1: Upgrade: non-zero return code: [ERROR CreateJob]: Job"
        ' "upgrade-health-check-1" in the namespace "kube-system" did not complete in'
        " 15s: no condition of type Complete error: error execution phase preflight:"
        " preflight checks failed"
    )


def test_error_before_the_first_task_is_read_from_the_log(run):
    _, error = run("broken.yml")
    assert "nowhere" in str(error)
    assert "was not found" in str(error)
