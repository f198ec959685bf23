# SPDX-License-Identifier: Apache-2.0
"""What the containers of a pod do, as far as it can be told without running them.

A registry below ``.invalid`` (RFC 2606) has no image. A command that ends with ``exit
N`` ends so, ``false`` with 1; in a pod that is not restarted always, others end well,
but for those of the pause image. Their log is what they echo.
"""

import re

from .objects import Obj, dig, timestamp

_EXIT = re.compile(r"(?:^|[;&\s])exit (\d+)\s*$")
_ECHO = re.compile(r"(?:^|[;&]|\n)\s*echo '?([^;&'\n]*)'?")
_REGISTRY = re.compile(r"[^/]+\.invalid(?::\d+)?/")
_PAUSE = re.compile(r"(^|/)pause:")


def can_be_pulled(container: Obj) -> bool:
    """Whether there is such an image."""
    return not _REGISTRY.match(container.get("image", ""))


def exit_code(pod: Obj, container: Obj) -> int | None:
    """The exit code of a container; None for one that goes on."""
    words = [*(container.get("command") or ()), *(container.get("args") or ())]
    text = words[-1] if words else ""
    if found := _EXIT.search(text):
        return int(found[1])
    if text.rpartition("/")[2] == "false":
        return 1
    goes_on = _PAUSE.search(container.get("image", "")) and not words
    return None if goes_on or dig(pod, "spec.restartPolicy") == "Always" else 0


def log(pod: Obj, name: str) -> str:
    """What a container has written."""
    for container in pod["spec"]["containers"]:
        if container["name"] == name or not name:
            words = [*(container.get("command") or ()), *(container.get("args") or ())]
            lines = _ECHO.findall(words[-1]) if words else []
            return "".join(f"{line.strip()}\n" for line in lines)
    return ""


def status(pod: Obj, container: Obj) -> Obj:
    """The status of a container that was started, or that cannot be."""
    state, ready, last, restarts = _state(pod, container)
    return {
        "name": container["name"],
        "image": container.get("image", ""),
        "imageID": "",
        "ready": ready,
        "started": ready,
        "restartCount": restarts,
        "state": state,
        **({"lastState": last} if last else {}),
    }


def _state(pod: Obj, container: Obj) -> tuple[Obj, bool, Obj, int]:
    image, code = container.get("image", ""), exit_code(pod, container)
    if not can_be_pulled(container):
        text = f'Back-off pulling image "{image}"'
        return _waiting("ImagePullBackOff", text), False, {}, 0
    if code is None:
        since = dig(pod, "status.startTime") or timestamp()
        return {"running": {"startedAt": since}}, True, {}, 0
    ended = {
        "terminated": {
            "exitCode": code,
            "reason": "Error" if code else "Completed",
            "startedAt": dig(pod, "metadata.creationTimestamp"),
            "finishedAt": dig(pod, "metadata.creationTimestamp"),
        }
    }
    if dig(pod, "spec.restartPolicy") != "Always":
        return ended, False, {}, 0
    where = f"pod={pod['metadata']['name']}_{pod['metadata']['namespace']}"
    text = f"back-off 10s restarting failed container={container['name']} {where}"
    return _waiting("CrashLoopBackOff", text), False, ended, 1


def _waiting(reason: str, message: str) -> Obj:
    return {"waiting": {"reason": reason, "message": message}}
