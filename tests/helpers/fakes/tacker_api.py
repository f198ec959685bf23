# SPDX-License-Identifier: Apache-2.0
"""Tacker's two APIs over HTTP, as far as the verbs need them.

``tests/contract/test_verbs.py`` holds the documents and errors to Tacker's own.
"""

import io
import json
import re
import uuid
import zipfile
from http.server import BaseHTTPRequestHandler
from typing import Any
from urllib.parse import parse_qs, urlsplit

Document = dict[str, Any]
#: Status, headers and body of an answer.
Raw = tuple[int, dict[str, str], bytes]
V1, V2 = "/vnflcm/v1", "/vnflcm/v2"
#: What each API says of an operation whose state does not allow a verb.
NOT_FAILED = {
    V1: "Cannot proceed with operation_state {state}",
    V2: "LCM operation {id} not FAILED_TEMP.",
}
_PATH = re.compile(r"(/vnflcm/v[12])/(vnf_instances|vnf_lcm_op_occs)(/[^/]+)?(/\w+)?")
_PACKAGES = re.compile(r"/vnfpkgm/v1/vnf_packages(?:/([^/]+)(/vnfd)?)?")
_FILTER = re.compile(r"\(eq,(\w+),([^()]*)\)")


def problem(status: int, detail: str, title: str = "Conflict") -> Raw:
    """An answer with ``ProblemDetails``."""
    body = {"status": status, "title": title, "detail": detail}
    return status, {}, json.dumps(body).encode()


def instantiated(root: str, vdus: dict[str, str]) -> tuple[Document, dict[str, str]]:
    """``instantiatedVnfInfo``, and the ids that a heal takes.

    :param vdus: by the ids of their servers, as the ids of VNFCs are.
    """
    resources, infos, healed = [], [], {}
    for server, vdu in vdus.items():
        resource = {"id": str(uuid.uuid4()), "vduId": vdu}
        resources.append({**resource, "computeResource": {"resourceId": server}})
        info = {"id": f"{vdu}-{server}", "vduId": vdu}
        infos.append({**info, "vnfcResourceInfoId": resource["id"]})
        healed[server] = resource["id"] if root == V1 else info["id"]
    level = {"aspectId": "worker_instance", "scaleLevel": 0}
    found: Document = {"flavourId": "simple", "scaleStatus": [level]}
    found["vnfcResourceInfo"] = resources
    if root == V2:
        found |= {"vnfcInfo": infos, "maxScaleLevels": [{**level, "scaleLevel": 7}]}
    return found, healed


def vnfd_zip(files: dict[str, str]) -> bytes:
    """The VNFD as Tacker sends it."""
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w") as package:
        for name, text in files.items():
            package.writestr(name, text)
    return packed.getvalue()


