# SPDX-License-Identifier: Apache-2.0
"""Answers of hosts and API servers that are made to harm: each is an error, no more."""

import contextlib
import itertools
import json
from typing import Any

import pytest

from tacker_k8s_mgmt import errors
from tacker_k8s_mgmt.features.applications.host import Charts, ChartVolumes, fetch
from tacker_k8s_mgmt.features.node_settings.marks import MetadataClient
from tacker_k8s_mgmt.kubespray import inventory
from tacker_k8s_mgmt.model import playbooks
from tacker_k8s_mgmt.model.nodes import Machine, Role
from tacker_k8s_mgmt.model.playbooks import PlaybookRequest, Progress
from tacker_k8s_mgmt.remote import vms
from tacker_k8s_mgmt.remote.ansible import cluster_directory, playbook_runner
from tacker_k8s_mgmt.remote.ansible.cluster_directory import ClusterDirectory
from tacker_k8s_mgmt.remote.ansible.playbook_runner import (
    PlaybookRunner,
    RunDirectories,
)
from tacker_k8s_mgmt.remote.balancer_vm import Balancer
from tacker_k8s_mgmt.remote.kubernetes.api import ClusterApi
from tacker_k8s_mgmt.remote.kubernetes.etcd import EtcdClient
from tacker_k8s_mgmt.remote.kubernetes.kubectl import KubeClient
from tacker_k8s_mgmt.remote.kubernetes.owned_objects import Manifests
from tacker_k8s_mgmt.remote.ssh.channel import Result
from tacker_k8s_mgmt.remote.ssh.session import LARGEST, read
from tests.helpers import hostile

ANSWERS = {
    "nothing": "",
    "text": hostile.ESCAPES,
    "nested deeply": hostile.DEEP_JSON,
    "an endless number": '{"items": [1e999], "members": [1e999], "up": 1e999}',
    "no number": "[NaN]",
    "a list": "[]",
    "a list of texts": '["a", "b"]',
    "a text": '"a"',
    "items that are none": '{"kind": "List", "items": ["a", null, 7, [], {}]}',
    "a record that is none": json.dumps(
        {
            "items": [
                {"metadata": {"labels": {"version": "1"}}, "data": {"release": "é"}}
            ]
        }
    ),
    "an object of nothing": '{"kind": "List", "items": null, "metadata": []}',
    "members that are none": '{"members": ["a", {}, {"ID": "x", "peerURLs": 7}]}',
    "rows without columns": '["List"]\n["a"]\n[]\n["List"]\n',
    "rows of nothing": '["List"]' + "[null]" * 240 + '["List"]',
    "rows of texts": '["List"]' + '["a"]' * 240 + '["List"]',
    "rows of lists": '["List"]' + "[[[], {}]]" * 240 + '["List"]',
    "a status of another form": json.dumps(
        {"format": 1, "haproxy": [], "workers": ["a"], "services": {"a": 1}}
    ),
    "a run of another form": json.dumps(
        {
            **dict.fromkeys(("run", "state", "latest", "stamp"), "a"),
            **{"rc": "0", "started": [], "ended": {}, "up": "x", "heard": "abc"},
        }
    ),
}
NODE = Machine(Role.WORKER, "server-1", "10.0.0.7", "10.10.0.7")
CLAIM = '{"apiVersion":"v1","kind":"PersistentVolumeClaim","metadata":{"name":"a"}}'
OBJECT = {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "a"}}


class Session:
    """A host that answers everything with the same text."""

    host = "192.0.2.7"
    redact = staticmethod(str)
    alive = True

    def __init__(self, answer):
        self.answer = answer

    def run(self, argv, **_):
        return Result(0, self.answer, "")

    def get(self, path):
        return self.answer.encode()

    def scratch(self):
        return contextlib.nullcontext("/tmp/scratch")

    def put(self, path, data, mode=0o600):
        return True

    def close(self):
        """There is nothing to close."""


def client(session):
    return KubeClient(session)


CALLS = {
    "nodes": lambda s: ClusterApi(s).nodes(),
    "workloads": lambda s: MetadataClient(client(s)).workloads(),
    "version": lambda s: ClusterApi(s).version(),
    "readiness": lambda s: ClusterApi(s).api_readiness(),
    "cluster-info": lambda s: ClusterApi(s).move_cluster_info("10.0.0.1", "https://x"),
    "person": lambda s: ClusterApi(s).person_access("eve", "view", 600),
    "labels": lambda s: MetadataClient(client(s)).metadata(),
    "services": lambda s: ClusterApi(s).services("default"),
    "objects of an owner": lambda s: Manifests(client(s)).owned("app.a"),
    "objects": lambda s: Manifests(client(s)).present([OBJECT]),
    "objects of a kind": lambda s: Manifests(client(s)).get("pods"),
    "kinds": lambda s: Manifests(client(s)).cluster_wide(),
    "etcd": lambda s: EtcdClient(s).members(),
    "revision": lambda s: Charts(s, "https://x").revision("a", "a"),
    "volumes of a chart": lambda s: ChartVolumes(client(s)).keep(CLAIM, "a"),
    "record of a release": lambda s: ChartVolumes(client(s)).keep_at_end(
        CLAIM, "a", "a"
    ),
    "load balancer": lambda s: Balancer(s, b"# tacker-k8s-mgmt").status(),
    "identity": lambda s: vms.read(s, NODE),
    "runs": lambda s: RunDirectories("/w", "/k").look(s).live,
    "owner of a directory": lambda s: ClusterDirectory(s, "/w", "vnf").owner(),
    "last run": lambda s: PlaybookRunner(lambda: s, "/w", "/k").last(),
}


