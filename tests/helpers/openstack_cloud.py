# SPDX-License-Identifier: Apache-2.0
"""An OpenStack for openstacksdk: the lab's stand-ins behind a Keystone of one user.

Its Heat and its Tacker answer what a client asks before anything is made.
"""

import json
import threading
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

from lab.cloud.base import KEY_PAIR
from lab.cloud.state import State
from lab.services import compute, images, network, stand_in
from lab.services.stand_in import Answer, Answers

PROJECT = "nfv"
PASSWORD = "c1oud-s3cret"
#: By the catalogue's type: the name of a stand-in, its answers, the endpoint's path.
_SERVICES: dict[str, tuple[str, Answers, str]] = {
    "compute": (compute.NAME, compute.answer, "/v2.1"),
    "image": (images.NAME, images.answer, ""),
    "network": (network.NAME, network.answer, ""),
}
PACKAGES = "/vnfpkgm/v1/vnf_packages"
VERSIONS = ("heat_template_version.2018-08-31", "HeatTemplateFormatVersion.2012-12-12")
TYPES = ("OS::Nova::Server", "OS::Neutron::Port", "OS::Heat::AutoScalingGroup")


class OpenStack:
    """One cloud.

    :ivar absent: types of services that the catalogue does not have.
    :ivar refused: types of services that answer 403.
    :ivar types: the resource types that Heat has.
    :ivar vims: what Tacker lists.
    :ivar packages: what Tacker shows of VNF packages, by their ids.
    :ivar instead: what serves a type of service in place of its answers here.
    """

    def __init__(self) -> None:
        self.absent: set[str] = set()
        self.refused: set[str] = set()
        self.packages: dict[str, dict[str, Any]] = {}
        self.instead: dict[str, type[BaseHTTPRequestHandler]] = {}
        self.types: frozenset[str] = frozenset(TYPES)
        self.vims: list[dict[str, Any]] = [
            {
                "name": "openstack-lab",
                "type": "openstack",
                "is_default": True,
                "vim_project": {"name": PROJECT, "project_domain_name": "Default"},
            }
        ]
        self._endpoints: dict[str, str] = {}
        self.auth_url = ""

    @contextmanager
    def running(self) -> Iterator["OpenStack"]:
        """Serve until the end of the block."""
        services: dict[str, tuple[str, Answers, str]] = {
            **_SERVICES,
            "orchestration": ("heat", self._heat, "/v1/p"),
            "nfv-orchestration": ("tacker", self._tacker, ""),
        }
        with ExitStack() as stack:
            for kind, (name, answers, path) in services.items():
                handler = stand_in.handler(name, self._refusing(kind, answers))
                # It would log each request to the test's output.
                handler.log_message = lambda *_: None  # type: ignore[method-assign]
                handler = self.instead.get(kind, handler)
                self._endpoints[kind] = stack.enter_context(served(handler)) + path
            keystone = stack.enter_context(served(self._keystone()))
            self.auth_url = f"{keystone}/v3"
            for vim in self.vims:
                vim["auth_url"] = self.auth_url
            yield self

    def environment(self, home: Path) -> dict[str, str]:
        """The variables of a login here, and of a lab that has nothing but a key pair.

        :param home: an empty directory, in which there is no clouds.yaml.
        """
        pair = {"name": KEY_PAIR, "public_key": "ssh-ed25519 AAAA"}
        with State(home / "cloud").edit() as records:
            records["keypairs"][KEY_PAIR] = pair
        return {
            "HOME": str(home),
            "LAB_STATE": str(home),
            "OS_AUTH_URL": self.auth_url,
            "OS_USERNAME": "operator",
            "OS_PASSWORD": PASSWORD,
            "OS_PROJECT_NAME": PROJECT,
            "OS_USER_DOMAIN_NAME": "Default",
            "OS_PROJECT_DOMAIN_NAME": "Default",
        }

    def _refusing(self, kind: str, answers: Answers) -> Answers:
        def answer(path: str, query: Mapping[str, str]) -> Answer:
            if kind in self.refused:
                return 403, {"message": "the policy does not allow it"}
            return answers(path, query)

        return answer

    def _heat(self, path: str, query: Mapping[str, str]) -> Answer:
        if path == "/v1/p/template_versions":
            return 200, {"template_versions": [{"version": v} for v in VERSIONS]}
        if path == "/v1/p/resource_types":
            return 200, {"resource_types": sorted(self.types)}
        return stand_in.absent(path)

    def _tacker(self, path: str, query: Mapping[str, str]) -> Answer:
        if not path:
            # As Tacker 16: clients that follow this find no VIM below it.
            here = f"{self._endpoints['nfv-orchestration']}/v1.0"
            links = [{"rel": "self", "href": here}]
            return 200, {
                "versions": [{"id": "v1.0", "status": "CURRENT", "links": links}]
            }
        if path == "/v1.0/vims.json":
            return 200, {"vims": self.vims}
        if path == PACKAGES:
            wanted = query.get("filter", "")
            known = self.packages.values()
            return 200, [p for p in known if wanted == f"(eq,vnfdId,{p['vnfdId']})"]
        if package := self.packages.get(path.removeprefix(f"{PACKAGES}/")):
            return 200, package
        return stand_in.absent(path)

    def _token(self) -> dict[str, Any]:
        domain = {"id": "default", "name": "Default"}
        own = {"interface": "public", "region": "one", "region_id": "one"}
        return {
            "expires_at": "2099-01-01T00:00:00.000000Z",
            "issued_at": "2026-01-01T00:00:00.000000Z",
            "methods": ["password"],
            "user": {"id": "u", "name": "operator", "domain": domain},
            "project": {"id": "p", "name": PROJECT, "domain": domain},
            "roles": [{"id": "m", "name": "member"}],
            "catalog": [
                {
                    "type": kind,
                    "name": kind,
                    "id": kind,
                    "endpoints": [{**own, "id": kind, "url": url}],
                }
                for kind, url in self._endpoints.items()
                if kind not in self.absent
            ],
        }

    def _keystone(self) -> type[BaseHTTPRequestHandler]:
        made = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                body = self.rfile.read(int(self.headers["Content-Length"]))
                identity = json.loads(body)["auth"]["identity"]
                if identity["password"]["user"]["password"] == PASSWORD:
                    self._reply(201, {"token": made._token()})
                else:
                    self._reply(401, {"error": {"code": 401, "message": "No."}})

            def do_GET(self) -> None:
                links = [{"rel": "self", "href": made.auth_url}]
                version = {"id": "v3.14", "status": "stable", "links": links}
                self._reply(200, {"version": version})

            def _reply(self, status: int, body: object) -> None:
                data = json.dumps(body).encode()
                self.send_response(status)
                self.send_header("X-Subject-Token", "t0ken")
                self.send_header("Content-Type", "application/json")
                self.send_header("Content-Length", str(len(data)))
                self.end_headers()
                self.wfile.write(data)

            def log_message(self, *args: object) -> None:
                """Nothing goes to the test's output."""

        return Handler


@contextmanager
def served(handler: type[BaseHTTPRequestHandler]) -> Iterator[str]:
    """The URL of a server on this host."""
    server = ThreadingHTTPServer(("127.0.0.1", 0), handler)
    thread = threading.Thread(target=server.serve_forever, args=(0.02,), daemon=True)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}"
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
