# SPDX-License-Identifier: Apache-2.0
"""What an operator of a campaign does about the differences that are printed."""

import contextlib
import json
from types import SimpleNamespace

import pytest

from lab import client
from tacker_k8s_mgmt import errors
from tests.chaos import checking
from tests.chaos.record import FINDING, Record, read
from tests.helpers import status_spoilers
from tests.helpers.status_scene import BALANCER, CP, W5, Scene, rows

HEAL = "openstack vnflcm heal ID --vnfc-instance vnfc-9"


class World:
    """A cluster of which ``cluster check`` prints a scene, and what is done to it."""

    def __init__(self, scene, silent, fix):
        self.scene, self.silent, self.fix = scene, silent, fix
        self.done = []
        self.id = "vnf"

    def server(self, name):
        return name

    def servers(self):
        return ()

    def check(self, *_):
        found = rows(self.scene, silent=self.silent)
        differing = [row for row in found.values() if list(row.findings)]
        told = {"rows": [self._row(row) for row in differing], "not_asked": {}}
        return SimpleNamespace(
            returncode=1 if differing else 0, stdout=json.dumps(told)
        )

    @staticmethod
    def _row(row):
        return {
            "name": row.name,
            "differences": [
                {
                    "what": one.text,
                    "remedy": one.remedy.text,
                    "commands": [f"{HEAL}"] if one.remedy.heal else [],
                }
                for one in row.findings
            ],
        }

    def act(self, text):
        self.done.append(text)
        self.fix(self, text)

    def kubectl(self, *arguments):
        self.act(" ".join(("kubectl", *arguments)))

    def follow(self, _):
        pass


@pytest.fixture
def run(tmp_path, monkeypatch):

    def run(scene, fix, silent=()):
        world = World(scene, list(silent), fix)
        monkeypatch.setattr(checking, "check", lambda cluster, *a: cluster.check(*a))
        monkeypatch.setattr(client, "hosts", lambda: [])
        monkeypatch.setattr(
            client, "on_host", lambda host, *a: world.act(" ".join((host, *a)))
        )
        monkeypatch.setattr(
            client, "command", lambda line, limit: world.act(" ".join(line))
        )

        @contextlib.contextmanager
        def begun(tacker, vnf_id):
            yield ["operation"]

        monkeypatch.setattr(checking, "begun", begun)
        subject = SimpleNamespace(
            cluster=world,
            lab=SimpleNamespace(tacker=None),
            balanced=True,
            cnfs=SimpleNamespace(serve=lambda: None),
            leaving=set(),
            replaced=False,
            pace=SimpleNamespace(pause=0),
        )
        operator = SimpleNamespace(see_through=lambda *a: None)
        path = tmp_path / "record.jsonl"
        checker = checking.Checker(subject, Record(path), operator)
        left = checker.until_agreed()
        assert not [one for one in read(path) if one["event"] == FINDING]
        return left, world.done

    return run


def workers(scene, *, ready):
    for name in scene.nodes:
        if name != CP:
            scene.node(name, ready=ready)


def lost():
    scene = Scene()
    workers(scene, ready=False)
    return scene


def test_load_balancer_is_healed_before_its_workers(run):
    def fix(world, text):
        assert text == HEAL
        world.silent.clear()
        workers(world.scene, ready=True)

    assert run(lost(), fix, ["balancer"]) == ("", [HEAL])


def test_haproxy_is_started_before_a_heal(run):
    def fix(world, text):
        world.scene.balancing.update(active=True, current=True)
        world.scene.backends = Scene().backends
        workers(world.scene, ready=True)

    scene = lost()
    status_spoilers.balancer_stopped(scene)
    start = "externalLB systemctl start haproxy"
    assert run(scene, fix) == ("", [start])


def test_haproxy_that_does_not_start_is_healed(run):
    def fix(world, text):
        if text == HEAL:
            world.scene.balancing.update(active=True, current=True)
            world.scene.backends = Scene().backends

    scene = Scene()
    status_spoilers.balancer_stopped(scene)
    start = "externalLB systemctl start haproxy"
    assert run(scene, fix) == ("", [start, HEAL])


def test_worker_is_healed_at_once(run):
    def fix(world, text):
        world.scene.node(W5, ready=True)

    scene = Scene()
    status_spoilers.not_ready(scene)
    left, done = run(scene, fix)
    assert (left, done) == ("", [HEAL])
    assert BALANCER not in done


def test_worker_is_uncordoned(run):
    def fix(world, text):
        world.scene.node(W5, unschedulable=False)

    scene = Scene()
    status_spoilers.cordoned(scene)
    assert run(scene, fix) == ("", [f"kubectl uncordon {W5}"])


def test_host_keys_are_recorded_by_a_modification(monkeypatch, tmp_path):
    begun = []
    why = str(errors.UnknownHostError(host="192.0.2.1", recorded="/k"))

    def check(cluster, *_):
        told = {"rows": [], "not_asked": {} if begun else {"load_balancer": why}}
        return SimpleNamespace(returncode=0 if begun else 2, stdout=json.dumps(told))

    monkeypatch.setattr(checking, "check", check)
    subject = SimpleNamespace(
        begin=begun.append,
        cluster=SimpleNamespace(operation="1"),
        pace=SimpleNamespace(pause=0),
        cnfs=SimpleNamespace(serve=lambda: None),
    )
    operator = SimpleNamespace(see_through=lambda *_: None)
    record = Record(tmp_path / "record.jsonl")
    assert checking.Checker(subject, record, operator).until_agreed() == ""
    assert begun == ["modify labels"]