@pytest.mark.parametrize("call", CALLS.values(), ids=CALLS.keys())
@pytest.mark.parametrize("answer", ANSWERS.values(), ids=ANSWERS.keys())
def test_an_answer_of_any_form_is_read_or_is_one_error(call, answer):
    said = ""
    try:
        call(Session(answer))
    except errors.K8sMgmtError as error:
        said = str(error)
    assert len(said) < 5000  # it does not quote megabytes


@pytest.mark.parametrize("text", hostile.YAML.values(), ids=hostile.YAML.keys())
def test_a_harmful_kubeconfig_of_the_cluster_is_refused(text):
    answer = json.dumps({"data": {"kubeconfig": text}})
    with pytest.raises(errors.ClusterError):
        ClusterApi(Session(answer)).move_cluster_info("10.0.0.1", "https://x")


@pytest.mark.parametrize("text", hostile.YAML.values(), ids=hostile.YAML.keys())
def test_a_harmful_inventory_is_refused(text):
    with pytest.raises(errors.ClusterError, match="not as it was written"):
        inventory.parse(text)


@pytest.mark.parametrize(
    "line",
    [
        '{"event": "play", "results": Infinity}',
        '{"event": "play", "results": 1e999, "number": 1e999}',
        '{"event": "play", "time": "noon"}',
        '{"event": "recap", "hosts": [1]}',
        '{"event": "former", "plays": {"a": []}, "runs": []}',
        '{"event": "playbook", "plays": "' + "9" * 5000 + '"}',
        "[" * 5000,
        hostile.DEEP_JSON,
        "[1]",
        "7",
        '"a"',
        hostile.ESCAPES,
    ],
)
def test_events_of_any_form_are_survived(line):
    progress = playbooks.fold(Progress(), [line])
    assert isinstance(progress.where(), str)
    assert progress.estimate() is not None


def test_events_of_any_number_are_kept_in_limits():
    failed = json.dumps({"event": "failed", "host": "a", "task": "t", "message": "m"})
    progress = playbooks.fold(Progress(), itertools.repeat(failed, 12_000))
    assert len(progress.seen) == 10_000


def test_a_server_whose_run_never_ends_is_given_up_by_this_hosts_clock(monkeypatch):
    monkeypatch.setattr(playbook_runner, "START_LIMIT", 0.2)
    state = {
        **{"run": "a", "state": "running", "latest": "a", "stamp": "1"},
        **{"rc": None, "started": 1, "ended": None},
        **{"up": 1, "asked": 1, "begun": 1, "heard": 1},
    }
    events = '{"event": "alive"}\n' * 60_000  # always more than one look reads
    session: Any = Session(f"{json.dumps(state)}\n{events}")
    session.get = lambda path: json.dumps(
        {"digest": PlaybookRequest("cluster.yml").digest}
    ).encode()
    one = PlaybookRunner(lambda: session, "/w", "/k")
    with pytest.raises(errors.PlaybookTimeout, match=r"ran longer than 0\.3 s"):
        one.run(PlaybookRequest("cluster.yml"), total=0.3, idle=600)


class Endless:
    """A file, and an answer to a lock, without an end."""

    closed = False
    eof_received = 0
    read_bytes = 0

    def __enter__(self):
        return self

    def __exit__(self, *_):
        """There is nothing to close."""

    def open(self, path, mode="r"):
        return self

    def read(self, size=-1):
        assert 0 < size <= LARGEST + 1, "it is read to its end"
        return bytes(size)

    def recv_ready(self):
        return True

    def recv(self, size):
        self.read_bytes += size
        assert self.read_bytes < 1 << 20, "it is read to its end"
        return b"a" * size


def test_a_file_of_another_host_is_read_up_to_a_limit():
    with pytest.raises(OSError, match="it has more than 33554432 bytes"):
        read(Endless(), "/kubespray/galaxy.yml")


def test_an_endless_file_is_an_error_that_names_it(session, sshd, monkeypatch):
    monkeypatch.setattr(read, "__defaults__", (1 << 16,))
    (sshd.home / "galaxy.yml").symlink_to("/dev/zero")
    with pytest.raises(
        errors.FileError, match=r"galaxy\.yml could not be read: it has"
    ):
        session.get(str(sshd.home / "galaxy.yml"))


def test_a_download_of_no_size_is_refused():
    session = Session("many\n")
    with pytest.raises(errors.RemoteError, match="its SHA-256 is not"):
        fetch(session, "https://example.org/a", "0" * 64, {})


def test_the_first_line_about_a_lock_has_a_limit():
    assert len(cluster_directory._first_line(Endless())) < 1 << 17


@pytest.mark.parametrize(
    "within", ["1e999", "Infinity", "1e300", '"x"', "[]", "-Infinity", "NaN"]
)
def test_an_owner_cannot_have_others_wait_forever(within):
    assert cluster_directory._promised(f'{{"within": {within}}}') <= 3600


@pytest.mark.parametrize(
    "line",
    [
        '{"operation": "a", "conductor": "c", "pid": 1, "since": 1e999}',
        hostile.DEEP_JSON,
        "[]",
        '{"operation": "' + "a" * 50_000 + '", "conductor": "c", "pid": 1, "since": 1}',
    ],
)
def test_an_owner_of_any_form_is_named_in_a_line(line):
    assert len(cluster_directory._described(line)) <= 500
