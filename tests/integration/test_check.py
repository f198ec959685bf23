"""``tacker-k8s-mgmt cluster check`` of a cluster that stands, and of a spoiled one."""

import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from lab import inside
from tests.integration.conftest import ANSIBLE_SERVER, ROOT, Cluster, Lab

LIMIT = 300  # seconds


@pytest.fixture(scope="module")
def cluster(lab: Lab) -> Iterator[Cluster]:
    with lab.instance("checked", secret=True) as made:
        made.instantiate()
        yield made


@pytest.fixture
def impatient(tmp_path) -> Path:
    """Configuration that goes on top of Tacker's."""
    path = tmp_path / "impatient.conf"
    path.write_text("[k8s_mgmt]\nconnect_timeout = 2\n")
    return path


def check(cluster: Cluster, *arguments: str) -> subprocess.CompletedProcess[str]:
    config = str(inside.state() / "etc" / "tacker.conf")
    command = [sys.executable, "-m", "tacker_k8s_mgmt.cli", "cluster", "check"]
    done = subprocess.run(
        [*command, cluster.id, "--config-file", config, *arguments],
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=LIMIT,
        check=False,
    )
    assert done.stderr == ""
    cluster.assert_no_secret_in(done.stdout)
    return done


def differences(done: subprocess.CompletedProcess[str]) -> dict[str, list[str]]:
    """What differs, by row."""
    rows = json.loads(done.stdout)["rows"]
    found = {row["name"]: [one["what"] for one in row["differences"]] for row in rows}
    return {name: texts for name, texts in found.items() if texts}


def traces(lab: Lab, cluster: Cluster) -> tuple[str, str, str, str]:
    """Everything that a look must not change."""
    listing = f"cd {cluster.directory} && find . -printf '%p %s %T@\\n' | sort"
    known = inside.state() / "data" / "tacker" / "state" / "k8s_mgmt" / "known_hosts"
    vms = (cluster.server("externalLB"), cluster.server("masterNode"))
    files = "find /tmp /etc -xdev -mindepth 1 -printf '%p %s %T@\\n' | sort"
    left = "".join(inside.on_host(vm, "sh", "-c", files) for vm in vms)
    show = json.dumps(cluster.show(), sort_keys=True)
    return lab.ansible(listing), known.read_text(), left, show


class TestCheck:
    def test_a_cluster_that_stands_agrees_and_is_left_as_it_is(self, lab, cluster):
        before = traces(lab, cluster)
        done = check(cluster)
        assert done.returncode == 0, done.stdout
        assert done.stdout.endswith("They agree.\n")
        for name in (*cluster.inventory(), cluster.vim_name):
            assert name in done.stdout
        assert traces(lab, cluster) == before

    def test_what_was_spoiled_is_named(self, cluster):
        first, second = (n for n in cluster.inventory() if n.startswith("worker-"))
        cluster.balancer("remove-worker", first)
        cluster.kubectl("cordon", second)
        done = check(cluster, "--json")
        assert done.returncode == 1, done.stdout
        assert differences(done) == {
            first: ["the load balancer has no route to it"],
            second: ["cordoned, gets no new pods"],
        }
        (remedy,) = (
            one["remedy"]
            for row in json.loads(done.stdout)["rows"]
            if row["name"] == first
            for one in row["differences"]
        )
        assert f"add-worker {first}=" in remedy
        # The way out that was told.
        address = first.removeprefix("worker-").replace("-", ".")
        cluster.balancer("add-worker", f"{first}={address}")
        cluster.kubectl("uncordon", second)
        assert check(cluster).returncode == 0

    @pytest.mark.parametrize(
        ("vdu", "silent"),
        [
            ("externalLB", {"load_balancer"}),
            ("masterNode", {"cluster"}),
            (None, {"inventory", "cluster", "load_balancer"}),
        ],
    )
    def test_who_does_not_answer_hides_no_other(
        self, lab, cluster, impatient, vdu, silent
    ):
        host = cluster.server(vdu) if vdu else ANSIBLE_SERVER
        with lab.cut(host):
            done = check(cluster, "--config-file", str(impatient), "--json")
        told = json.loads(done.stdout)
        assert done.returncode == 2
        assert set(told["not_asked"]) == silent
        assert {row["heat"] for row in told["rows"]} == {"VM"}
        assert told["rows"][-1]["vim"] == cluster.vim_name
