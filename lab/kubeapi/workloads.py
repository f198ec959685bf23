# SPDX-License-Identifier: Apache-2.0
"""Deployments, StatefulSets, DaemonSets and Jobs, which make and remove pods."""

import copy
import hashlib
import json

from .admission import TEMPLATE_GENERATION
from .objects import (
    Obj,
    age,
    condition,
    daemon_tolerations,
    dig,
    is_ready,
    is_terminating,
    labels_of,
    name_of,
    namespace_of,
    timestamp,
    tolerates,
)
from .objects import owner_reference as reference_to
from .pods import attracted, pinned_node, pinned_to
from .resources import (
    DAEMON_SETS,
    DEPLOYMENTS,
    JOBS,
    NODES,
    PODS,
    REPLICA_SETS,
    STATEFUL_SETS,
    Resource,
)
from .store import Store, record_event

_HASH_LABEL = "pod-template-hash"
_TEMPLATE_LABEL = "pod-template-generation"


def run_workloads(store: Store) -> None:
    """One round over all of them."""
    rounds = (
        (DEPLOYMENTS, _deployment),
        (REPLICA_SETS, _replica_set),
        (STATEFUL_SETS, _stateful_set),
        (DAEMON_SETS, _daemon_set),
    )
    for resource, act in rounds:
        for owner in store.all(resource):
            # Of one that is deleted in the foreground, nothing is made again.
            if not is_terminating(owner):
                act(store, owner)


def _deployment(store: Store, deployment: Obj) -> None:
    spec = deployment["spec"]
    text = json.dumps(spec["template"], sort_keys=True).encode()
    digest = hashlib.sha256(text).hexdigest()[:9]
    name, current = f"{name_of(deployment)}-{digest}", None
    for replica_set in store.owned(REPLICA_SETS, deployment):
        is_current = name_of(replica_set) == name
        wanted = spec["replicas"] if is_current else 0
        scaled = {**replica_set["spec"], "replicas": wanted}
        replica_set = store.replace(REPLICA_SETS, replica_set, spec=scaled)
        current = replica_set if is_current else current
    if current is None:
        current = _new_replica_set(store, deployment, name, digest)
    status = current.get("status") or {}
    replicas, ready = status.get("replicas", 0), status.get("readyReplicas", 0)
    available = {
        "type": "Available",
        "status": str(ready >= spec["replicas"]),
        "reason": "MinimumReplicasAvailable",
    }
    store.replace(
        DEPLOYMENTS,
        deployment,
        status={
            "observedGeneration": deployment["metadata"]["generation"],
            "replicas": replicas,
            "updatedReplicas": replicas,
            "readyReplicas": ready,
            "availableReplicas": ready,
            "conditions": [available],
        },
    )


def _new_replica_set(store: Store, deployment: Obj, name: str, digest: str) -> Obj:
    spec = deployment["spec"]
    template = copy.deepcopy(spec["template"])
    labels = template.setdefault("metadata", {}).setdefault("labels", {})
    labels[_HASH_LABEL] = digest
    selected = {**(spec["selector"].get("matchLabels") or {}), _HASH_LABEL: digest}
    new = {
        "metadata": {
            "name": name,
            "labels": labels,
            "ownerReferences": [reference_to(deployment)],
        },
        "spec": {
            "replicas": spec["replicas"],
            "selector": {"matchLabels": selected},
            "template": template,
        },
    }
    return store.create(REPLICA_SETS, namespace_of(deployment), new)


def _spawn(store: Store, owner: Obj, name: str = "", node: str = "") -> None:
    template = copy.deepcopy(owner["spec"]["template"])
    metadata = {
        **(template.get("metadata") or {}),
        "ownerReferences": [reference_to(owner)],
    }
    if node and (generation := _template_generation(owner)):
        labels = {**(metadata.get("labels") or {}), _TEMPLATE_LABEL: generation}
        metadata["labels"] = labels
    if name:
        metadata["name"] = name
    else:
        metadata["generateName"] = f"{name_of(owner)}-"
    spec = pinned_to(template["spec"], node) if node else template["spec"]
    store.create(PODS, namespace_of(owner), {"metadata": metadata, "spec": spec})


def _living(pods: list[Obj]) -> list[Obj]:
    return [pod for pod in pods if not is_terminating(pod)]


def _replica_set(store: Store, owner: Obj) -> None:
    wanted = owner["spec"]["replicas"]
    living = _living(store.owned(PODS, owner))
    for _ in range(wanted - len(living)):
        _spawn(store, owner)
    _remove_surplus(store, living, wanted)
    _count_replicas(store, REPLICA_SETS, owner, living)


def _stateful_set(store: Store, owner: Obj) -> None:
    wanted = owner["spec"]["replicas"]
    pods = store.owned(PODS, owner)
    taken = {name_of(pod) for pod in pods}
    for number in range(wanted):
        if f"{name_of(owner)}-{number}" not in taken:
            _spawn(store, owner, name=f"{name_of(owner)}-{number}")
    _remove_surplus(store, _living(pods), wanted)
    _count_replicas(store, STATEFUL_SETS, owner, _living(pods))


def _remove_surplus(store: Store, living: list[Obj], wanted: int) -> None:
    for pod in sorted(living, key=name_of)[wanted:]:
        store.delete(PODS, pod)


