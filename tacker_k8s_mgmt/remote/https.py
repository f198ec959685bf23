# SPDX-License-Identifier: Apache-2.0
"""One HTTPS request of this host: no redirect is followed, no proxy is used."""

import http.client
import socket
import ssl
from collections.abc import Mapping
from contextlib import suppress

from tacker_k8s_mgmt.model import untrusted
from tacker_k8s_mgmt.remote.timing import closing_after

_MOST = 1024 * 1024


class TooLongError(http.client.HTTPException):
    """The answer is longer than a mebibyte."""


def ask(
    url: str,
    headers: Mapping[str, str],
    sent: str | None = None,
    *,
    ca_certificate: str | None = None,
    seconds: float = 30.0,
) -> tuple[int, bytes]:
    """Return status and body of an answer.

    :param url: with a path, and no login.
    :param sent: JSON to post; None for a GET.
    :param ca_certificate: PEM, of the only CA that is trusted; None for those of this
        host.
    :param seconds: limit of the whole request.
    :raises OSError: there is no answer in time; of ``ssl.SSLError``, the server is not
        trusted, or the CA is none.
    :raises HTTPException: the answer is not HTTP, or too long.
    :raises ValueError: a header or the URL is none in HTTP; the text may have it.
    """
    trust = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    if ca_certificate is None:
        trust.load_default_certs()
    else:
        trust.load_verify_locations(cadata=ca_certificate)
    parts = untrusted.url_parts(url)
    connection = http.client.HTTPSConnection(
        parts.hostname or "", parts.port or 443, timeout=seconds, context=trust
    )

    def end() -> None:
        # To close a connection that another thread reads from ends no reading.
        if connection.sock is not None:
            with suppress(OSError):
                connection.sock.shutdown(socket.SHUT_RDWR)

    method, kind = "GET", {}
    if sent is not None:
        method, kind = "POST", {"Content-Type": "application/json"}
    query = f"?{parts.query}" if parts.query else ""
    try:
        # The connection's own limit is for each packet.
        with closing_after(seconds, end) as expired:
            path = f"{parts.path or '/'}{query}"
            connection.request(method, path, sent, {**headers, **kind})
            answer = connection.getresponse()
            body = answer.read(_MOST + 1)
    except AttributeError as error:
        # It was ended while it was opened.
        raise TimeoutError("no whole answer in time") from error
    finally:
        connection.close()
    if expired.is_set():
        # What was read until then looks like a whole answer.
        raise TimeoutError("no whole answer in time")
    if len(body) > _MOST:
        raise TooLongError("its answer is too long")
    return answer.status, body
