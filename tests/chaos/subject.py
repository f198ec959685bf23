# SPDX-License-Identifier: Apache-2.0
"""A cluster of a campaign, and the requests that are sent for it."""

import contextlib
import json
import tempfile
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

from tests.chaos import catalogue, operations, plan
from tests.chaos.cnfs import Cnfs
from tests.chaos.pace import PACES
from tests.integration import applications, exposed, workloads
from tests.integration.cluster import PARAMETERS, PHASE, ROOT, Cluster
from tests.integration.laboratory import Lab
from tests.integration.v2 import LabV2

#: So that faults come while playbooks run, and a blocked drain does not take minutes.
_VARIABLES = {"lab_task_seconds": 0.4}
_DRAIN = {"timeout": 45}
_NAMESPACE = {"apiVersion": "v1", "kind": "Namespace"}
_LABEL = "k8s_nodes:worker:label:example.com/chaos"


class Subject:
    """One cluster, which is recreated after it was terminated.

    :param name: of :data:`.plan.CLUSTERS`.
    :ivar cut_off: a conductor was killed while it worked on it.
    :ivar leaving: servers that requests of this step have to delete.
    :ivar shrinks: how many more workers they may delete.
    :ivar disrupted: the fault of this step has stopped pods by itself.
    :ivar replaced: it was recreated as a whole.
    """

    kind = catalogue.QUICK
    labs: tuple[type[Lab], type[LabV2]] = (Lab, LabV2)
    variables: Mapping[str, Any] = _VARIABLES
    drain: Mapping[str, Any] = _DRAIN
    tenant: Mapping[str, Any] = {}

    def __init__(self, name: str) -> None:
        kind = plan.CLUSTERS[name]
        self.name, self.balanced = name, kind.balanced
        self.is_v2 = kind.api == "v2"
        self.pace = PACES[self.kind]
        #: What has to hold besides :data:`.invariants.STANDING`.
        self.checks: tuple[Callable[[Subject], Iterator[str]], ...] = ()
        scratch = Path(tempfile.mkdtemp(prefix="chaos-"))
        flavour = "ha" if kind.available else "simple"
        samples = ROOT / "samples" / ("v2" if self.is_v2 else "")
        source = applications.source(samples, scratch / "samples", flavour)
        self.lab: Lab = self.labs[self.is_v2](scratch, flavour, source)
        self._stack = contextlib.ExitStack()
        self._changes = 0
        self.cut_off = self.disrupted = self.replaced = False
        self.leaving: set[str] = set()
        self.shrinks = 0
        self._loaded = ""
        self.cluster = self._new()

    def _new(self) -> Cluster:
        made = self._stack.enter_context(
            self.lab.instance(
                f"chaos-{self.name}",
                secret=True,
                kubespray_vars=dict(self.variables),
                drain=dict(self.drain),
            )
        )
        if not self.balanced:
            del made.parameters["external_lb_param"]
        if isinstance(self.lab, LabV2):
            self.lab.keep_secrets_in_barbican(made.parameters)
        self.cnfs = Cnfs(self.lab, made)
        self._stack.callback(self.cnfs.remove)
        return made

    def renew(self) -> None:
        """Give up the VNF instance, and have another one."""
        with contextlib.suppress(Exception):
            self.close()
        self.cut_off = False
        self.cluster = self._new()

    def put_to_use(self) -> None:
        """Have the workload on it that must outlive whatever happens."""
        if self.stands and not self.is_loaded:
            apply = ("apply", "-f", "-")
            self.cluster.kubectl(*apply, stdin=workloads.WORKLOADS)
            namespace = {"metadata": {"name": exposed.NAMESPACE}, **_NAMESPACE}
            self.cluster.kubectl(*apply, stdin=json.dumps(namespace))
            self._loaded = self.cluster.uid
        self.replaced = False

    def incidents(self) -> list[str]:
        """What did not hold for a while since this was called the last time."""
        return []

    def changes(self, fault: str, cured: str) -> dict[str, Any]:
        """What the request itself has of a fault.

        :param cured: file on the Ansible server with which playbooks fail no more.
        """
        if fault in ("playbook fails once", "wrong verb"):
            return faulty(until=cured)
        return {}

    def close(self) -> None:
        """Terminate and delete what there is."""
        self._stack.close()

    @property
    def stands(self) -> bool:
        """Whether it is instantiated."""
        return bool(self.cluster.show()["instantiationState"] == "INSTANTIATED")

    def worker(self) -> str:
        """The server of one of its workers, always the same one of the same workers."""
        return min(self.cluster.workers().items())[1]

    def begin(self, operation: str, **changes: Any) -> None:
        """Send the request of an operation.

        :param changes: structures of our parameters to change, where it has them.
        """
        requests: Mapping[str, Callable[..., None]] = {
            "instantiate": self._instantiate,
            "scale out": lambda **c: self.cluster.begin_scale("OUT", **c),
            "scale in": lambda **c: self.cluster.begin_scale("IN"),
            "heal worker": lambda **c: self.cluster.begin_heal(self.worker(), **c),
            "heal load balancer": lambda **c: self.cluster.begin_heal(
                self.cluster.server("externalLB")
            ),
            "heal control plane": lambda **c: self.cluster.begin_heal(
                self.cluster.server("masterNode")
            ),
            "heal VNF": lambda **c: self.cluster.begin_heal(**c),
            "modify labels": lambda **c: self._label(),
            "change tenants": lambda **c: self._change_tenants(),
            "change applications": lambda **c: self._change_applications(),
            "maintenance": lambda **c: self._maintain(),
            "end of maintenance": lambda **c: self._resume(),
            "terminate": lambda **c: self.cluster.begin_termination(),
        }
        self.replaced |= operation in (operations.FIRST, operations.LAST, "heal VNF")
        self.leaving |= self._goes(operation)
        self.shrinks += operation == "scale in"
        if operation in operations.CNF:
            self.cluster.follow(self.cnfs.begin(operation))
        else:
            requests[operation](**changes)

    def begin_step(self) -> None:
        """Forget what a former step has done."""
        self.disrupted = False
        self.leaving, self.shrinks = set(), 0

    def _goes(self, operation: str) -> set[str]:
        """The servers that an operation is to delete."""
        match operation:
            case "heal worker":
                return {self.worker()}
            case "heal load balancer":
                return {self.cluster.server("externalLB")}
            case "heal control plane":
                return {self.cluster.server("masterNode")}
        return self.servers() if operation in operations.ALONE else set()

    def servers(self) -> set[str]:
        """Ids of its VMs."""
        return {host.id for host in self.cluster.hosts()}

    def prepare(self, operation: str) -> str:
        """The operation without which this one makes no sense now; "" for none."""
        begin, *later = operations.CNF
        if operation in later and not self.cnfs.stands:
            return str(begin)
        if operation == "scale in" and len(self.cluster.workers()) <= 2:
            return "scale out"
        return ""

    @property
    def is_loaded(self) -> bool:
        """Whether it is still the cluster on which the workload was put."""
        return self.cluster.uid == self._loaded

    def journal_of(self, operation: str) -> str:
        """The VNF instance in whose journal an operation is."""
        return self.cnfs.id if operation in operations.CNF else str(self.cluster.id)

    def _instantiate(self, **changes: Any) -> None:
        before = {name: self.cluster.parameters.get(name) for name in changes}
        self.cluster.parameters.update(changes)
        try:
            self.cluster.begin_instantiation()
        finally:
            for name, value in before.items():
                self.cluster.parameters[name] = value

    def _label(self) -> None:
        self._changes += 1
        self.cluster.begin_modification({_LABEL: f"v{self._changes}"})

    def _change_tenants(self) -> None:
        self._changes += 1
        quota = {"pods": 10 + self._changes}
        tenants = [{"name": "blue", "quota": quota, **self.tenant}]
        self.cluster.begin_modification({"k8s_tenants": json.dumps(tenants)})

    def _change_applications(self) -> None:
        self._changes += 1
        wanted = []
        # Nothing that runs could be asked here; each third time there is none.
        if self._changes % 3:
            notes = applications.notes(expose=[])
            del notes["probe"]
            value = {"key": "changes", "value": str(self._changes)}
            notes["config"][0]["data"].append(value)
            wanted.append(notes)
        entry = wanted if self.is_v2 else json.dumps(wanted)
        self.cluster.begin_modification({applications.ENTRY: entry})

    def _maintain(self) -> None:
        self._modify_maintenance(self.cluster.vnfc(self.worker()), "true")

    def _resume(self) -> None:
        vnfc = self.maintained or self.cluster.vnfc(self.worker())
        self._modify_maintenance(vnfc, None)

    def _modify_maintenance(self, vnfc: str, value: str | None) -> None:
        self.cluster.begin_modification({f"k8s_nodes:vnfc:{vnfc}:maintenance": value})

    @property
    def maintained(self) -> str:
        """The VNFC that is in maintenance by the metadata, "" for none."""
        metadata = self.cluster.show().get("metadata") or {}
        named = [name for name in metadata if name.endswith(":maintenance")]
        return named[0].split(":")[2] if named else ""


def faulty(**fault: Any) -> dict[str, Any]:
    """Variables with which a task of kubespray fails on the workers."""
    wanted = {"task": PHASE, "host": "worker-*", "message": "no room"}
    return {"kubespray_vars": {**_VARIABLES, "lab_fault": {**wanted, **fault}}}


__all__ = ["PARAMETERS", "Subject", "faulty"]
