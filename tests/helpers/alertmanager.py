# SPDX-License-Identifier: Apache-2.0
"""A real Alertmanager with the sample's routes, and alerts of the sample's rules."""

import contextlib
import datetime
import re
import subprocess
import time
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import requests
import yaml

from lab.client import Patience
from tests.helpers.backends import free_ports
from tests.helpers.tool_warnings import warnings_in
from tests.tree import ROOT

MONITORING = ROOT / "samples" / "v2" / "monitoring"
#: Of the package prometheus-alertmanager.
PROGRAM = "prometheus-alertmanager"
SILENCE = 60.0


def rules() -> dict[str, dict[str, str]]:
    """The labels of each of the sample's rules, by the name of its alert."""
    groups = yaml.safe_load((MONITORING / "rules.yaml").read_text())["groups"]
    return {
        rule["alert"]: rule["labels"] for group in groups for rule in group["rules"]
    }


def alert(name: str, vnf_id: str, **of_metric: str) -> dict[str, str]:
    """The labels of an alert that Prometheus makes of a rule and a metric.

    :param of_metric: the labels of the metric that a rule's templates may name.
    """

    def filled(template: str) -> str:
        named = re.sub(
            r"\{\{ \$labels\.(\w+) \}\}", lambda one: of_metric[one[1]], template
        )
        return named.replace("VNF_INSTANCE_ID", vnf_id)

    labels = {label: filled(value) for label, value in rules()[name].items()}
    return {"alertname": name, **of_metric, **labels}


class Alertmanager:
    """Its API, as Prometheus uses it."""

    def __init__(self, port: int) -> None:
        self._url = f"http://127.0.0.1:{port}"

    def is_ready(self) -> bool:
        """Whether it takes alerts."""
        with contextlib.suppress(requests.ConnectionError):
            return requests.get(f"{self._url}/-/ready", timeout=5).ok
        return False

    def fire(self, *alerts: Mapping[str, str]) -> None:
        """Report alerts by their labels; they fire until they are resolved."""
        self._post([{"labels": labels, "startsAt": _now()} for labels in alerts])

    def resolve(self, *alerts: Mapping[str, str]) -> None:
        """Report alerts that have ended."""
        self._post([{"labels": labels, "endsAt": _now()} for labels in alerts])

    def _post(self, body: list[dict[str, Any]]) -> None:
        done = requests.post(f"{self._url}/api/v2/alerts", json=body, timeout=5)
        done.raise_for_status()


def _now() -> str:
    return datetime.datetime.now(datetime.timezone.utc).isoformat()


@contextlib.contextmanager
def alertmanager(place: Path, tacker: str) -> Iterator[Alertmanager]:
    """Run one on loopback that posts to Tacker, at once in place of after 30 seconds.

    :param place: for its configuration, data and log.
    :param tacker: address and port, for the sample's placeholder.
    """
    sample = (MONITORING / "alertmanager.yaml").read_text()
    text = re.sub(
        r"group_wait: \w+", "group_wait: 1s", sample.replace("TACKER", tacker)
    )
    (place / "alertmanager.yaml").write_text(text)
    (port,) = free_ports(1)
    argv = [PROGRAM, f"--config.file={place / 'alertmanager.yaml'}"]
    argv += [f"--storage.path={place / 'alertmanager'}", "--cluster.listen-address="]
    argv += [f"--web.listen-address=127.0.0.1:{port}"]
    made = Alertmanager(port)
    log = place / "alertmanager.log"
    with log.open("w") as output:
        process = subprocess.Popen(argv, stdout=output, stderr=output)
        try:
            patience = Patience(lambda: log.stat().st_size, SILENCE)
            while not made.is_ready():
                if process.poll() is not None or patience.is_over():
                    raise RuntimeError(log.read_text())
                time.sleep(0.1)
            unexpected = warnings_in(log.read_text())
            assert not unexpected, unexpected
            yield made
        finally:
            process.terminate()
            process.wait(timeout=60)
