# SPDX-License-Identifier: Apache-2.0
"""Operations in the lab, through Tacker's REST API, and what is seen of them there."""

import copy
import json
import time
import uuid
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

from benchmarks import figures, package
from benchmarks.figures import OperationFigures
from lab import client, settings
from lab.cloud.addresses import ANSIBLE_SERVER_ADDRESS, CONTROLLER_ADDRESS
from lab.settings import ROOT
from tacker_k8s_mgmt import journal
from tacker_k8s_mgmt.model.timeline import Timeline

REQUESTS = ROOT / "samples" / "requests"
PARAMETERS = "k8s_cluster_installation_param"
# Three words of the pid file, and then the start; see remote/ansible/run_files/run.sh.
_RUNS = 'for run in {directory}/runs/*/; do echo $(cat "$run/pid" "$run/rc"); done'


class Observer:
    """What can be seen of the hooks of one VNF instance while an operation runs."""

    def __init__(self, vnf_id: str) -> None:
        places = settings.from_environment()
        self._journal = journal.path_of(str(places.journals), vnf_id)
        self._heat_log = places.log / "heat-api.log"
        self._hosts = places.cloud / "hosts"
        self._offset = journal.read(self._journal)[1]
        self._timeline = Timeline()
        self._counted = self._logins()
        self._logins_of: list[dict[str, int]] = []

    def look(self) -> None:
        """Count the logins of each hook that has ended since the last look.

        Between two hooks Heat works, so there are no logins before the next poll.
        """
        records, self._offset = journal.read(self._journal, self._offset)
        for record in records:
            self._timeline.add(record)
        ended = sum(
            operation.ended is not None for operation in self._timeline.operations
        )
        while len(self._logins_of) < ended:
            now = self._logins()
            self._logins_of.append(figures.growth(self._counted, now))
            self._counted = now

    def figures(
        self, name: str, seconds: float, runs: list[figures.PlaybookRun]
    ) -> OperationFigures:
        """The figures of the operation that was observed."""
        self.look()
        answered = figures.answers(self._heat_log.read_text(errors="replace"))
        hooks = zip(self._timeline.operations, self._logins_of, strict=True)
        return OperationFigures(
            name,
            seconds,
            tuple(
                figures.hook_figures(hook, runs, answered, logins)
                for hook, logins in hooks
            ),
        )

    def _logins(self) -> dict[str, int]:
        """Logins of the conductor on each host that runs, by the host's id."""
        found = {}
        for host in self._hosts.iterdir():
            # It may go while we look.
            with suppress(OSError, IndexError):
                pid = (host / "pid").read_text().split()[0]
                log = Path("/proc", pid, "root/var/log/sshd.log").read_text()
                found[host.name] = figures.accepted(log, CONTROLLER_ADDRESS)
        return found


class Cluster:
    """One VNF instance whose operations are measured.

    :param level: instantiation level, which says how many workers there are.
    """

    def __init__(self, vnfd_id: str, level: str) -> None:
        self._tacker = client.tacker()
        name = f"benchmark-{uuid.uuid4().hex[:6]}"
        self._id = str(self._tacker.create(vnfd_id, name)["id"])
        self._directory = f"/home/ansible/clusters/{name}"
        self._body = _request("instantiate-simple.json")
        self._body["instantiationLevelId"] = level
        ours = self._body["additionalParams"][PARAMETERS]
        ours["vim_name"] = name
        ours["ansible"]["transferring_inventory_path"] = self._directory

    def life(self, by: Sequence[int], heal: bool = True) -> Iterator[OperationFigures]:
        """Each operation, measured, and a cluster as large as before at the end.

        :param by: how many workers each scale-out adds and the next scale-in takes.
        """
        yield self._measure("instantiate", "instantiate", self._body)
        if heal:
            healed = {"vnfcInstanceId": [self._worker()], "cause": "a benchmark"}
            yield self._measure("heal 1", "heal", healed)
        for steps in by:
            for kind in ("out", "in"):
                body = {
                    "type": f"SCALE_{kind.upper()}",
                    "aspectId": "worker_instance",
                    "numberOfSteps": steps,
                }
                yield self._measure(f"scale {kind} {steps}", "scale", body)

    def end(self) -> None:
        """Terminate and delete the VNF instance in any state."""
        for occurrence in self._tacker.failed(self._id):
            self._tacker.handle(occurrence, "fail")
        if self._tacker.show(self._id)["instantiationState"] == "INSTANTIATED":
            body = _request("terminate.json")
            operation = self._tacker.operate(self._id, "terminate", body)
            self._tacker.wait(operation, "COMPLETED")
        self._tacker.delete(self._id)

    def _measure(
        self, name: str, verb: str, body: Mapping[str, Any]
    ) -> OperationFigures:
        seen = Observer(self._id)
        began = time.monotonic()
        operation = self._tacker.operate(self._id, verb, copy.deepcopy(dict(body)))
        self._tacker.wait(operation, "COMPLETED", tick=seen.look)
        seconds = time.monotonic() - began
        listing = _RUNS.format(directory=self._directory)
        told = client.on_host(ANSIBLE_SERVER_ADDRESS, "sh", "-c", listing)
        return seen.figures(name, seconds, figures.playbook_runs(told))

    def _worker(self) -> str:
        info = self._tacker.show(self._id)["instantiatedVnfInfo"]["vnfcResourceInfo"]
        return next(str(one["id"]) for one in info if one["vduId"] == "workerNode")


def measure(
    level: str,
    runs: int,
    by: Sequence[int],
    scratch: Path,
    tell: Callable[[str], None],
) -> tuple[list[OperationFigures], list[str]]:
    """The operations of that many clusters, one after the other.

    :param by: as :meth:`Cluster.life` has it; the first run does all of it and every
        other one the first of it alone, for ten workers take minutes of Heat's time.
    :returns: the figures, and what failed: a run ends with its first failure.
    """
    tacker = client.tacker()
    csar = package.make(scratch)
    uploaded = tacker.upload_package(csar, {"benchmark": uuid.uuid4().hex})
    found: list[OperationFigures] = []
    failures: list[str] = []
    for run in range(1, runs + 1):
        cluster = Cluster(uploaded["vnfdId"], level)
        try:
            for one in cluster.life(by if run == 1 else by[:1]):
                found.append(one)
                tell(f"run {run}/{runs}: {one.name}: {one.seconds:.1f} s")
            cluster.end()
        except RuntimeError as error:
            failures.append(f"run {run}/{runs}: {error}")
            tell(failures[-1])
            with suppress(RuntimeError):
                cluster.end()
    with suppress(RuntimeError):
        # It is in use where a cluster could not be ended.
        tacker.delete_package(uploaded["id"])
    return found, failures


def _request(name: str) -> dict[str, Any]:
    return dict(json.loads((REQUESTS / name).read_text()))
