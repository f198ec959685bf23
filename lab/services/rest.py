# SPDX-License-Identifier: Apache-2.0
"""Calls of OpenStack's REST APIs: JSON, a token, no proxies, nothing more."""

import json
import urllib.error
import urllib.request
from typing import Any

from lab import LabError
from lab.settings import IDENTITY_URL, PASSWORD

LIMIT = 60.0
LOOK_LIMIT = 2.0
_OPENER = urllib.request.build_opener(urllib.request.ProxyHandler({}))


def answers(url: str) -> bool:
    """Whether a server answers HTTP there, with any status."""
    try:
        _OPENER.open(url, timeout=LOOK_LIMIT).close()
    except urllib.error.HTTPError as error:
        return error.code < 500
    except OSError:
        return False
    return True


class Session:
    """A user in a project.

    :raises LabError: Keystone refused.
    """

    def __init__(self, user: str, project: str) -> None:
        domain = {"id": "default"}
        login = {"name": user, "domain": domain, "password": PASSWORD}
        body = {
            "auth": {
                "identity": {"methods": ["password"], "password": {"user": login}},
                "scope": {"project": {"name": project, "domain": domain}},
            }
        }
        self._token = ""
        headers, _ = self._send("POST", f"{IDENTITY_URL}/auth/tokens", body)
        self._token = headers["X-Subject-Token"]

    def get(self, url: str) -> Any:
        """The document at an address."""
        return self._send("GET", url)[1]

    def post(self, url: str, body: dict[str, Any]) -> Any:
        """Create something; the document that describes it."""
        return self._send("POST", url, body)[1]

    def put(self, url: str) -> None:
        """Make a relation that the address describes."""
        self._send("PUT", url)

    def _send(
        self, method: str, url: str, body: dict[str, Any] | None = None
    ) -> tuple[Any, Any]:
        data = None if body is None else json.dumps(body).encode()
        headers = {"Content-Type": "application/json", "Accept": "application/json"}
        if self._token:
            headers["X-Auth-Token"] = self._token
        request = urllib.request.Request(  # noqa: S310  our own addresses
            url, data, headers, method=method
        )
        try:
            with _OPENER.open(request, timeout=LIMIT) as response:
                text = response.read()
                return response.headers, json.loads(text) if text else None
        except urllib.error.HTTPError as error:
            message = error.read().decode(errors="replace")
            raise LabError(f"{method} {url}: HTTP {error.code}: {message}") from error
        except OSError as error:
            raise LabError(f"{method} {url}: {error}") from error
