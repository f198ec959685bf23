# SPDX-License-Identifier: Apache-2.0
"""The stand-in for kubespray as each release, with the product's table and Ansible."""

import json
import re
import shutil
import subprocess
from pathlib import Path

import pytest

from lab import releases
from tacker_k8s_mgmt.kubespray import checkout, inventory, runs, variables
from tacker_k8s_mgmt.kubespray.checkout import Checkout, ansible_version_from
from tacker_k8s_mgmt.kubespray.releases import RELEASES
from tacker_k8s_mgmt.model import network_plugins
from tacker_k8s_mgmt.model.network_plugins import minor, numbers
from tests.helpers.full_request import BALANCER, KUBERNETES, NIC_MTUS, NODES, rich
from tests.helpers.playbooks import run
from tests.helpers.samples import parsed

SOURCE = Path(__file__).parents[3] / "lab/kubespray"
SKIPPED = shutil.ignore_patterns("__pycache__")
ANY_ANSIBLE = "3"
BOILERPLATE = "playbooks/boilerplate.yml"
OLD_NAMES = {
    "kube_control_plane": "kube-master",
    "kube_node": "kube-node",
    "k8s_cluster": "k8s-cluster",
}

needs_ansible = pytest.mark.skipif(
    not shutil.which("ansible-playbook"), reason="no ansible-playbook on PATH"
)


class Acting:
    """The stand-in as one release, and a cluster's directory for it."""

    def __init__(self, name: str, directory: Path, ansible_below: str) -> None:
        self.release = releases.RELEASES[name]
        self.root = directory / "kubespray"
        shutil.copytree(SOURCE, self.root, ignore=SKIPPED)
        releases.act_as(self.root, self.release, ansible_below)
        self.directory = directory
        self.expected_warnings: list[str] = []  # parts of the lines
        self.at = minor(self.release.version)
        self.params = parsed(rich(self.at))
        self.hosts = inventory.render(NODES, self.params)

    def stated(self) -> Checkout:
        """What the product would read of it."""
        return Checkout.from_texts(
            (self.root / checkout.GALAXY_FILE).read_text(),
            (self.root / checkout.ANSIBLE_VERSION_FILE).read_text(),
            self.texts(checkout.CHECK_FILES),
            self.texts(checkout.CHECKSUM_FILES),
        )

    def texts(self, names) -> str:
        paths = [self.root / name for name in names]
        return "".join(path.read_text() for path in paths if path.is_file())

    def play(self, *playbooks: str, **changes) -> tuple[int, str]:
        """Exit code and output of a run with the product's files.

        It has no other warnings than those that are expected.
        """
        values = variables.build(self.params, NODES, BALANCER, nic_mtus=NIC_MTUS)
        extra = self.directory / "vars.json"
        extra.write_text(json.dumps({**values, **changes}))
        hosts = self.directory / inventory.FILE_NAME
        hosts.write_text(self.hosts)
        words = ("ansible-playbook", "-i", hosts, "-e", f"@{extra}", *playbooks)
        expected = self.expected_warnings
        return run(self.root, self.directory, *words, expected=expected)


@pytest.fixture(params=releases.RELEASES)
def acting(request, tmp_path) -> Acting:
    return Acting(request.param, tmp_path, ANY_ANSIBLE)


def as_it_is(name: str, directory: Path) -> Acting:
    """With the release's own range of Ansible versions."""
    return Acting(name, directory, "")


def hosts_of(play: str, output: str) -> set[str]:
    """The hosts of a play, as ``--list-hosts`` prints them."""
    listed = output.split(f": {play}\t")[1].split("\n  play #")[0]
    return set(re.findall(r"^ {6}(\S+)$", listed, re.MULTILINE))


class TestFiles:
    def test_every_release_of_the_products_table_is_there(self):
        told = {minor(one.version) for one in releases.RELEASES.values()}
        assert told == set(RELEASES)

    @pytest.mark.parametrize("name", releases.RELEASES)
    def test_the_product_reads_off_it_what_its_table_says(self, name, tmp_path):
        acting = as_it_is(name, tmp_path)
        stated, known = acting.stated(), RELEASES[acting.at]
        assert stated.release is known
        assert stated.ansible == known.ansible == acting.release.ansible
        assert stated.offer.network_plugins == network_plugins.offered(acting.at)
        assert stated.offer.removed_variables == set(acting.release.removed)
        assert KUBERNETES[acting.at] in stated.offer.kube_versions
        spelled = known.kube_version(KUBERNETES[acting.at])
        listed = acting.texts(checkout.CHECKSUM_FILES)
        assert f"    {spelled}: " in listed

    @pytest.mark.parametrize("name", releases.RELEASES)
    def test_a_request_that_suits_it_has_no_finding_and_another_ansible_has(
        self, name, tmp_path
    ):
        acting = as_it_is(name, tmp_path)
        stated = acting.stated()
        least, below = acting.release.ansible
        assert checkout.findings(stated, least, True, acting.params) == ()
        (finding,) = checkout.findings(stated, below, True, acting.params)
        assert f"ansible-core {below} does not suit kubespray" in finding
        assert f"ansible-core >={least},<{below}" in finding

    def test_every_playbook_that_the_product_runs_is_there(self, acting):
        names = (runs.INSTALL, runs.JOIN, runs.REMOVE, runs.FACTS, runs.UPGRADE)
        for name in names:
            assert (acting.root / name).is_file()

    def test_the_tree_acts_as_its_own_release_as_it_lies_there(self, tmp_path):
        acting = as_it_is(releases.OWN, tmp_path)
        for path in acting.root.rglob("*"):
            if path.is_file():
                before = SOURCE / path.relative_to(acting.root)
                assert path.read_text() == before.read_text(), path


