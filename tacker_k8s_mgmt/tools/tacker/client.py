# SPDX-License-Identifier: Apache-2.0
"""Calls of Tacker's REST API with the login of a cloud.

What Tacker sends is read with limits: of time, bytes, values and pages.
"""

import json
import re
import time
from collections.abc import Iterator, Mapping, MutableSet
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import urlencode

from tacker_k8s_mgmt.errors import TackerError
from tacker_k8s_mgmt.model import untrusted
from tacker_k8s_mgmt.model.yaml_text import mapping
from tacker_k8s_mgmt.text import STARS, names_secret, short, without_secret
from tacker_k8s_mgmt.tools.cloud.client import Cloud

#: Seconds for a whole answer, beside the limit for each part of it.
LIMIT = 60.0
#: Bytes of an answer. A VNF instance of 100 VMs has less than one megabyte.
LARGEST = 64 * 2**20
#: Pages of a list; Tacker's have 100 rows unless it is configured otherwise.
MOST_PAGES = 500
_PART = 2**16
_LONGEST_REASON = 4000  # characters
_NEXT = re.compile(r'<([^<>]{1,4000})>; *rel="?next"?')
_MARKER = re.compile(r"[?&]nextpage_opaque_marker=([0-9A-Za-z._-]{1,64})")
_JSON = "application/json"


class Refused(TackerError):
    """Tacker has answered with an error.

    :ivar status: of HTTP.
    """

    message = "Tacker refuses {method} {path} (HTTP {status}): {reason}."

    @property
    def status(self) -> int:
        """The status of HTTP."""
        return int(self.fields["status"])


class Silent(TackerError):
    """Tacker does not answer, or breaks off; the request may have reached it."""


@dataclass(frozen=True)
class Request:
    """A request to Tacker.

    :param version: the header ``Version``, which Tacker's v2 API demands; "" without.
    :param kind: ``Content-Type`` of the body.
    """

    method: str
    path: str
    version: str = ""
    body: Mapping[str, Any] | None = None
    kind: str = _JSON
    accept: str = _JSON

    @property
    def headers(self) -> dict[str, str]:
        """The headers without the token."""
        kind = {"Content-Type": self.kind} if self.body is not None else {}
        version = {"Version": self.version} if self.version else {}
        return {"Accept": self.accept, **kind, **version}

    def text(self) -> str:
        """It to be read, without token and secrets."""
        lines = [f"{self.method} {self.path}"]
        lines += [f"{name}: {value}" for name, value in self.headers.items()]
        if self.body is not None:
            shown = json.dumps(_masked(self.body), indent=2, ensure_ascii=False)
            lines += ["", shown]
        return "\n".join(lines)


def _masked(value: Any) -> Any:
    """The value with stars for what is a secret by its name or form."""
    if isinstance(value, Mapping):
        return {name: _of_name(str(name), inner) for name, inner in value.items()}
    if isinstance(value, list):
        return [_masked(inner) for inner in value]
    return without_secret(value) if isinstance(value, str) else value


def _of_name(name: str, value: Any) -> Any:
    if names_secret(name, value) and not isinstance(value, Mapping | list):
        return STARS
    return _masked(value)


@dataclass(frozen=True)
class Answer:
    """What Tacker has answered.

    :param headers: with small letters in their names.
    """

    status: int
    headers: Mapping[str, str] = field(default_factory=dict)
    content: bytes = b""

    def document(self) -> Any:
        """The body as a value.

        :raises TackerError: it is no JSON, or has too many values.
        """
        try:
            return untrusted.parse_json(self.content)
        except ValueError as error:
            why = short(str(error), 200)
            raise TackerError(detail=f"Tacker's answer is no JSON: {why}.") from None