def _count_replicas(
    store: Store, resource: Resource, owner: Obj, living: list[Obj]
) -> None:
    ready, count = sum(map(is_ready, living)), len(living)
    status = {
        "replicas": count,
        "readyReplicas": ready,
        "availableReplicas": ready,
        "currentReplicas": count,
        "updatedReplicas": count,
        "observedGeneration": owner["metadata"]["generation"],
    }
    store.replace(resource, owner, status=status)


def _place(pod: Obj) -> str | None:
    return pod["spec"].get("nodeName") or pinned_node(pod)


def _template_generation(daemon_set: Obj) -> str:
    annotations = daemon_set["metadata"].get("annotations") or {}
    return str(annotations.get(TEMPLATE_GENERATION, ""))


def _daemon_set(store: Store, owner: Obj) -> None:
    pods = store.owned(PODS, owner)
    spec = owner["spec"]["template"]["spec"]
    tolerations = daemon_tolerations(spec.get("tolerations"))
    taken = set(map(_place, pods))
    wanted = [
        name_of(node)
        for node in store.all(NODES)
        if tolerates(node, tolerations) and attracted(spec, labels_of(node))
    ]
    for name in wanted:
        if name not in taken:
            _spawn(store, owner, node=name)
    living = _living(pods)
    here = [pod for pod in living if _place(pod) in wanted]
    ready = sum(map(is_ready, here))
    generation = _template_generation(owner)
    former = [pod for pod in here if labels_of(pod).get(_TEMPLATE_LABEL) != generation]
    # One at a time, those that do not work first (maxUnavailable: 1).
    if former and (ready == len(wanted) or not all(map(is_ready, former))):
        store.delete(PODS, min(former, key=is_ready))
    status = {
        "currentNumberScheduled": len(here),
        "desiredNumberScheduled": len(wanted),
        "updatedNumberScheduled": len(here) - len(former),
        "numberMisscheduled": len(living) - len(here),
        "numberReady": ready,
        "numberAvailable": ready,
        "observedGeneration": owner["metadata"]["generation"],
    }
    store.replace(DAEMON_SETS, owner, status=status)


_JOB_CONTROLLER = "job-controller"
_TOO_OFTEN = "Job has reached the specified backoff limit"
_ENOUGH = "Reached expected number of succeeded pods"


def run_jobs(store: Store) -> None:
    """One round over all Jobs: those that have not ended, and those that are to go."""
    for job in store.all(JOBS):
        ended = condition(job, "Complete") or condition(job, "Failed")
        if is_terminating(job):
            continue
        if ended:
            _expire(store, job, ended)
        elif not job["spec"].get("suspend"):
            _run_job(store, job)


def _expire(store: Store, job: Obj, ended: Obj) -> None:
    """Delete it when its time to live is over, as the TTL controller does."""
    seconds = job["spec"].get("ttlSecondsAfterFinished")
    if seconds is not None and age(ended["lastTransitionTime"]) >= seconds:
        store.delete(JOBS, job, {"propagationPolicy": "Foreground"})


def _run_job(store: Store, job: Obj) -> None:
    spec, pods = job["spec"], store.owned(PODS, job)
    phases = [dig(pod, "status.phase") for pod in pods]
    succeeded, failed = phases.count("Succeeded"), phases.count("Failed")
    active = len(pods) - succeeded - failed
    status: Obj = {
        "startTime": dig(job, "status.startTime") or timestamp(),
        "active": active,
        "ready": 0,
        **({"succeeded": succeeded} if succeeded else {}),
        **({"failed": failed} if failed else {}),
    }
    if succeeded >= spec["completions"]:
        status |= {"active": 0, "completionTime": timestamp()}
        status["conditions"] = [
            _job_condition("SuccessCriteriaMet", "CompletionsReached", _ENOUGH),
            _job_condition("Complete", "CompletionsReached", _ENOUGH),
        ]
    elif failed > spec["backoffLimit"]:
        status["active"] = 0
        status["conditions"] = [
            _job_condition("FailureTarget", "BackoffLimitExceeded", _TOO_OFTEN),
            _job_condition("Failed", "BackoffLimitExceeded", _TOO_OFTEN),
        ]
    elif not active:
        _spawn_pod_of_job(store, job)
        status["active"] = 1
    status = {key: value for key, value in status.items() if value or key == "ready"}
    if store.replace(JOBS, job, status=status) is not job:
        _report(store, job, status)


def _report(store: Store, job: Obj, status: Obj) -> None:
    """The event about its end."""
    for one in status.get("conditions", ()):
        if one["type"] == "Complete":
            record_event(store, job, "Completed", "Job completed", _JOB_CONTROLLER)
        elif one["type"] == "Failed":
            words = (one["reason"], one["message"], _JOB_CONTROLLER, "Warning")
            record_event(store, job, *words)


def _job_condition(kind: str, reason: str, message: str) -> Obj:
    return {
        "type": kind,
        "status": "True",
        "reason": reason,
        "message": message,
        "lastProbeTime": timestamp(),
        "lastTransitionTime": timestamp(),
    }


def _spawn_pod_of_job(store: Store, job: Obj) -> None:
    template = copy.deepcopy(job["spec"]["template"])
    metadata = {
        **(template.get("metadata") or {}),
        "generateName": f"{name_of(job)}-",
        "ownerReferences": [reference_to(job)],
    }
    pod = {"metadata": metadata, "spec": template["spec"]}
    store.create(PODS, namespace_of(job), pod)
