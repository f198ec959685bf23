# SPDX-License-Identifier: Apache-2.0
"""Workloads and Jobs: how far they are, and why they do not work.

The reasons are in the words of kubelet and scheduler.
"""

import logging
from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import Any
from urllib.parse import quote

from tacker_k8s_mgmt import errors
from tacker_k8s_mgmt.features.applications.content import Progress
from tacker_k8s_mgmt.model.manifests import JOB, Object, title
from tacker_k8s_mgmt.remote.kubernetes.kubectl import KubeClient
from tacker_k8s_mgmt.remote.kubernetes.owned_objects import Manifests
from tacker_k8s_mgmt.text import short

# A container that waits for these has not failed.
_ON_ITS_WAY = frozenset({"ContainerCreating", "PodInitializing"})


def is_healthy(pod: Object) -> bool:
    """Whether its containers are ready, or have succeeded."""
    status = pod.get("status") or {}
    if status.get("phase") == "Succeeded":
        return True
    return any(
        one["type"] == "Ready" and one["status"] == "True"
        for one in status.get("conditions") or ()
    )


def reasons(pod: Object) -> tuple[str, ...]:
    """Why it does not work, as far as its status says."""
    status = pod.get("status") or {}
    found = list(_conditions(status))
    found += [text for one in _containers(status) if (text := _of_container(one))]
    if status.get("reason"):
        found.append(_with(status["reason"], status.get("message")))
    return tuple(found or [f"it is {status.get('phase') or 'unknown'}"])


def logged(pod: Object) -> tuple[tuple[str, bool], ...]:
    """Containers whose log may tell why: name, and whether the former run's."""
    found = []
    for one in _containers(pod.get("status") or {}):
        state = one.get("state") or {}
        ended = state.get("terminated") or {}
        if ended and ended.get("exitCode") != 0:
            found.append((one["name"], False))
        elif one.get("restartCount") and not one.get("ready"):
            found.append((one["name"], "running" not in state))
        elif "running" in state and not one.get("ready"):
            found.append((one["name"], False))
    return tuple(found)


def _conditions(status: Mapping[str, Any]) -> Iterator[str]:
    for one in status.get("conditions") or ():
        if one["type"] == "PodScheduled" and one["status"] == "False":
            yield _with(one.get("reason") or "not scheduled", one.get("message"))


