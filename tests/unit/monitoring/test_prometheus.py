# SPDX-License-Identifier: Apache-2.0
"""The sample rules and routes, by Prometheus' and Alertmanager's own tools."""

import subprocess

import pytest
import yaml

from tests.helpers.tool_warnings import warnings_in
from tests.tree import ROOT

SAMPLES = {
    "ALERTS": ROOT / "samples" / "monitoring" / "alerts.yml",
    "RULES": ROOT / "samples" / "v2" / "monitoring" / "rules.yaml",
}
TESTS = {
    "ALERTS": ROOT / "tests" / "unit" / "monitoring" / "alerts.test.yml",
    "RULES": ROOT / "tests" / "unit" / "monitoring" / "rules.test.yml",
}
ROUTES = ROOT / "samples" / "v2" / "monitoring" / "alertmanager.yaml"
NAMES = sorted(SAMPLES)


def tool(*argv):
    done = subprocess.run(argv, capture_output=True, text=True, timeout=60)
    # Debian's amtool has a URL of its own.
    usual = "--config.file flag overrides the --alertmanager.url"
    assert warnings_in(done.stdout + done.stderr, usual) == []
    return done


def rules(content):
    return [rule for group in content["groups"] for rule in group["rules"]]


def spoiled():
    """Each sample with one of its alerts firing at once or never."""
    for name, path in SAMPLES.items():
        for number, rule in enumerate(rules(yaml.safe_load(path.read_text()))):
            for change in ({"for": "0s"}, {"expr": "vector(1) == 0"}):
                if rule.keys() >= change.keys():
                    content = yaml.safe_load(path.read_text())
                    rules(content)[number].update(change)
                    case = f"{rule['alert']} {next(iter(change))}"
                    yield pytest.param(name, yaml.dump(content), id=case)


def outcome(name, text, place):
    """Run the tests of a sample with this text in its place."""
    (place / "rules.yml").write_text(text)
    (place / "test.yml").write_text(TESTS[name].read_text().replace(name, "rules.yml"))
    return tool("promtool", "test", "rules", str(place / "test.yml"))


@pytest.mark.parametrize("name", NAMES)
def test_prometheus_reads_the_rules(name):
    done = tool("promtool", "check", "rules", str(SAMPLES[name]))
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.parametrize("name", NAMES)
def test_alerts_fire_for_what_they_are_about(name, tmp_path):
    done = outcome(name, SAMPLES[name].read_text(), tmp_path)
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.parametrize(("name", "text"), spoiled())
def test_an_alert_that_fires_at_once_or_never_is_noticed(name, text, tmp_path):
    assert outcome(name, text, tmp_path).returncode == 1


def test_alertmanager_reads_the_routes():
    done = tool("amtool", "check-config", str(ROUTES))
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.parametrize(
    ("labels", "receivers"),
    [
        (
            {"receiver_type": "tacker", "function_type": "auto_heal"},
            "operators,tacker-heal",
        ),
        (
            {"receiver_type": "tacker", "function_type": "auto_scale"},
            "operators,tacker-scale",
        ),
        ({"function_type": "auto_heal"}, "operators"),
        ({"severity": "warning"}, "operators"),
    ],
)
def test_tacker_gets_its_alerts_alone_and_operators_all(labels, receivers):
    words = [f"{name}={value}" for name, value in labels.items()]
    done = tool("amtool", "config", "routes", "test", f"--config.file={ROUTES}", *words)
    assert done.stdout.strip() == receivers
