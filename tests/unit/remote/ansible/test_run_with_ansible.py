# SPDX-License-Identifier: Apache-2.0
"""Runs with a real Ansible: what it makes of the options and of our inventory.

Skipped where no ansible-playbook is in PATH.
"""

import json
import os
import shutil
import time
from pathlib import Path

import pytest

from lab import releases
from tacker_k8s_mgmt import errors
from tacker_k8s_mgmt.kubespray import inventory, runs
from tacker_k8s_mgmt.model.playbooks import PlaybookRequest
from tacker_k8s_mgmt.remote.ansible.cluster_directory import ClusterDirectory
from tacker_k8s_mgmt.remote.ansible.playbook_runner import PlaybookRunner
from tests.helpers.full_request import NODES, rich
from tests.helpers.samples import parsed

pytestmark = pytest.mark.skipif(
    not shutil.which("ansible-playbook"), reason="no ansible-playbook in PATH"
)

STAND_IN = Path(__file__).parents[4] / "lab/kubespray"
DEAD = NODES[-1].name
DAY = 86400  # seconds; kubespray's fact_caching_timeout
# Runs the command as the same user, after the prompt that Ansible waits for.
SUDO = r"""
while [ "$1" != /bin/sh ]; do
    [ "$1" = -p ] && printf '%s' "$2" >&2
    shift
done
read -r _
printf '%s\n' "$*" >>"$HOME/sudo.log"
exec "$@"
"""


class Site:
    """A release of kubespray as the laboratory has it, and a cluster's directory."""

    def __init__(self, directory: Path, release: releases.Release, sshd, log_in):
        self.root, self.workdir = directory / "kubespray", directory / "cluster"
        self.workdir.mkdir()
        shutil.copytree(STAND_IN, self.root)
        releases.act_as(self.root, release, ansible_below="3")
        hosts = inventory.render(NODES, parsed(rich((2, release.minor))))
        (self.workdir / inventory.FILE_NAME).write_text(hosts)
        (self.workdir / "vars.json").write_text("{}")
        # Ansible skips sudo otherwise where the tests run as root.
        sshd.variables = {"ANSIBLE_BECOME_ALLOW_SAME_USER": "1"}
        sshd.program("sudo", SUDO)
        self.sudo_log = sshd.home / "sudo.log"
        self._runner = PlaybookRunner(log_in, str(self.workdir), str(self.root))

    def play(self, *plays: dict, limit: str = ""):
        """Run plays, whose hosts are all here."""
        (self.root / "own.yml").write_text(json.dumps(plays))
        here = {
            "ansible_connection": "local",
            "ansible_python_interpreter": "{{ ansible_playbook_python }}",
        }
        return self.run(PlaybookRequest("own.yml", here, limit))

    def run(self, request: PlaybookRequest):
        return self._runner.run(request, total=120, idle=120, poll=0.2)

    def log(self) -> str:
        """What Ansible has printed."""
        return "".join(log.read_text() for log in self.workdir.glob("runs/*/log"))


@pytest.fixture
def act_as(tmp_path, sshd, log_in):
    return lambda name: Site(tmp_path, releases.RELEASES[name], sshd, log_in)


def test_sudo_is_never_used_on_the_ansible_server(act_as):
    """v2.28's first play gathers facts there, without a word on become."""
    site = act_as("v2.28")
    with pytest.raises(errors.PlaybookFailed, match="No nodes specified"):
        site.run(PlaybookRequest(runs.REMOVE))
    assert not site.sudo_log.exists()


def test_tasks_become_root_on_nodes_and_not_where_they_are_delegated_to(act_as):
    site = act_as("v2.31")
    tasks = [
        {"command": "echo of-the-node"},
        {"command": "echo of-the-server", "delegate_to": "localhost"},
    ]
    play = {"hosts": DEAD, "gather_facts": False, "tasks": tasks}
    assert site.play(play).rc == 0
    (call,) = site.sudo_log.read_text().splitlines()
    assert "ansible" in call


def test_facts_of_a_node_that_is_long_dead_are_still_known(act_as):
    site = act_as("v2.31")
    facts = site.workdir / "facts" / DEAD
    facts.parent.mkdir()
    facts.write_text(json.dumps({"ansible_default_ipv4": {"address": "10.0.0.9"}}))
    os.utime(facts, (time.time() - 2 * DAY,) * 2)
    known = f"hostvars['{DEAD}'].ansible_default_ipv4.address == '10.0.0.9'"
    play = {
        "hosts": "kube_node",
        "gather_facts": False,
        "tasks": [{"assert": {"that": known}}],
    }
    assert site.play(play, limit=f"!{DEAD}").rc == 0


@pytest.mark.parametrize("prefix", ["", "operators_"])
def test_facts_of_a_vm_made_anew_are_never_those_of_the_former_one(
    act_as, session, prefix
):
    site = act_as("v2.31")
    if prefix:
        path = site.root / "ansible.cfg"
        option = f"[defaults]\nfact_caching_prefix = {prefix}"
        path.write_text(path.read_text().replace("[defaults]", option))
    stays, anew = (node.name for node in NODES[:2])
    remember = {"set_fact": {"remembered": "yes", "cacheable": True}}
    play = {"hosts": f"{stays},{anew}", "tasks": [remember]}
    assert site.play(play).rc == 0
    ClusterDirectory(session, str(site.workdir), "an owner").drop_facts([anew])
    known = f"(remembered is defined) == (inventory_hostname == '{stays}')"
    gathered = "ansible_facts.python is defined"
    asserted = {"assert": {"that": [known, gathered]}}
    assert site.play({**play, "tasks": [asserted]}).rc == 0


def test_facts_are_gathered_once_for_all_plays_of_a_run(act_as):
    site = act_as("v2.31")
    play = {"hosts": NODES[0].name, "tasks": [{"ping": None}]}
    assert site.play(play, play).rc == 0
    assert site.log().count("TASK [Gathering Facts]") == 1


def test_facts_that_a_playbook_asks_for_are_those_of_now(act_as):
    """As kubespray's own play does, whatever is in the cache."""
    site = act_as("v2.31")
    facts = site.workdir / "facts" / NODES[0].name
    facts.parent.mkdir()
    old = {"_ansible_facts_gathered": True, "ansible_date_time": {"epoch": "1"}}
    facts.write_text(json.dumps(old))
    before = {"assert": {"that": "ansible_date_time.epoch == '1'"}}
    gather = {"setup": {"gather_subset": "!all"}}
    after = {"assert": {"that": "ansible_date_time.epoch | int > 1"}}
    play = {"hosts": NODES[0].name, "tasks": [before, gather, after]}
    assert site.play(play).rc == 0


def test_without_the_clusters_variables_nothing_is_run(act_as):
    site = act_as("v2.31")
    (site.workdir / "vars.json").unlink()
    with pytest.raises(errors.PlaybookFailed) as caught:
        site.play({"hosts": "all", "gather_facts": False, "tasks": [{"ping": None}]})
    assert f"{site.workdir}/vars.json" in caught.value.problems[0]
