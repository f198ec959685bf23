# SPDX-License-Identifier: Apache-2.0
"""Readers of files of packages, of requests and of this host."""

import json
import tempfile
from collections.abc import Mapping
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

from prometheus_client import generate_latest

from tacker_k8s_mgmt import journal, metrics
from tacker_k8s_mgmt.features.applications import feature, sources
from tacker_k8s_mgmt.features.applications.content import Chart
from tacker_k8s_mgmt.features.applications.host import _defined
from tacker_k8s_mgmt.features.applications.sources import Sources
from tacker_k8s_mgmt.features.node_settings.marks import NodeMetadata
from tacker_k8s_mgmt.hooks.cnf import manifests as cnf_manifests
from tacker_k8s_mgmt.hooks.v2 import connections
from tacker_k8s_mgmt.metrics import State
from tacker_k8s_mgmt.model import manifests
from tacker_k8s_mgmt.model.timeline import Timeline, clock, in_words
from tacker_k8s_mgmt.request import cnf_exposure, profile_document, reader
from tacker_k8s_mgmt.request.applications import Application, SourceFile
from tacker_k8s_mgmt.request.structure import WrittenRequest
from tacker_k8s_mgmt.tools.cli import request_input
from tacker_k8s_mgmt.tools.cloud import client
from tests.helpers.untrusted.fed import Fed, all_of, in_file, parsed
from tests.helpers.untrusted.objects import DAEMON_SET, DEFINITION, SERVICE


def _journal(content: str) -> None:
    with tempfile.TemporaryDirectory() as directory:
        vnf_id = "9f3b0f6e-9c0d-4f4e-8f7a-3b1c5d7e9f01"
        path = Path(journal.path_of(directory, vnf_id))
        path.parent.mkdir(parents=True)
        path.write_bytes(content.encode(errors="replace"))
        timeline = Timeline(journal.read(str(path))[0])
        for operation in timeline.operations:
            in_words(operation.seconds)
            clock(operation.last)
        state = State()
        state.add_journals(directory)
        _collected(state)
        State.read(state.text())


def _collected(state: State) -> None:
    generate_latest(metrics._registry(state)).decode()


def _chart(content: str) -> None:
    data = sources.packed({"Chart.yaml": content.encode(errors="replace")})
    sources.version_of(data)


def _manifest(content: str) -> None:
    objects = manifests.parse(content)
    placed = manifests.in_namespace(objects, "n", ())
    manifests.titles(placed)
    list(manifests.claims_of(placed))
    manifests.images(placed)
    manifests.hook_runs(placed, "install")
    manifests.with_config(placed, "d")
    manifests.without(placed, ())
    list(map(manifests.is_kept, placed))
    node = NodeMetadata("w", labels={"disk": "2"})
    for workload in feature._bound(placed):
        workload.can_start(node)


def _identity(content: str) -> None:
    vnf_id = "9f3b0f6e-9c0d-4f4e-8f7a-3b1c5d7e9f01"
    with tempfile.TemporaryDirectory() as directory:
        path = Path(directory, connections._DIRECTORY, f"{vnf_id}.json")
        path.parent.mkdir()
        path.write_bytes(content.encode(errors="replace"))
        connections.read(directory, vnf_id)


def _profile(content: str) -> None:
    profile_document.parse(content.encode(errors="surrogatepass"))


def _services_of_cnf(content: str) -> None:
    with tempfile.TemporaryDirectory() as package:
        Path(package, "m.yaml").write_bytes(content.encode(errors="replace"))
        cnf_manifests.services(package, ["m.yaml"], "n")


APP = Application(name="a", manifests=(SourceFile(path="m.yaml"),))


class _Sources(Sources):
    """With one file, which is given."""

    content = b""

    def _file(self, app: Application, file: SourceFile) -> bytes:
        return self.content


def _sources(content: str) -> _Sources:
    made = _Sources(cast(Any, None))
    made.content = content.encode(errors="replace")
    return made


def _rendering(content: str) -> Any:
    charts = SimpleNamespace(render=lambda *_, **__: content)
    return SimpleNamespace(charts=charts, objects=SimpleNamespace(api_versions=tuple))


OPERATION = {"time": 1.7e9, "run": "r", "hook": "heal_end", "api": "v1"}

