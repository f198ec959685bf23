# SPDX-License-Identifier: Apache-2.0
"""Stand-ins for services of OpenStack: what their clients ask, and nothing behind it.

Each is a module with a name and a function that answers GET requests. The program is
``python3 -m lab.services.stand_in MODULE``, and one thread serves each connection.
"""

import importlib
import json
import sys
from collections.abc import Callable, Iterable, Mapping
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from types import ModuleType
from typing import Any
from urllib.parse import parse_qsl, urlsplit

from lab.cloud.addresses import Records
from lab.cloud.state import State
from lab.services import rest
from lab.services.process import Service
from lab.settings import (
    ADDRESS,
    PORTS,
    ROOT,
    SYSTEM_PYTHON,
    Settings,
    from_environment,
    url,
)

#: Status and document.
Answer = tuple[int, object]
#: Path without version and trailing slash, and the query.
Answers = Callable[[str, Mapping[str, str]], Answer]


def service(module: ModuleType, _settings: Settings) -> Service:
    """The API that a module stands in for."""
    return Service(
        name=module.NAME,
        argv=(SYSTEM_PYTHON, "-m", "lab.services.stand_in", module.__name__),
        ready=lambda _: rest.answers(f"http://{ADDRESS}:{PORTS[module.NAME]}"),
        environment={"PYTHONPATH": str(ROOT)},
        files=(Path(str(module.__file__)), Path(__file__)),
        patience=1.0,
    )


def records() -> Records:
    """What Heat's plugins have made in this lab."""
    return State(from_environment().cloud).read()


def limited(usual: Mapping[str, int]) -> dict[str, int]:
    """Quotas by name, with those that were changed in this lab."""
    own = records().get("quotas", {})
    return {n: own[n]["limit"] if n in own else number for n, number in usual.items()}


def absent(path: str) -> Answer:
    """The answer for what there is not."""
    return 404, {"message": f"nothing is at {path}"}


def matching(
    rows: Iterable[Mapping[str, Any]], query: Mapping[str, str]
) -> list[Mapping[str, Any]]:
    """The rows with all values of the query, as far as a row has such a key."""
    return [
        row
        for row in rows
        if all(str(row.get(key, value)) == value for key, value in query.items())
    ]


def handler(name: str, answers: Answers) -> type[BaseHTTPRequestHandler]:
    """What serves GET requests with these answers.

    Links in them lead to where the client has found the service.
    """

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_GET(self) -> None:
            split = urlsplit(self.path)
            found = answers(split.path.rstrip("/"), dict(parse_qsl(split.query)))
            status, content = found
            here = f"http://{self.headers['Host']}"
            data = json.dumps(content).replace(url(name), here).encode()
            self.send_response(status)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(data)))
            self.end_headers()
            self.wfile.write(data)

    return Handler


def main(module: ModuleType) -> None:
    """Answer until the process ends."""
    answering = handler(module.NAME, module.answer)
    ThreadingHTTPServer((ADDRESS, PORTS[module.NAME]), answering).serve_forever()


if __name__ == "__main__":
    main(importlib.import_module(sys.argv[1]))
