# SPDX-License-Identifier: Apache-2.0
"""The sample dashboard, the sample alerts and the documentation name what there is."""

import itertools
import json
import re
from pathlib import Path

import pytest
import yaml
from prometheus_client.parser import text_string_to_metric_families

from tacker_k8s_mgmt import metrics
from tests.unit.tools.cli.journals import VNF, Recorder

ROOT = Path(__file__).resolve().parents[3]
SAMPLES = ROOT / "samples" / "monitoring"
PAGE = ROOT / "doc" / "source" / "monitoring.rst"
DASHBOARD = json.loads((SAMPLES / "grafana-dashboard.json").read_text())
ALERTS = yaml.safe_load((SAMPLES / "alerts.yml").read_text())
RULES = [rule for group in ALERTS["groups"] for rule in group["rules"]]
QUERIES = [
    *(target["expr"] for panel in DASHBOARD["panels"] for target in panel["targets"]),
    *(variable["query"]["query"] for variable in DASHBOARD["templating"]["list"][1:]),
    *(rule["expr"] for rule in RULES),
]
# Of node exporter and Prometheus themselves.
OTHERS = {"node_textfile_mtime_seconds"}
LABELS_OF_OTHERS = {"instance", "file"}


@pytest.fixture(scope="module")
def families(tmp_path_factory):
    """All metrics that there are."""
    directory = tmp_path_factory.mktemp("metrics")
    one = Recorder(directory).begin(vnf_name="edge")
    one.step_start(kind="run")
    one.step_end()
    one.end()
    metrics.write_check(str(directory), str(directory), VNF, {"heat": 1}, ["heat"])
    text = (directory / metrics.FILE).read_text()
    return list(text_string_to_metric_families(text))


@pytest.fixture(scope="module")
def samples(families):
    return {sample.name for family in families for sample in family.samples}


@pytest.mark.parametrize("query", QUERIES)
def test_queries_name_existing_metrics_and_labels(query, families, samples):
    named = set(re.findall(r"(?:tacker_k8s_mgmt|node)_\w+", query))
    assert named
    assert named <= samples | OTHERS
    known = {
        label
        for family in families
        for sample in family.samples
        for label in sample.labels
    }
    used = {
        label.strip()
        for labels in re.findall(r"(?:by|on|group_left) \((.*?)\)", query)
        for label in labels.split(",")
    }
    used |= set(re.findall(r"(\w+)=~?\"", query))
    assert used <= known | LABELS_OF_OTHERS


def test_each_metric_is_described(families, samples):
    page = PAGE.read_text()
    described = set(re.findall(r"tacker_k8s_mgmt_\w+", page))
    assert described >= {family.name for family in families if family.type == "gauge"}
    for family in families:
        names = {family.name, f"{family.name}_total"}
        assert names & described, family.name
    assert described <= samples | {family.name for family in families}


def test_panels_have_places_of_their_own():
    places = [panel["gridPos"] for panel in DASHBOARD["panels"]]
    assert all(place["x"] + place["w"] <= 24 for place in places)
    for one, other in itertools.combinations(places, 2):
        assert (
            one["x"] + one["w"] <= other["x"]
            or other["x"] + other["w"] <= one["x"]
            or one["y"] + one["h"] <= other["y"]
            or other["y"] + other["h"] <= one["y"]
        )
    ids = [panel["id"] for panel in DASHBOARD["panels"]]
    assert len(set(ids)) == len(ids)


def test_the_dashboard_belongs_to_no_installation():
    sources = re.findall(r'"uid": "(.*?)"', json.dumps(DASHBOARD))
    assert set(sources) == {"tacker-k8s-mgmt", "${datasource}"}


def test_each_alert_says_what_to_do():
    assert len({rule["alert"] for rule in RULES}) == len(RULES)
    for rule in RULES:
        assert rule["labels"]["severity"] in ("warning", "info")
        assert set(rule["annotations"]) == {"summary", "description"}
        assert rule["alert"] in PAGE.read_text()
