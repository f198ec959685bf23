# SPDX-License-Identifier: Apache-2.0
"""Files of applications from URLs, read by a control plane.

The cluster is its users' own, Tacker's conductor is not: so no request can direct the
conductor to another host. The proxy is that of the nodes.
"""

import hashlib
import json
from collections.abc import Mapping

from tacker_k8s_mgmt import errors
from tacker_k8s_mgmt.remote.ssh.session import Session

LARGEST = 20 * 1024 * 1024  # bytes
_LIMIT = 300.0  # seconds
_MARGIN = 30.0


def fetch(session: Session, url: str, sha256: str, proxy: Mapping[str, str]) -> bytes:
    """Read a URL over TLS, whose certificate is verified.

    :param sha256: of the file, in lower-case hexadecimal digits.
    :param proxy: options of curl for the proxy; they may have a login.
    :raises RemoteError: it cannot be read, is too large, or is another file.
    """
    options = {
        "url": url,
        # Of redirections, too.
        "proto": "=https",
        "max-redirs": "5",
        "max-time": f"{_LIMIT:g}",
        "max-filesize": str(LARGEST),
        **proxy,
    }
    # curl knows JSON's quotes and backslashes, but not its \uXXXX.
    quoted = {n: json.dumps(v, ensure_ascii=False) for n, v in options.items()}
    lines = [f"{name} = {value}" for name, value in quoted.items()]
    flags = "fail\nsilent\nshow-error\nlocation\n"
    with session.scratch() as directory:
        path = f"{directory}/file"
        argv = ["curl", "--config", "-", "--output", path]
        config = flags + "\n".join(lines) + "\n"
        try:
            session.run(argv, stdin=config, timeout=_LIMIT + _MARGIN)
        except errors.CommandFailed as error:
            raise _unusable(url, error.fields["tail"], session.host) from None
        # A server need not tell the length beforehand.
        size = session.run(["stat", "-c", "%s", path], timeout=30).stdout.strip()
        if not size.isdecimal() or int(size) > LARGEST:
            raise _unusable(url, f"it has more than {LARGEST} bytes", session.host)
        content = session.get(path) or b""
    found = hashlib.sha256(content).hexdigest()
    if found != sha256:
        raise _unusable(url, f"its SHA-256 is {found}, not {sha256}", session.host)
    return content


def _unusable(url: str, reason: str, host: str) -> errors.RemoteError:
    return errors.RemoteError(
        detail=f"{url} cannot be used, as {host} reads it: {reason.rstrip('.')}.",
    )
