# SPDX-License-Identifier: Apache-2.0
"""The file for node exporter's textfile collector.

Its metrics are described in ``doc/source/monitoring.rst``.
"""

import os
from collections.abc import Collection, Iterator, Mapping
from itertools import accumulate
from pathlib import Path

from prometheus_client import CollectorRegistry, generate_latest
from prometheus_client.core import (
    CounterMetricFamily,
    GaugeMetricFamily,
    HistogramMetricFamily,
    Metric,
    SummaryMetricFamily,
)

from tacker_k8s_mgmt.files import as_owner_of, replacing
from tacker_k8s_mgmt.metrics import state
from tacker_k8s_mgmt.metrics.state import State
from tacker_k8s_mgmt.metrics.totals import LIMITS, OUTCOMES, Key

FILE = "tacker_k8s_mgmt.prom"
_PREFIX = "tacker_k8s_mgmt"
_HOOK = ("operation", "hook")
_STEP = ("hook", "step")
_VNF = "vnf_instance_id"


def text(state_path: str) -> str:
    """The metrics of all journals so far.

    :raises OSError: the state directory cannot be read or written.
    """
    with state.changed(state_path) as current:
        current.add_journals(state_path)
        return generate_latest(_registry(current)).decode()


def write(state_path: str, directory: str) -> str:
    """Write the metrics of all journals so far.

    :returns: the path of the file.
    :raises OSError: the state or the file cannot be read or written.
    """
    with state.changed(state_path) as current:
        return _write(state_path, directory, current)


def write_check(
    state_path: str,
    directory: str,
    vnf_id: str,
    differences: Mapping[str, int],
    unread: Collection[str],
) -> None:
    """Write the metrics, with those of a comparison of a cluster's sources.

    :param differences: their number by source.
    :param unread: the sources that could not be read.
    :raises OSError: as of :func:`write`.
    """
    with state.changed(state_path) as current:
        current.record_check(vnf_id, differences, unread)
        _write(state_path, directory, current)


def _write(state_path: str, directory: str, current: State) -> str:
    current.add_journals(state_path)
    path = os.path.join(directory, FILE)
    content = generate_latest(_registry(current))
    # The collector reads as another user, and only files that end with .prom.
    with as_owner_of(directory), replacing(Path(path), mode=0o644) as new:
        new.write_bytes(content)
    return path


def _registry(current: State) -> CollectorRegistry:
    registry = CollectorRegistry()
    registry.register(_Collector(current))
    return registry


class _Collector:
    """The metrics of a state."""

    def __init__(self, current: State) -> None:
        self._state = current
        self._totals = current.totals

    def collect(self) -> Iterator[Metric]:
        """The families, in the order of the file."""
        yield self._runs()
        yield self._durations()
        yield self._playbooks()
        yield self._steps()
        yield self._step_failures()
        yield from self._last_runs()
        yield from self._checks()

    def _runs(self) -> Metric:
        family = CounterMetricFamily(
            f"{_PREFIX}_hook_runs",
            "Hooks of Tacker's LCM operations that have ended.",
            labels=(*_HOOK, "outcome"),
        )
        for place in sorted({key[:2] for key in self._totals.runs}):
            # A series that begins with its first event has no increase.
            for outcome in OUTCOMES:
                key = (*place, outcome)
                family.add_metric(key, self._totals.runs.get(key, 0.0))
        return family

    def _durations(self) -> Metric:
        family = HistogramMetricFamily(
            f"{_PREFIX}_hook_duration_seconds",
            "Durations of hooks that have completed.",
            labels=_HOOK,
        )
        for place, seconds in sorted(self._totals.seconds.items()):
            counts = [
                self._totals.buckets.get((*place, limit), 0.0) for limit in LIMITS
            ]
            buckets = list(zip(LIMITS, accumulate(counts), strict=True))
            family.add_metric(place, buckets, seconds)
        return family

    def _playbooks(self) -> Metric:
        return _counter(
            f"{_PREFIX}_playbook_seconds",
            "Durations of the steps of completed hooks that ran playbooks.",
            _HOOK,
            self._totals.playbook_seconds,
        )

    def _steps(self) -> Metric:
        family = SummaryMetricFamily(
            f"{_PREFIX}_step_duration_seconds",
            "Durations of steps that were done; those that were already so are left "
            "out.",
            labels=_STEP,
        )
        for key, count in sorted(self._totals.steps.items()):
            seconds = self._totals.step_seconds.get(key, 0.0)
            family.add_metric(key, int(count), seconds)
        return family

    def _step_failures(self) -> Metric:
        known = {key: 0.0 for key in (*self._totals.steps, *self._totals.step_failures)}
        return _counter(
            f"{_PREFIX}_step_failures",
            "Steps that have failed.",
            _STEP,
            {**known, **self._totals.step_failures},
        )

    def _last_runs(self) -> Iterator[Metric]:
        lasts = {
            vnf_id: vnf["last"]
            for vnf_id, vnf in sorted(self._state.vnfs.items())
            if vnf["last"] is not None
        }
        info = GaugeMetricFamily(
            f"{_PREFIX}_vnf_info",
            "VNF instances that are not terminated, with their last recorded names.",
            labels=(_VNF, "vnf_name"),
        )
        for vnf_id, last in lasts.items():
            info.add_metric((vnf_id, last["name"]), 1)
        yield info
        for name, description, key in (
            ("last_hook_failed", "Whether the last hook has failed.", "failed"),
            (
                "operation_under_way",
                "Whether the last hook, or one that follows it, has not ended.",
                "under_way",
            ),
            (
                "last_hook_duration_seconds",
                "Duration of the last hook; 0 until it has ended.",
                "seconds",
            ),
            (
                "last_record_timestamp_seconds",
                "Time of the last record in the journal.",
                "last",
            ),
        ):
            values = {vnf_id: float(last[key]) for vnf_id, last in lasts.items()}
            yield _gauge(f"{_PREFIX}_{name}", description, values)

    def _checks(self) -> Iterator[Metric]:
        checks = dict(sorted(self._state.checks.items()))
        labels = (_VNF, "source")
        differences = GaugeMetricFamily(
            f"{_PREFIX}_check_differences",
            "Differences that the last `cluster check` has found, by source.",
            labels=labels,
        )
        unread = GaugeMetricFamily(
            f"{_PREFIX}_check_source_unread",
            "Whether the last `cluster check` could not read the source.",
            labels=labels,
        )
        for vnf_id, check in checks.items():
            for source, count in check["differences"].items():
                differences.add_metric((vnf_id, source), count)
                unread.add_metric((vnf_id, source), float(source in check["unread"]))
        yield differences
        yield unread
        yield _gauge(
            f"{_PREFIX}_check_timestamp_seconds",
            "Time of the last `cluster check`.",
            {vnf_id: check["time"] for vnf_id, check in checks.items()},
        )


def _counter(
    name: str, description: str, labels: Key, sums: Mapping[Key, float]
) -> CounterMetricFamily:
    family = CounterMetricFamily(name, description, labels=labels)
    for key, value in sorted(sums.items()):
        family.add_metric(key, value)
    return family


def _gauge(
    name: str, description: str, values: Mapping[str, float]
) -> GaugeMetricFamily:
    family = GaugeMetricFamily(name, description, labels=(_VNF,))
    for vnf_id, value in values.items():
        family.add_metric((vnf_id,), value)
    return family
