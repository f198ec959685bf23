# SPDX-License-Identifier: Apache-2.0
"""Metrics of the operations, for Prometheus (``doc/source/monitoring.rst``).

Journals forget old operations, and processes end: the totals are kept in a file of
their own, which all processes of a host share. Every write adds to them what the
journals have had since, and writes the file for node exporter's textfile collector.
"""

import bisect
import fcntl
import json
import os
import re
import time
from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field, fields
from itertools import accumulate
from pathlib import Path
from typing import Any, TextIO

from oslo_log import log as logging
from prometheus_client import CollectorRegistry, generate_latest
from prometheus_client.core import (
    CounterMetricFamily,
    GaugeMetricFamily,
    HistogramMetricFamily,
    Metric,
    SummaryMetricFamily,
)
from pydantic import BaseModel, ConfigDict, TypeAdapter

from tacker_k8s_mgmt import journal
from tacker_k8s_mgmt.files import as_owner_of, naming, open_regular, replacing
from tacker_k8s_mgmt.model import untrusted
from tacker_k8s_mgmt.model.timeline import Operation, Step, Timeline
from tacker_k8s_mgmt.text import in_line

OUTCOMES = ("completed", "failed", "cut_off")
_COMPLETED, _, _CUT_OFF = OUTCOMES
_BUCKETS = (1, 5, 15, 30, 60, 120, 300, 600, 1200, 1800, 3600, 7200)
#: Upper limits of the buckets of durations, in seconds.
LIMITS = (*(str(float(limit)) for limit in _BUCKETS), "+Inf")

_UUID = re.compile(r"\b[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}\b")

Key = tuple[str, ...]
Sums = defaultdict[Key, float]


def _sums() -> Sums:
    return defaultdict(float)


@dataclass(frozen=True)
class Totals:
    """What is added up, by the values of its labels.

    :ivar runs: hooks that have ended, by operation, hook and outcome.
    :ivar buckets: completed hooks, by operation, hook and upper limit of the duration.
    :ivar seconds: their durations, by operation and hook.
    :ivar playbook_seconds: of these, those of the steps that ran playbooks.
    :ivar steps: steps that were done, by hook and step.
    :ivar step_seconds: their durations.
    :ivar step_failures: steps that failed, likewise.
    """

    runs: Sums = field(default_factory=_sums)
    buckets: Sums = field(default_factory=_sums)
    seconds: Sums = field(default_factory=_sums)
    playbook_seconds: Sums = field(default_factory=_sums)
    steps: Sums = field(default_factory=_sums)
    step_seconds: Sums = field(default_factory=_sums)
    step_failures: Sums = field(default_factory=_sums)

    @classmethod
    def read(cls, document: Any) -> "Totals":
        """The totals of a JSON document; what is not as it should be is left out."""
        totals = cls()
        for name, counter in totals._named():
            with suppress(AttributeError, TypeError, ValueError):
                for *labels, value in document.get(name, ()):
                    counter[tuple(in_line(str(one)) for one in labels)] = (
                        untrusted.number(value)
                    )
        return totals

    def document(self) -> dict[str, Any]:
        """The same as JSON."""
        return {
            name: [[*labels, value] for labels, value in sorted(counter.items())]
            for name, counter in self._named()
        }

    def _named(self) -> Iterator[tuple[str, Sums]]:
        for each in fields(self):
            yield each.name, getattr(self, each.name)

    def add(self, timeline: Timeline, known: Iterable[str]) -> list[str]:
        """Add the hooks of a journal that have ended.

        :param known: ids of the runs that were added before.
        :returns: the ids of those of the journal that are added now.
        """
        added, before = [], frozenset(known)
        for operation in timeline.operations:
            # The next one begins only when this one is over.
            if operation.ended is None and operation is timeline.last:
                continue
            if operation.run not in before:
                self._add(operation)
            added.append(operation.run)
        return added

    def _add(self, operation: Operation) -> None:
        place = _without_ids(operation.name), _without_ids(operation.hook)
        outcome = operation.outcome if operation.ended is not None else _CUT_OFF
        if outcome not in OUTCOMES:
            return
        self.runs[(*place, outcome)] += 1
        if outcome == _COMPLETED:
            self.seconds[place] += operation.seconds
            self.playbook_seconds[place] += sum(
                step.seconds for step in operation.steps if step.looks
            )
            limit = LIMITS[bisect.bisect_left(_BUCKETS, operation.seconds)]
            self.buckets[(*place, limit)] += 1
        for step in operation.steps:
            self._add_step(place[1], step)

    def _add_step(self, hook: str, step: Step) -> None:
        # Former releases did not record the kind, and names have no limited number.
        if not step.kind:
            return
        if step.failed:
            self.step_failures[hook, step.kind] += 1
        elif step.outcome == "done":
            self.steps[hook, step.kind] += 1
            self.step_seconds[hook, step.kind] += step.seconds


def _without_ids(name: str) -> str:
    """A name of a limited number: work for a CNF has the id of its VNF instance."""
    return _UUID.sub("", name).rstrip()


def latest(timeline: Timeline) -> Mapping[str, Any] | None:
    """What is known of a VNF instance's last operation; None once it is terminated."""
    last = timeline.last
    if last is None or (last.name == "terminate" and last.final and not last.failed):
        return None
    return {
        "name": timeline.vnf_name,
        "failed": last.failed,
        "under_way": not last.final and not last.failed,
        "seconds": last.seconds,
        "last": last.last,
    }


LOG = logging.getLogger(__name__)

_DIRECTORY = "metrics"
_FILE, _LOCK = "totals.json", "lock"
_LOCK_SECONDS, _PAUSE_SECONDS = 10.0, 0.05
_LARGEST = 64 * 1024 * 1024


