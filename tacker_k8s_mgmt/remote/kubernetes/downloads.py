# SPDX-License-Identifier: Apache-2.0
"""Files of applications from URLs, read by a control plane.

The cluster is its users' own, Tacker's conductor is not: so no request can direct the
conductor to another host. The proxy is that of the nodes.
"""

import hashlib
import json
from collections.abc import Mapping

from tacker_k8s_mgmt import errors
from tacker_k8s_mgmt.model import untrusted
from tacker_k8s_mgmt.remote.ssh.session import Session

LARGEST = 20 * 1024 * 1024  # bytes
_LIMIT = 300.0  # seconds
_MARGIN = 30.0
_BLOCK = 512  # bytes, in which a shell counts
# The limit holds while curl writes: not every server tells a length beforehand, and
# not every curl watches it then. Without the signal, curl fails and dumps no core.
_LIMITED = 'trap \'\' XFSZ; ulimit -f "$1" && exec curl --config - --output "$2"'


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
    # Without globoff, brackets and braces are many URLs.
    flags = "fail\nsilent\nshow-error\nlocation\ngloboff\n"
    with session.scratch() as directory:
        path = f"{directory}/file"
        argv = ["sh", "-c", _LIMITED, "sh", str(LARGEST // _BLOCK + 1), path]
        config = flags + "\n".join(lines) + "\n"
        failure = ""
        try:
            session.run(argv, stdin=config, timeout=_LIMIT + _MARGIN)
        except errors.CommandFailed as error:
            failure = error.fields["tail"]
        if _size(session, path) > LARGEST:
            failure = f"it has more than {LARGEST} bytes"
        if failure:
            raise _unusable(url, failure, session.host)
        content = session.get(path) or b""
    if hashlib.sha256(content).hexdigest() != sha256:
        # Not which it is: the answer may be that of a server inside, which the request
        # has no business to know.
        raise _unusable(url, f"its SHA-256 is not {sha256}", session.host)
    return content


def _size(session: Session, path: str) -> int:
    """The size of a file; 0 if there is none."""
    argv = ["stat", "-c", "%s", path]
    text = session.run(argv, timeout=30, check=False).stdout.strip()
    return int(text) if text.isdecimal() and len(text) < 20 else 0


def _unusable(url: str, reason: str, host: str) -> errors.RemoteError:
    return errors.RemoteError(
        detail=f"{untrusted.shown(url)} cannot be used, as {host} reads it: "
        f"{reason.rstrip('.')}.",
    )
