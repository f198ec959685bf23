# SPDX-License-Identifier: Apache-2.0
"""A real Alertmanager with the sample's routes: which messages Tacker gets."""

import http.server
import json
import queue

import pytest

pytest.importorskip("tacker", reason="the contract is with an installed Tacker")

from tacker.sol_refactored.api import validator
from tacker.sol_refactored.api.schemas import prometheus_plugin_schemas

from tests.helpers import alerts
from tests.helpers.alertmanager import alert, alertmanager, rules
from tests.helpers.backends import serving

VNF = "3c9ebe21-8a2d-4d58-a10c-8d6f4e0f9f5e"
OTHER = "5b1d1e0c-77a5-4a8b-9c57-1de2e7a3b1aa"
LIMIT = 60  # seconds


class Receiver(http.server.ThreadingHTTPServer):
    """Tacker's port: keeps what is posted, by its path."""

    daemon_threads = True

    def __init__(self):
        super().__init__(("127.0.0.1", 0), Handler)
        self._posted = {}

    def posted(self, path):
        return self._posted.setdefault(path, queue.Queue())


class Handler(http.server.BaseHTTPRequestHandler):
    server: Receiver

    def do_POST(self):
        body = self.rfile.read(int(self.headers["Content-Length"]))
        self.server.posted(self.path).put(json.loads(body))
        self.send_response(204)
        self.end_headers()

    def log_message(self, *_):
        """Quiet."""


@pytest.fixture(scope="module")
def receiver():
    server = Receiver()
    with serving(server):
        yield server


@pytest.fixture(scope="module")
def manager(receiver, tmp_path_factory):
    address = f"127.0.0.1:{receiver.server_address[1]}"
    with alertmanager(tmp_path_factory.mktemp("alertmanager"), address) as made:
        yield made


def shape(message):
    """The names in a message, those of labels and annotations left out."""
    return {
        name: sorted(value[0]) if name == "alerts" else type(value)
        for name, value in message.items()
    }


def node(number):
    name = f"worker-10-10-0-{number}"
    return {"node": name, "system_uuid": f"server-{number}", "condition": "Ready"}


def test_alerts_for_workers_of_one_cluster_are_one_message(receiver, manager):
    ours = [alert("WorkerNotReady", VNF, **node(number)) for number in (5, 6)]
    other = alert("WorkerNotReady", OTHER, **node(5))
    # What Tacker would drop the whole message for.
    stranger = {"alertname": "DiskFull", "vnf_instance_id": VNF}
    manager.fire(*ours, other, stranger)
    posted = receiver.posted("/alert/auto_healing")
    messages = [posted.get(timeout=LIMIT) for _ in range(2)]
    found = {
        message["groupLabels"]["vnf_instance_id"]: sorted(
            one["labels"]["vnfc_info_id"] for one in message["alerts"]
        )
        for message in messages
    }
    assert found == {
        VNF: ["workerNode-server-5", "workerNode-server-6"],
        OTHER: ["workerNode-server-5"],
    }
    for message in messages:
        taken_by_tacker(message)


@pytest.mark.parametrize("name", sorted(rules().keys() - {"WorkerNotReady"}))
def test_scaling_goes_to_the_other_receiver(receiver, manager, name):
    labels = alert(name, VNF)
    manager.fire(labels)
    message = receiver.posted("/alert/auto_scaling").get(timeout=LIMIT)
    assert [one["labels"] for one in message["alerts"]] == [labels]
    taken_by_tacker(message)


def taken_by_tacker(message):
    """Tacker's own schema, and what the tests send in place of an Alertmanager."""
    schema = prometheus_plugin_schemas.AlertMessage
    validator.SolSchemaValidator(schema).validate(message)
    assert shape(message) == shape(alerts.message([{}]))