@needs_ansible
class TestRuns:
    def test_inventory_and_variables_pass_its_checks(self, acting):
        code, output = acting.play(BOILERPLATE)
        assert code == 0, output

    # Of those that are alike in this, one is enough.
    @pytest.mark.parametrize("name", ["v2.24", "v2.28", "v2.31", "HEAD"])
    def test_mistakes_do_not(self, name, tmp_path):
        acting = Acting(name, tmp_path, ANY_ANSIBLE)
        release = acting.release
        v = "" if release.leading_v else "v"
        mistakes = [{"kube_version": f"{v}{release.default}"}]
        mistakes += [{name: "1"} for name in release.removed[:1]]
        plugin = next(
            iter(
                network_plugins.PLUGINS.keys() - acting.stated().offer.network_plugins
            ),
            "",
        )
        mistakes += [{"kube_network_plugin": plugin}] if plugin else []
        for mistake in mistakes:
            code, output = acting.play(BOILERPLATE, **mistake)
            assert code == 2, (mistake, output)
            assert next(iter(mistake.values())) in output

    # The playbook is one until v2.27, another in v2.28, and a third after it.
    @pytest.mark.parametrize("name", ["v2.27", "v2.28", "HEAD"])
    def test_a_removal_is_of_the_named_nodes_alone(self, name, tmp_path):
        acting = Acting(name, tmp_path, ANY_ANSIBLE)
        request = runs.remove([NODES[-1].name], acting.params.drain, dead=True)
        code, output = acting.play(
            request.playbook, "--list-hosts", **request.extra_vars
        )
        assert code == 0, output
        assert hosts_of("Remove the nodes", output) == {NODES[-1].name}


@needs_ansible
class TestTraps:
    """Where releases differ in what a mistake does; the product makes none of them."""

    @pytest.mark.parametrize("name", ["v2.27", "v2.28"])
    def test_a_removal_without_a_node(self, name, tmp_path):
        acting = as_it_is(name, tmp_path)
        acting.expected_warnings.append("ignoring: no_node_named")
        code, output = acting.play(runs.REMOVE, "--list-hosts")
        assert code == 0
        everybody = {node.name for node in NODES}
        expected = everybody if acting.release.minor < 28 else set()
        assert hosts_of("Remove the nodes", output) == expected

    @pytest.mark.parametrize("name", ["v2.26", "v2.27"])
    def test_groups_with_hyphens(self, name, tmp_path):
        acting = Acting(name, tmp_path, ANY_ANSIBLE)
        acting.expected_warnings.append("Invalid characters were found in group names")
        for new, old in OLD_NAMES.items():
            acting.hosts = acting.hosts.replace(f"{new}:", f"{old}:")
        show = {
            "hosts": "all",
            "gather_facts": False,
            "run_once": True,
            "tasks": [
                {"debug": {"msg": "{{ groups.k8s_cluster | default([]) | length }} in"}}
            ],
        }
        playbook = acting.root / "show.yml"
        roles = ["kubespray_defaults", "dynamic_groups"]
        first = {"hosts": "all", "gather_facts": False, "roles": roles}
        playbook.write_text(json.dumps([first, show]))
        code, output = acting.play(str(playbook))
        assert code == 0, output
        assert f"{5 if name == 'v2.26' else 0} in" in output

    def test_an_ansible_that_does_not_suit_it(self, tmp_path):
        told = subprocess.run(
            ["ansible-playbook", "--version"],
            capture_output=True,
            text=True,
            check=True,
        )
        own = ansible_version_from(told.stdout)
        other = next(
            name for name, one in releases.RELEASES.items() if not suits(one, own)
        )
        code, output = as_it_is(other, tmp_path).play(BOILERPLATE)
        assert code == 2
        assert f"this is {own}" in " ".join(output.split())


def suits(release: releases.Release, ansible: str) -> bool:
    least, below = map(numbers, release.ansible)
    return least <= numbers(ansible) < below
