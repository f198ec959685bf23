# SPDX-License-Identifier: Apache-2.0
"""What a reader is given, and how it reads it."""

import base64
import contextlib
import json
import tempfile
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tacker_k8s_mgmt import errors
from tacker_k8s_mgmt.remote.kubernetes.kubectl import KubeClient
from tests.helpers.fakes.answers import Host

Spoil = Callable[[str], str]


@dataclass(frozen=True)
class Fed:
    """A reader's text.

    :param valid: what it is made of: a text, or a value for JSON.
    :param read: reads such a value, after the function that damages its text.
    :param readers: the readers that read it.
    """

    valid: Any
    read: Callable[[Any, Spoil], Any]
    readers: tuple[str, ...]


def text(valid: str, read: Callable[[str], Any], *readers: str) -> Fed:
    """A text that is no JSON."""
    return Fed(valid, lambda value, spoil: read(spoil(str(value))), readers)


def parsed(valid: Any, read: Callable[[str], Any], *readers: str) -> Fed:
    """JSON, which is YAML too."""
    return Fed(valid, lambda value, spoil: read(spoil(json.dumps(value))), readers)


def _named(prefix: str, readers: Iterable[str]) -> tuple[str, ...]:
    others = ("model.", "operations.", "features.")
    return tuple(n if n.startswith(others) else f"{prefix}{n}" for n in readers)


def host(valid: dict[str, Any], read: Callable[[Any], Any], *readers: str) -> Fed:
    """The answers of :class:`Host`."""

    def ask(value: Any, spoil: Spoil) -> Any:
        return read(Host(value if isinstance(value, dict) else {}, spoil))

    return Fed(valid, ask, _named("remote.", readers))


def kube(
    valid: dict[str, Any], read: Callable[[KubeClient], Any], *readers: str
) -> Fed:
    """The answers of kubectl."""
    named = _named("kubernetes.", readers)
    return host(valid, lambda session: read(KubeClient(session)), *named)


def in_file(read: Callable[[str], Any], name: str = "file") -> Callable[[str], Any]:
    """Reads a file with a text."""

    def call(content: str) -> Any:
        with tempfile.TemporaryDirectory() as directory:
            path = Path(directory, name)
            path.write_bytes(content.encode(errors="surrogatepass"))
            return read(str(path))

    return call


def b64(content: bytes | str) -> str:
    data = content.encode(errors="replace") if isinstance(content, str) else content
    return base64.b64encode(data).decode()


def all_of(*calls: Callable[[], Any]) -> None:
    """Call each, also after one that has raised one of our errors."""
    failed: list[Exception] = []
    for call in calls:
        try:
            call()
        except Exception as error:
            if not is_ours(error):
                raise
            failed.append(error)
    if failed:
        raise failed[0]


def refused(call: Callable[[], Any]) -> None:
    """Call what ends with an error of ours also for what is valid."""
    with contextlib.suppress(errors.K8sMgmtError):
        call()


def is_ours(error: BaseException) -> bool:
    """Whether an error is of a class of the package."""
    return type(error).__module__.startswith("tacker_k8s_mgmt")