class Tacker:
    """Tacker's API as one user sees it in one project."""

    def __init__(self, cloud: Cloud) -> None:
        self._cloud = cloud
        self._address = cloud.tacker_address()

    def send(self, request: Request) -> Answer:
        """Send a request once.

        :raises Refused: the status is an error's.
        :raises Silent: there is no answer, or not all of it.
        :raises TackerError: the login is not valid any more.
        """
        body = None if request.body is None else json.dumps(request.body).encode()
        with _reaching():
            response = self._cloud.send(
                request.method,
                f"{self._address}{request.path}",
                headers=request.headers,
                data=body,
            )
            try:
                content = _content(response)
            finally:
                response.close()
        headers = {str(k).lower(): str(v) for k, v in response.headers.items()}
        answer = Answer(int(response.status_code), headers, content)
        if not 200 <= answer.status < 300:
            raise _refused(request, answer)
        return answer

    def rows(
        self, path: str, version: str, query: Mapping[str, str] | None = None
    ) -> Iterator[Mapping[str, Any]]:
        """The rows of a list, of all of its pages.

        :raises TackerError: there is no list, or it has no end.
        """
        given, seen = dict(query or {}), set[str]()
        while True:
            asked = f"{path}?{urlencode(given)}" if given else path
            answer = self.send(Request("GET", asked, version))
            listed = answer.document()
            if not isinstance(listed, list):
                raise TackerError(detail=f"Tacker's answer to GET {path} is no list.")
            yield from map(mapping, listed)
            marker = _marker(answer.headers.get("link", ""))
            if not marker:
                return
            _refuse_endless(path, marker, seen)
            given["nextpage_opaque_marker"] = marker

    def document(self, path: str, version: str) -> Mapping[str, Any]:
        """The object at a path.

        :raises TackerError: there is none.
        """
        found = self.send(Request("GET", path, version)).document()
        if not isinstance(found, dict):
            raise TackerError(detail=f"Tacker's answer to GET {path} is no object.")
        return found


def _marker(link: str) -> str:
    """The marker of the next page; "" on the last one.

    The address of the link is not followed: the token is for Tacker alone.
    """
    found = _NEXT.search(link)
    marker = _MARKER.search(found[1]) if found else None
    return marker[1] if marker else ""


def _refuse_endless(path: str, marker: str, seen: MutableSet[str]) -> None:
    if marker in seen or len(seen) >= MOST_PAGES:
        raise TackerError(
            detail=f"Tacker's list at {path} has no end: more than {len(seen)} pages."
        )
    seen.add(marker)


@contextmanager
def _reaching() -> Iterator[None]:
    """Raise the errors of the libraries as ours."""
    import requests
    from keystoneauth1 import exceptions

    try:
        yield
    except exceptions.http.Unauthorized as error:
        raise TackerError(
            detail=f"Keystone does not take the login: {short(str(error), 300)}."
        ) from error
    except (exceptions.ClientException, requests.RequestException, OSError) as error:
        raise Silent(
            detail=f"Tacker does not answer: {short(str(error), 300).rstrip('.')}."
        ) from error


def _content(response: Any) -> bytes:
    """The body, as far as its limits allow.

    :raises Silent: it takes too long.
    :raises TackerError: it is too large.
    """
    end = time.monotonic() + LIMIT
    content = bytearray()
    for part in response.iter_content(_PART):
        content += part
        if len(content) > LARGEST:
            raise TackerError(
                detail=f"Tacker's answer has more than {LARGEST // 2**20} MiB."
            )
        if time.monotonic() > end:
            raise Silent(detail=f"Tacker's answer takes more than {LIMIT:.0f} s.")
    return bytes(content)


_HINTS = {
    401: "Look at the login in clouds.yaml or OS_*.",
    403: "Tacker's policy does not allow it to this user in this project.",
}


def _refused(request: Request, answer: Answer) -> Refused:
    """The error, with what ``ProblemDetails`` says."""
    try:
        said = mapping(answer.document())
    except TackerError:
        said = {}
    # keystonemiddleware has another form.
    texts = (said.get("detail"), said.get("title"), said.get("message"))
    reason = next((t for t in texts if isinstance(t, str) and t), "without a reason")
    return Refused(
        method=request.method,
        path=request.path.partition("?")[0],
        status=answer.status,
        reason=short(reason, _LONGEST_REASON).rstrip("."),
        hint=_HINTS.get(answer.status, ""),
    )
