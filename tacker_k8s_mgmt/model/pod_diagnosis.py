# SPDX-License-Identifier: Apache-2.0
"""Why a pod does not work, in the words of kubelet and scheduler."""

from collections.abc import Iterator, Mapping
from typing import Any

from tacker_k8s_mgmt.model.manifests import Object

# A container that waits for these has not failed.
_ON_ITS_WAY = frozenset({"ContainerCreating", "PodInitializing"})


def is_well(pod: Object) -> bool:
    """Whether its containers are ready, or have ended well."""
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