class TackerApi:
    """One Tacker.

    :ivar rows: VNF instances and operations by API, kind and id.
    :ivar packages: the zip of the VNFD by the package's id and that of the VNFD.
    :ivar sent: method, path, headers and body of each request that is no GET.
    :ivar instead: answers in place of the next ones, by method and path.
    :ivar course: the states that an operation is in at the questions to come.
    :ivar page: rows of a page.
    :ivar operational: the state of each package.
    """

    def __init__(self) -> None:
        self.rows: dict[tuple[str, str], dict[str, Document]] = {
            (root, kind): {}
            for root in (V1, V2)
            for kind in ("vnf_instances", "vnf_lcm_op_occs")
        }
        self.packages: dict[tuple[str, str], bytes] = {}
        self.sent: list[tuple[str, str, dict[str, str], Any]] = []
        self.asked: list[str] = []
        self.instead: dict[tuple[str, str], list[Raw]] = {}
        self.course: list[str] = []
        self.page = 100
        self.operational = "ENABLED"

    def instance(self, root: str, name: str, **more: Any) -> str:
        """Add an instantiated VNF instance."""
        made = {
            "id": str(uuid.uuid4()),
            "vnfInstanceName": name,
            "vnfdId": str(uuid.uuid4()),
            "instantiationState": "INSTANTIATED",
            "instantiatedVnfInfo": {"flavourId": "simple"},
            **more,
        }
        self.rows[root, "vnf_instances"][made["id"]] = made
        return str(made["id"])

    def operation(self, root: str, instance: str, kind: str, **more: Any) -> str:
        """Add an operation."""
        scale = {"type": kind} if kind.startswith("SCALE_") else {}
        made = {
            "id": str(uuid.uuid4()),
            "operationState": "FAILED_TEMP",
            "stateEnteredTime": "2026-01-01T00:00:05Z",
            "startTime": "2026-01-01T00:00:00Z",
            "vnfInstanceId": instance,
            "operation": kind.partition("_")[0] if scale else kind,
            "operationParams": scale,
            "isAutomaticInvocation": False,
            "isCancelPending": False,
            **more,
        }
        self.rows[root, "vnf_lcm_op_occs"][made["id"]] = made
        return str(made["id"])

    def handler(self) -> type[BaseHTTPRequestHandler]:
        """What serves it."""
        made = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_GET(self) -> None:
                made.asked.append(self.path)
                self._answer("GET", None)

            def do_POST(self) -> None:
                self._answer("POST", self._body())

            def do_PATCH(self) -> None:
                self._answer("PATCH", self._body())

            def _body(self) -> Any:
                data = self.rfile.read(int(self.headers.get("Content-Length") or 0))
                return json.loads(data) if data else None

            def _answer(self, method: str, body: Any) -> None:
                headers = {k.lower(): v for k, v in self.headers.items()}
                host = f"http://{headers['host']}"
                found = made.answer(method, self.path, headers, body, host)
                status, more, data = found
                self.send_response(status)
                for name, value in more.items():
                    self.send_header(name, value)
                if "Content-Length" not in more:
                    self.send_header("Content-Length", str(len(data)))
                self.end_headers()
                self.wfile.write(data)

            def log_message(self, *args: object) -> None:
                """Nothing goes to the test's output."""

        return Handler

    def answer(
        self, method: str, target: str, headers: dict[str, str], body: Any, host: str
    ) -> Raw:
        """The answer to a request."""
        split = urlsplit(target)
        if method != "GET":
            self.sent.append((method, target, headers, body))
        if waiting := self.instead.get((method, split.path)):
            return waiting.pop(0)
        query = {name: values[-1] for name, values in parse_qs(split.query).items()}
        if found := _PACKAGES.fullmatch(split.path):
            return self._package(found[1], bool(found[2]), query)
        found = _PATH.fullmatch(split.path)
        if not found:
            return problem(404, "The resource could not be found.", "Not Found")
        root, kind = found[1], found[2]
        if root == V2 and headers.get("version") != "2.0.0":
            return problem(400, "Version header missing.", "Bad Request")
        if not found[3]:
            return self._page(root, kind, split.path, query, host)
        row = self.rows[root, kind].get(found[3][1:])
        if row is None:
            return problem(404, f"{kind} not found.", "Not Found")
        if method == "GET":
            return 200, {}, json.dumps(self._shown(kind, row)).encode()
        return self._act(root, kind, row, (found[4] or "/update")[1:], body, host)

    def _shown(self, kind: str, row: Document) -> Document:
        if kind != "vnf_lcm_op_occs":
            return row
        now = row["operationState"]
        # What nobody has planned is over at once.
        usual = "COMPLETED" if now == "STARTING" else now
        state = self.course.pop(0) if self.course else usual
        if state != now:
            row["operationState"] = state
            row["stateEnteredTime"] = f"2026-01-01T01:00:{len(self.course):02}Z"
        return row

    def _page(
        self, root: str, kind: str, path: str, query: dict[str, str], host: str
    ) -> Raw:
        rows = list(self.rows[root, kind].values())
        if wanted := _FILTER.fullmatch(query.get("filter", "")):
            rows = [row for row in rows if row.get(wanted[1]) == wanted[2]]
        ids = [row["id"] for row in rows]
        after = query.get("nextpage_opaque_marker")
        start = ids.index(after) + 1 if after in ids else 0
        part = rows[start : start + self.page]
        rest = len(rows) > start + self.page
        last = f"{host}{path}?nextpage_opaque_marker={part[-1]['id']}" if rest else ""
        link = {"Link": f'<{last}>; rel="next"'} if rest else {}
        hidden = {"operationParams", "error"} if kind == "vnf_lcm_op_occs" else set()
        listed = [{k: v for k, v in r.items() if k not in hidden} for r in part]
        return 200, link, json.dumps(listed).encode()

    def _package(self, package: str | None, vnfd: bool, query: dict[str, str]) -> Raw:
        if package is None:
            wanted = _FILTER.fullmatch(query.get("filter", ""))
            known = [one for one in self.packages if wanted and one[1] == wanted[2]]
            rows = [{"id": one} for one, _ in known]
            return 200, {}, json.dumps(rows).encode()
        found = next((one for one in self.packages if one[0] == package), None)
        if found is None:
            return problem(404, "Can not find requested vnf package", "Not Found")
        if vnfd:
            return 200, {"Content-Type": "application/zip"}, self.packages[found]
        shown = {"id": package, "vnfdId": found[1], "onboardingState": "ONBOARDED"}
        shown |= {"operationalState": self.operational}
        return 200, {}, json.dumps(shown).encode()

    def _act(
        self, root: str, kind: str, row: Document, verb: str, body: Any, host: str
    ) -> Raw:
        if kind == "vnf_lcm_op_occs":
            if row["operationState"] != "FAILED_TEMP":
                text = NOT_FAILED[root].format(
                    state=row["operationState"], id=row["id"]
                )
                return problem(409, text)
            if verb == "fail":
                row |= {"operationState": "FAILED", "stateEnteredTime": "later"}
                return 200, {}, json.dumps(row).encode()
            return 202, {}, b""
        usual = "MODIFY_INFO" if verb == "update" else verb.upper()
        made = self.operation(
            root, row["id"], body.get("type") or usual, operationState="STARTING"
        )
        return 202, {"Location": f"{host}{root}/vnf_lcm_op_occs/{made}"}, b""