def _containers(status: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    return [
        *(status.get("initContainerStatuses") or ()),
        *(status.get("containerStatuses") or ()),
    ]


def _of_container(one: Mapping[str, Any]) -> str:
    state, name = one.get("state") or {}, f"container {one['name']}"
    waiting, ended = state.get("waiting") or {}, state.get("terminated") or {}
    if waiting and waiting.get("reason") not in _ON_ITS_WAY:
        text = _with(waiting.get("reason") or "waiting", waiting.get("message"))
        last = (one.get("lastState") or {}).get("terminated") or {}
        return f"{name}: {text}{_exit(last)}"
    if ended and ended.get("exitCode") != 0:
        text = _with(ended.get("reason") or "ended", ended.get("message"))
        return f"{name}: {text}{_exit(ended)}"
    if "running" in state and not one.get("ready"):
        restarts = one.get("restartCount") or 0
        again = f", restarted {restarts} times" if restarts else ""
        return f"{name}: it runs and is not ready{again}"
    return ""


def _exit(ended: Mapping[str, Any]) -> str:
    return f" (exit code {ended['exitCode']})" if "exitCode" in ended else ""


def _with(reason: str, message: str | None) -> str:
    return f"{reason}: {message.strip()}" if message else reason


LOG = logging.getLogger(__name__)

_PODS = 3  # of a workload that does not work, in an error
_LINES = 10  # of a log
_EVENTS = 3
_LONGEST = 600  # characters of a log or a message
_ON_DELETE = "OnDelete"
_PROBE_LIMIT = 60.0  # seconds
_DONE = ("Complete", "SuccessCriteriaMet")
# Reasons of the events with which the Job controller reports the end of a Job.
_COMPLETED = "Completed"
_ENDED_BADLY = (
    *("BackoffLimitExceeded", "DeadlineExceeded", "PodFailurePolicy"),
    *("FailedIndexes", "MaxFailedIndexesExceeded"),
)
# A DaemonSet and its pods have the number of the template that they are of.
_TEMPLATE_ANNOTATION = "deprecated.daemonset.template.generation"
_TEMPLATE_LABEL = "pod-template-generation"
_READY = '.status.conditions[?(@.type=="Ready")].status'
# What is read of events and pods. An annotation of a pod may have 256 kB.
_EVENT = (
    *(".metadata.namespace", ".metadata.name", ".involvedObject"),
    *(".type", ".reason", ".message", ".lastTimestamp", ".eventTime"),
)
_POD = (
    *(".metadata.namespace", ".metadata.name", ".metadata.uid", ".metadata.labels"),
    *(".metadata.ownerReferences", ".metadata.creationTimestamp", ".spec.nodeName"),
    *(".status.phase", ".status.reason", ".status.message", ".status.conditions"),
    *(".status.initContainerStatuses", ".status.containerStatuses"),
)


class Workloads:
    """The workloads and Jobs of an application.

    Each method raises ``RemoteError`` if kubectl fails or the node cannot be reached.

    :param client: kubectl on a control plane.
    """

    def __init__(self, client: KubeClient) -> None:
        self._client = client
        self._manifests = Manifests(client)

    def progress(
        self, objects: Sequence[Object], former: Collection[str] = ()
    ) -> Progress:
        """How far these Deployments, StatefulSets, DaemonSets and Jobs are.

        A Job that was made and is not there has ended: its time to live removes it. How
        it ended is in its events.

        :param former: uids of earlier Jobs, whose events do not count.
        """
        present = {title(one): one for one in self._manifests.present(objects)}
        progress = Progress()
        with self._client.understanding("get pods, events and nodes"):
            for one in objects:
                there = present.get(title(one))
                if there is None and one["kind"] == JOB:
                    self._gone_job(one, former, progress)
                elif there is None:
                    progress.pending[title(one)] = "it is not there"
                elif one["kind"] == JOB:
                    _job(there, progress)
                else:
                    self._rollout(there, progress)
        return progress

    def ended_jobs(self, namespace: str) -> frozenset[str]:
        """The uids of the Jobs whose end is known by their events."""
        found = self._job_events(namespace)
        with self._client.understanding("get events"):
            return frozenset(event["involvedObject"].get("uid", "") for event in found)

    def _job_events(self, namespace: str, name: str = "") -> list[Mapping[str, Any]]:
        """The events about the end of Jobs, or of the Jobs of a name."""
        about = "involvedObject.kind=Job" + (
            f",involvedObject.name={name}" if name else ""
        )
        reasons = (_COMPLETED, *_ENDED_BADLY)
        where = (f"--namespace={namespace}", f"--field-selector={about}")
        found = self._client.objects("events", _EVENT, *where)
        return [one for one in found if one.get("reason") in reasons]

    def _gone_job(
        self, one: Object, former: Collection[str], progress: Progress
    ) -> None:
        metadata = one["metadata"]
        events = [
            event
            for event in self._job_events(metadata["namespace"], metadata["name"])
            if event["involvedObject"].get("uid") not in former
        ]
        if any(event["reason"] == _COMPLETED for event in events):
            return
        for event in events:
            texts = (event["reason"], event.get("message"))
            progress.failed[title(one)] = ": ".join(filter(None, texts))
        if not events:
            text = "it is not there, and no event tells how it ended"
            progress.pending[title(one)] = text

    def _rollout(self, one: Object, progress: Progress) -> None:
        """Ask kubectl, which knows the rules of each kind."""
        if _strategy(one) == _ON_DELETE:
            LOG.info("%s: its pods are replaced when they are deleted", title(one))
            return
        metadata = one["metadata"]
        name = f"{one['kind'].lower()}/{metadata['name']}"
        where = f"--namespace={metadata['namespace']}"
        try:
            text = self._client.run("rollout", "status", name, where, "--watch=false")
        except errors.CommandFailed as error:
            if "exceeded its progress deadline" not in error.fields["tail"]:
                raise
            progress.failed[title(one)] = "it exceeded its progress deadline"
            return
        waits = text.startswith("Waiting for")
        if waits and one["kind"] == "DaemonSet" and self._lacks_silent_only(one):
            LOG.info("%s: %s: on nodes that are not Ready", title(one), text.strip())
        elif waits:
            progress.pending[title(one)] = text.strip().rstrip(".")

    def _lacks_silent_only(self, one: Object) -> bool:
        """Whether all pods that a DaemonSet lacks are of nodes that are not Ready.

        No kubelet starts or ends them there.
        """
        metadata, status = one["metadata"], one.get("status") or {}

        def count(name: str) -> int:
            return int(status.get(name) or 0)

        nodes = self._client.table(
            "nodes", (".metadata.name", _READY), read=lambda name, ready: (name, ready)
        )
        silent = {name for name, ready in nodes if "True" not in ready}
        pods = [pod for pod in self._pods(one) if _owner(pod) == metadata["uid"]]
        places = {pod["spec"].get("nodeName") for pod in pods}
        others = [pod for pod in pods if pod["spec"].get("nodeName") not in silent]
        template = (metadata.get("annotations") or {}).get(_TEMPLATE_ANNOTATION)
        if count("observedGeneration") < metadata.get("generation", 0) or not all(
            is_healthy(pod) and _template(pod) == template for pod in others
        ):
            return False
        # A node that is to have no pod of it any more is not in the desired number.
        spared = len(silent & places) - count("numberMisscheduled")
        there = min(count("updatedNumberScheduled"), count("numberAvailable"))
        return count("desiredNumberScheduled") - there <= spared

    def diagnosis(self, one: Object) -> str:
        """Why the pods of a workload or Job do not work; "" if nothing is known."""
        if not _selector(one):
            return ""
        with self._client.understanding("get pods and events"):
            pods = self._pods(one)
            ill = [pod for pod in pods if not is_healthy(pod)]
            texts = [self._of_pod(pod) for pod in sorted(ill, key=_created)[-_PODS:]]
            if not pods:
                texts = list(self._events(one)) or ["it has no pod"]
            return "; ".join(texts)

    def _pods(self, one: Object) -> list[dict[str, Any]]:
        where = f"--namespace={one['metadata']['namespace']}"
        selector = f"--selector={_selector(one)}"
        return self._client.objects("pods", _POD, where, selector)

    def _of_pod(self, pod: Object) -> str:
        node = (pod.get("spec") or {}).get("nodeName")
        where = f" on {node}" if node else ""
        texts = [*(short(one, _LONGEST) for one in reasons(pod)), *self._events(pod)]
        for container, previous in logged(pod):
            if log := self._log(pod, container, previous):
                texts.append(f"last lines of {container}: {log}")
        return f"pod {pod['metadata']['name']}{where}: {'; '.join(texts)}"

    def _log(self, pod: Object, container: str, previous: bool) -> str:
        metadata = pod["metadata"]
        command = ("logs", metadata["name"], f"--namespace={metadata['namespace']}")
        options = (f"--container={container}", f"--tail={_LINES}")
        former = ("--previous",) if previous else ()
        try:
            text = self._client.run(*command, *options, *former)
        except errors.RemoteError as error:
            LOG.info("The log of %s cannot be read: %s", metadata["name"], error)
            return ""
        lines = [line.strip() for line in text.splitlines()]
        return short(" | ".join(filter(None, lines)), _LONGEST, end=True)

    def _events(self, one: Object) -> Iterator[str]:
        """The latest warnings about an object, or its latest events without one."""
        metadata = one["metadata"]
        about = f"--field-selector=involvedObject.uid={metadata.get('uid')}"
        where = f"--namespace={metadata['namespace']}"
        events = _latest(self._client.objects("events", _EVENT, where, about))
        for event in events[-_EVENTS:]:
            yield short(f"{event.get('reason')}: {event.get('message')}", _LONGEST)

    def probe(
        self, namespace: str, service: str, port: int, path: str, scheme: str
    ) -> str:
        """Send a request to a Service, through the API server.

        :returns: why it did not succeed, "" if it did.
        """
        place = f"{scheme}:{service}:{port}/proxy/{path.lstrip('/')}"
        url = f"/api/v1/namespaces/{namespace}/services/{quote(place, safe='/:?=&%')}"
        try:
            self._client.run("get", "--raw", url, limit=_PROBE_LIMIT, patience=0)
        except (errors.CommandFailed, errors.CommandTimeout) as error:
            return short(str(error.fields.get("tail") or error), _LONGEST)
        return ""


def _job(one: Object, progress: Progress) -> None:
    conditions = {
        condition["type"]: condition
        for condition in (one.get("status") or {}).get("conditions") or ()
        if condition["status"] == "True"
    }
    if failed := conditions.get("Failed"):
        texts = (failed.get("reason"), failed.get("message"))
        progress.failed[title(one)] = ": ".join(filter(None, texts)) or "it failed"
    elif not any(name in conditions for name in _DONE):
        status = one.get("status") or {}
        counts = {name: status.get(name) or 0 for name in ("active", "failed")}
        progress.pending[title(one)] = (
            f"it is not complete ({counts['active']} pods at work, "
            f"{counts['failed']} failed)"
        )


def _selector(one: Object) -> str:
    """Labels of the pods of a workload or Job; "" if they are not known."""
    if one["kind"] == JOB:
        return f"job-name={one['metadata']['name']}"
    labels = (one["spec"].get("selector") or {}).get("matchLabels") or {}
    return ",".join(f"{name}={labels[name]}" for name in sorted(labels))


def _owner(pod: Object) -> str | None:
    """The uid of its controller."""
    owners = pod["metadata"].get("ownerReferences") or ()
    return next((one["uid"] for one in owners if one.get("controller")), None)


def _template(pod: Object) -> str | None:
    labels = pod["metadata"].get("labels") or {}
    return str(labels[_TEMPLATE_LABEL]) if _TEMPLATE_LABEL in labels else None


def _strategy(one: Object) -> str:
    spec = one.get("spec") or {}
    return str((spec.get("updateStrategy") or {}).get("type") or "")


def _created(pod: Object) -> str:
    return str(pod["metadata"].get("creationTimestamp") or "")


def _latest(events: Sequence[Mapping[str, Any]]) -> list[Mapping[str, Any]]:
    """Warnings, or all events without one; the latest last."""
    items = sorted(events, key=_seen)
    warnings = [event for event in items if event.get("type") != "Normal"]
    return warnings or items


def _seen(event: Mapping[str, Any]) -> str:
    return str(event.get("lastTimestamp") or event.get("eventTime") or "")
