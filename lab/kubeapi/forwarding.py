# SPDX-License-Identifier: Apache-2.0
"""Handing a request on to the API server that serves, and its answer back.

The user is passed on as by Kubernetes' aggregator: in ``X-Remote-User`` and
``X-Remote-Group``, which count only from the owner of the front proxy's certificate.
Bearer tokens go along as they are.
"""

import http.client
import ssl
import urllib.parse
from collections.abc import Iterable
from email.message import Message

from .access import Identity
from .errors import ApiError

PROXY_USER = "front-proxy-client"
NOT_SERVING = "X-Not-Serving"
_PASSED_ON = ("Accept", "Authorization", "Content-Type", "Host", "User-Agent")
_CONNECT_LIMIT, _ANSWER_LIMIT = 2.0, 2000.0  # seconds; a watch may be silent for long


class NotServing(Exception):
    """That server did not begin with the request; another may."""


def as_headers(identity: Identity) -> list[tuple[str, str]]:
    """Headers that pass the user on to the other server."""
    groups = [("X-Remote-Group", group) for group in sorted(identity.groups)]
    return [("X-Remote-User", identity.user), *groups]


def identity_in(headers: Message) -> Identity | None:
    """The user in the headers of a request of the front proxy."""
    user = headers.get("X-Remote-User")
    groups = frozenset(headers.get_all("X-Remote-Group") or ())
    return Identity(user, groups) if user else None


def context(ca: str, certificate: str, key: str) -> ssl.SSLContext:
    """For connections to the other servers, as the front proxy."""
    made = ssl.create_default_context(cafile=ca)
    made.load_cert_chain(certificate, key)
    return made


def send(
    url: str,
    tls: ssl.SSLContext | None,
    method: str,
    path: str,
    headers: Message,
    more: Iterable[tuple[str, str]],
    body: bytes,
) -> http.client.HTTPResponse:
    """The answer of the other server, its head read.

    :raises NotServing: it was not asked, or does not serve.
    :raises ApiError: 503, it broke off.
    """
    parts = urllib.parse.urlsplit(url)
    host, port = parts.hostname or "", parts.port
    connection: http.client.HTTPConnection
    if tls:
        connection = http.client.HTTPSConnection(
            host, port, timeout=_CONNECT_LIMIT, context=tls
        )
    else:
        connection = http.client.HTTPConnection(host, port, timeout=_CONNECT_LIMIT)
    try:
        connection.connect()
    except OSError as error:
        raise NotServing(str(error)) from error
    connection.sock.settimeout(_ANSWER_LIMIT)
    try:
        connection.putrequest(method, path, skip_host=True, skip_accept_encoding=True)
        passed_on = [(name, headers[name]) for name in _PASSED_ON if name in headers]
        for name, value in (*passed_on, *more, ("Content-Length", str(len(body)))):
            connection.putheader(name, value)
        connection.putheader("Connection", "close")
        connection.endheaders(body)
        answer = connection.getresponse()
    except (OSError, http.client.HTTPException) as error:
        connection.close()
        text = f"the API server at {url} broke off: {error!r}"
        raise ApiError(503, "ServiceUnavailable", text) from error
    if answer.headers.get(NOT_SERVING):
        connection.close()
        raise NotServing(url)
    return answer