JOURNAL = [
    {**OPERATION, "event": "operation-start", "operation": "heal_end", "steps": 2},
    {**OPERATION, "event": "step-start", "number": 1, "total": 2, "step": "s"},
    {
        **{**OPERATION, "event": "progress", "text": "t", "play": 1, "plays": 2},
        **{"left": 9, "former_runs": 2, "slowest": [{"task": "t", "seconds": 1.5}]},
    },
    {**OPERATION, "event": "step-end", "outcome": "done", "seconds": 1.5},
    {
        **{**OPERATION, "event": "operation-end", "outcome": "completed"},
        **{"seconds": 2.5, "problems": ["p"], "failed_tasks": [{"host": "h"}]},
        "scale": {"steps": 1},
    },
]

TOTALS = {
    "totals": {
        "runs": [["heal", "heal_end", "completed", 3]],
        "steps": [["heal_end", "s", 2.0]],
        "buckets": [["heal", "heal_end", "1.0", 1.0]],
        "seconds": [["heal", "heal_end", 1.0]],
    },
    "vnfs": {
        "v": {
            "stamp": [1, 2],
            "runs": ["r"],
            "last": {
                **{"name": "n", "failed": False, "under_way": True},
                **{"seconds": 1.5, "last": 2.5},
            },
        }
    },
    "checks": {"v": {"time": 1.5, "differences": {"heat": 1}, "unread": ["cluster"]}},
}

TEXTS: Mapping[str, Fed] = {
    "a manifest": parsed(DAEMON_SET, _manifest, "model.manifests.parse"),
    "a rendered chart": parsed(
        DAEMON_SET,
        lambda content: _sources(content)._rendered(
            APP, Chart("a", "1", b""), _rendering(content)
        ),
        "features.applications.sources.Sources._parsed",
    ),
    "manifests of an application": parsed(
        DAEMON_SET,
        lambda content: _sources(content)._of_manifests(APP),
        "features.applications.sources.Sources._parsed",
    ),
    "a manifest's list": parsed(
        {"kind": "List", "items": [SERVICE, DAEMON_SET]}, _manifest
    ),
    "a manifest's definitions": parsed(
        DEFINITION, _defined, "features.applications.host._defined"
    ),
    "a chart": parsed(
        {"name": "a", "version": "1.0.0"},
        _chart,
        "features.applications.sources._version",
    ),
    "a profile": parsed(
        {"parameters": {"cluster": {"helm": True}}},
        _profile,
        "request.profile_document.parse",
    ),
    "manifests of a CNF": parsed(
        SERVICE,
        _services_of_cnf,
        "hooks.cnf.manifests.services",
        "model.services.Service.read",
    ),
    "exposure of a CNF": parsed(
        {"services": [{"name": "a"}]}, cnf_exposure.parse, "request.cnf_exposure.parse"
    ),
    "lists in the metadata": parsed(
        [{"name": "a", "namespaces": ["b"]}],
        lambda content: all_of(
            lambda: reader.with_metadata_lists(
                WrittenRequest({}), {"k8s_tenants": content}
            ),
            lambda: reader.problems({"k8s_applications": content}),
        ),
        "request.reader._replaced",
    ),
    "clouds.yaml": parsed(
        {"clouds": {"a": {"auth": {"auth_url": "https://x"}, "verify": True}}},
        in_file(lambda path: client._check_first([path], "a")),
        "tools.cloud.client._check_first",
    ),
    "a document on the command line": parsed(
        {"a": [1.5]}, in_file(request_input.load), "tools.cli.request_input.load"
    ),
    "a journal's record": parsed(
        JOURNAL[2],
        lambda content: _journal(
            "\n".join([*map(json.dumps, JOURNAL[:2]), content, ""])
        ),
        *("journal._records", "model.untrusted.number_of"),
        *("model.timeline.Timeline.add", "model.timeline._step"),
        *("model.playbooks.look",),
    ),
    "a journal's beginning": parsed(
        JOURNAL[0] | JOURNAL[4] | {"event": "operation-start"},
        lambda content: _journal(f"{content}\n"),
        "model.timeline._scale",
    ),
    "a journal's end": parsed(
        JOURNAL[4],
        lambda content: _journal(
            "\n".join([*map(json.dumps, JOURNAL[:4]), content, ""])
        ),
        "metrics._Collector._steps",
        "metrics._Collector._last_runs",
    ),
    "a cluster's identity": parsed(
        {"endpoint": "https://x", "ca_certificate": "c", "uid": "u"},
        _identity,
        "hooks.v2.connections.read",
    ),
    "totals": parsed(
        TOTALS,
        lambda content: _collected(State.read(content)),
        "metrics.State.read",
        "metrics.Totals.read",
        "metrics._Collector._steps",
        "metrics._Collector._last_runs",
    ),
}
