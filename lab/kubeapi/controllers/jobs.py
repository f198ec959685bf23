# SPDX-License-Identifier: Apache-2.0
"""Jobs: their pods run until enough of them have ended well, or too many have not."""

import copy

from .. import events
from ..objects import (
    Obj,
    age,
    condition,
    dig,
    is_terminating,
    name_of,
    namespace_of,
    timestamp,
)
from ..objects import owner_reference as reference_to
from ..resources import JOBS, PODS
from ..store import Store

_CONTROLLER = "job-controller"
_TOO_OFTEN = "Job has reached the specified backoff limit"
_ENOUGH = "Reached expected number of succeeded pods"


def step(store: Store) -> None:
    """One round over all Jobs: those that have not ended, and those that are to go."""
    for job in store.all(JOBS):
        ended = condition(job, "Complete") or condition(job, "Failed")
        if is_terminating(job):
            continue
        if ended:
            _expire(store, job, ended)
        elif not job["spec"].get("suspend"):
            _step(store, job)


def _expire(store: Store, job: Obj, ended: Obj) -> None:
    """Delete it when its time to live is over, as the TTL controller does."""
    seconds = job["spec"].get("ttlSecondsAfterFinished")
    if seconds is not None and age(ended["lastTransitionTime"]) >= seconds:
        store.delete(JOBS, job, {"propagationPolicy": "Foreground"})


def _step(store: Store, job: Obj) -> None:
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
            _condition("SuccessCriteriaMet", "CompletionsReached", _ENOUGH),
            _condition("Complete", "CompletionsReached", _ENOUGH),
        ]
    elif failed > spec["backoffLimit"]:
        status["active"] = 0
        status["conditions"] = [
            _condition("FailureTarget", "BackoffLimitExceeded", _TOO_OFTEN),
            _condition("Failed", "BackoffLimitExceeded", _TOO_OFTEN),
        ]
    elif not active:
        _spawn(store, job)
        status["active"] = 1
    status = {key: value for key, value in status.items() if value or key == "ready"}
    if store.replace(JOBS, job, status=status) is not job:
        _report(store, job, status)


def _report(store: Store, job: Obj, status: Obj) -> None:
    """The event about its end."""
    for one in status.get("conditions", ()):
        if one["type"] == "Complete":
            events.record(store, job, "Completed", "Job completed", _CONTROLLER)
        elif one["type"] == "Failed":
            words = (one["reason"], one["message"], _CONTROLLER, "Warning")
            events.record(store, job, *words)


def _condition(kind: str, reason: str, message: str) -> Obj:
    return {
        "type": kind,
        "status": "True",
        "reason": reason,
        "message": message,
        "lastProbeTime": timestamp(),
        "lastTransitionTime": timestamp(),
    }


def _spawn(store: Store, job: Obj) -> None:
    template = copy.deepcopy(job["spec"]["template"])
    metadata = {
        **(template.get("metadata") or {}),
        "generateName": f"{name_of(job)}-",
        "ownerReferences": [reference_to(job)],
    }
    pod = {"metadata": metadata, "spec": template["spec"]}
    store.create(PODS, namespace_of(job), pod)