class _Stored(BaseModel):
    model_config = ConfigDict(strict=True)


class _Last(_Stored):
    name: str
    failed: bool
    under_way: bool
    seconds: float
    last: float


class _Vnf(_Stored):
    stamp: list[int]
    runs: list[str]
    last: _Last | None


class _Check(_Stored):
    time: float
    differences: dict[str, float]
    unread: list[str]


_VNFS, _CHECKS = TypeAdapter(dict[str, _Vnf]), TypeAdapter(dict[str, _Check])


@dataclass
class State:
    """What is known of all VNF instances.

    :ivar vnfs: by id: ``stamp`` of the journal that was read last, the ids of the
        ``runs`` in it that are in the totals, and what is known of the ``last`` one.
    :ivar checks: by id: ``time``, number of ``differences`` by source, and the sources
        that could not be read (``unread``) of the last comparison.
    """

    totals: Totals = field(default_factory=Totals)
    vnfs: dict[str, dict[str, Any]] = field(default_factory=dict)
    checks: dict[str, dict[str, Any]] = field(default_factory=dict)

    def add_journals(self, state_path: str) -> None:
        """Add what the journals have had since the last time."""
        found = journal.instances(state_path)
        for vnf_id in found:
            with suppress(FileNotFoundError):
                self._add_journal(vnf_id, journal.path_of(state_path, vnf_id))
        for vnf_id in self.vnfs.keys() - found:
            del self.vnfs[vnf_id]
        for vnf_id, vnf in self.vnfs.items():
            if vnf["last"] is None:
                self.checks.pop(vnf_id, None)

    def _add_journal(self, vnf_id: str, path: str) -> None:
        status = os.stat(path)
        stamp = [status.st_mtime_ns, status.st_size]
        known = self.vnfs.setdefault(vnf_id, {"stamp": [], "runs": [], "last": None})
        if known["stamp"] != stamp:
            timeline = Timeline(journal.read(path)[0])
            runs = self.totals.add(timeline, known["runs"])
            last = latest(timeline)
            self.vnfs[vnf_id] = {"stamp": stamp, "runs": runs, "last": last}

    def record_check(
        self, vnf_id: str, differences: Mapping[str, int], unread: Collection[str]
    ) -> None:
        """Record a comparison of a cluster's sources.

        :param differences: their number by source.
        :param unread: the sources that could not be read.
        """
        self.checks[vnf_id] = {
            "time": round(time.time(), 3),
            "differences": dict(differences),
            "unread": list(unread),
        }

    @classmethod
    def read(cls, text: str) -> "State":
        """The state as it was stored; a new one if the text is damaged."""
        try:
            document = untrusted.parse_json(text)
            # Half a character, which JSON may have, cannot be written for Prometheus.
            json.dumps(document, ensure_ascii=False).encode()
            totals = Totals.read(document["totals"])
            vnfs, checks = document["vnfs"], document["checks"]
            _VNFS.validate_python(vnfs)
            _CHECKS.validate_python(checks)
            return cls(totals, vnfs, checks)
        except (ValueError, KeyError, TypeError, AttributeError):
            LOG.warning("The totals for metrics are damaged and start again")
            return cls()

    def text(self) -> str:
        """The state to be stored."""
        return json.dumps({**vars(self), "totals": self.totals.document()})


@contextmanager
def changed(state_path: str) -> Iterator[State]:
    """The state, which is stored at the end; other processes wait meanwhile.

    :raises OSError: it cannot be read or written, another process keeps it, or there is
        no such directory.
    """
    # The conductor's user owns what root creates, and root follows no link of it.
    place = Path(state_path, _DIRECTORY)
    with as_owner_of(state_path) as held, _directory(place, held) as directory:

        def opened(path: str, flags: int) -> int:
            return open_regular(Path(path), flags, directory=directory)

        with open(place / _LOCK, "a", opener=opened) as lock:
            _acquire(lock)
            path, state = place / _FILE, State()
            with (
                suppress(FileNotFoundError),
                open(path, errors="replace", opener=opened) as file,
            ):
                state = State.read(file.read(_LARGEST))
            yield state
            with replacing(path, mode=0o600) as new:
                new.write_text(state.text())


@contextmanager
def _directory(path: Path, above: int) -> Iterator[int]:
    flags = os.O_PATH | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
    with naming(path):
        with suppress(FileExistsError):
            os.mkdir(path.name, 0o700, dir_fd=above)
        descriptor = os.open(path.name, flags, dir_fd=above)
    try:
        yield descriptor
    finally:
        os.close(descriptor)


def _acquire(lock: TextIO) -> None:
    """Wait for other processes of this host, which need only moments.

    :raises OSError: it takes too long.
    """
    until = time.monotonic() + _LOCK_SECONDS
    while True:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            return
        except BlockingIOError:
            if time.monotonic() > until:
                raise
        time.sleep(_PAUSE_SECONDS)


FILE = "tacker_k8s_mgmt.prom"
_PREFIX = "tacker_k8s_mgmt"
_HOOK = ("operation", "hook")
_STEP = ("hook", "step")
_VNF = "vnf_instance_id"


def text(state_path: str) -> str:
    """The metrics of all journals so far.

    :raises OSError: the state directory cannot be read or written.
    """
    with changed(state_path) as current:
        current.add_journals(state_path)
        return generate_latest(_registry(current)).decode()


def write(state_path: str, directory: str) -> str:
    """Write the metrics of all journals so far.

    :returns: the path of the file.
    :raises OSError: the state or the file cannot be read or written.
    """
    with changed(state_path) as current:
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
    with changed(state_path) as current:
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
            "Durations of steps that were done; those with nothing to do are left out.",
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
