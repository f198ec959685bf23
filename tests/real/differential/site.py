# SPDX-License-Identifier: Apache-2.0
"""One cluster under comparison: how to talk to it, and its hollow nodes."""

import http.client
import json
import ssl
import subprocess
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

ADMIN_TOKEN = "an-admin-token"
_LIMIT = 120.0  # seconds for anything that both clusters do in the end


@dataclass(frozen=True)
class Answer:
    """What an HTTP request got."""

    status: int
    body: Any
    headers: Mapping[str, str]


@dataclass
class Site:
    """A cluster that is reached over HTTPS at loopback.

    :param name: ``real`` or ``emulator``.
    :param kubectl: path of the kubectl that both clusters are asked with.
    :param ca: PEM file that verifies the server.
    :param home: directory that belongs to this site.
    :param kept: what one row keeps for later ones (tokens, names).
    :param actions: ``stop`` and ``start`` of the API server, ``lose etcd``.
    """

    name: str
    kubectl: Path
    url: str
    ca: Path
    home: Path
    kept: dict[str, Any] = field(default_factory=dict)
    actions: dict[str, Callable[[], None]] = field(default_factory=dict)

    def run(
        self, *words: str, stdin: str = "", token: str = ADMIN_TOKEN, server: str = ""
    ) -> "subprocess.CompletedProcess[str]":
        """Run kubectl."""
        access = ("--server", server or self.url, "--certificate-authority", self.ca)
        return subprocess.run(
            [self.kubectl, *access, "--token", token, *words],
            input=stdin,
            capture_output=True,
            text=True,
            timeout=_LIMIT,
            env={"HOME": str(self.home), "PATH": "/usr/bin:/bin"},
        )

    def request(
        self,
        method: str,
        path: str,
        body: Any = None,
        token: str = ADMIN_TOKEN,
        headers: Mapping[str, str] | None = None,
    ) -> Answer:
        """Make one HTTP request; a body that is not bytes goes as JSON."""
        host = self.url.removeprefix("https://")
        context = ssl.create_default_context(cafile=str(self.ca))
        connection = http.client.HTTPSConnection(host, timeout=60, context=context)
        sent = {"Content-Type": "application/json", **(headers or {})}
        if token:
            sent["Authorization"] = f"Bearer {token}"
        data = body if isinstance(body, bytes | None) else json.dumps(body)
        try:
            connection.request(method, path, data, sent)
            answer = connection.getresponse()
            content = answer.read()
        finally:
            connection.close()
        kind = answer.headers.get("Content-Type") or ""
        read = content
        if kind.startswith("application/json") and "watch=true" not in path:
            read = json.loads(content)
        return Answer(answer.status, read, dict(answer.headers))

    def get(self, path: str) -> Any:
        """The body of a GET that has to succeed."""
        answer = self.request("GET", path)
        assert answer.status == 200, (self.name, path, answer)
        return answer.body

    def wait(self, what: Callable[[], Any], limit: float = _LIMIT) -> Any:
        """The first true value of ``what``."""
        deadline = time.monotonic() + limit
        while not (value := what()):
            if time.monotonic() > deadline:
                raise AssertionError(f"{self.name}: not so within {limit:g} s")
            time.sleep(0.1)
        return value
