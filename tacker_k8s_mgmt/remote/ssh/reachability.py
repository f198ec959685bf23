# SPDX-License-Identifier: Apache-2.0
"""Whether a host is reached: by a login from here, or at a port from another host."""

from tacker_k8s_mgmt import errors
from tacker_k8s_mgmt.remote.ssh.known_hosts import HostKeys
from tacker_k8s_mgmt.remote.ssh.login import open_ssh
from tacker_k8s_mgmt.remote.ssh.session import LoginTarget, Redact, Session

_SHORT = 30.0  # seconds
_CONNECT = 10.0  # seconds
# bash is in every distribution; nc and ssh-keyscan are not.
_KNOCK = ("bash", "-c", 'exec 3<>"/dev/tcp/$0/$1"')


def login_problem(endpoint: LoginTarget, redact: Redact, seconds: float) -> str:
    """Log in and become root; return why that failed, or "".

    Any host key is accepted, and none is recorded.
    """
    try:
        with open_ssh(
            endpoint, host_keys=HostKeys(), redact=redact, deadline=seconds
        ) as session:
            session.run(["true"], sudo=True, timeout=_SHORT)
    except errors.RemoteError as error:
        return str(error)
    return ""


def port_problem(session: Session, host: str, number: int) -> str:
    """Open a TCP connection from the session's host; return why that failed, or "".

    Several threads may share the session.
    """
    try:
        argv = [*_KNOCK, host, str(number)]
        result = session.run(argv, timeout=_CONNECT, check=False)
    except errors.CommandTimeout:
        why = f"no answer within {_CONNECT:g} s"
    except errors.RemoteError as error:
        return str(error)
    else:
        if result.rc == 0:
            return ""
        why = result.stderr.strip().rpartition(": ")[2] or "no reason was given"
    return (
        f"{session.host} cannot open a connection to {host}, port {number}: {why}. "
        "Let routes, firewalls and security groups pass it."
    )
