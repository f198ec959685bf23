"""Whether a host can be reached: from here with a login, from elsewhere at a port."""

from tacker_k8s_mgmt import errors
from tacker_k8s_mgmt.remote.ssh import session as ssh_session
from tacker_k8s_mgmt.remote.ssh.endpoint import Endpoint
from tacker_k8s_mgmt.remote.ssh.known_hosts import HostKeys

_SHORT = 30.0  # seconds
_CONNECT = 10.0  # seconds
# Each program named here is in every distribution; nc and ssh-keyscan are not.
_KNOCK = ("bash", "-c", 'exec 3<>"/dev/tcp/$0/$1"')


def login(endpoint: Endpoint, redact: ssh_session.Redact, seconds: float) -> str:
    """Log in and become root; why that cannot be done, "" if it can.

    Whatever key the host shows is taken, and none is recorded.
    """
    try:
        with ssh_session.connect(
            endpoint, host_keys=HostKeys(), redact=redact, deadline=seconds
        ) as session:
            session.run(["true"], sudo=True, timeout=_SHORT)
    except errors.RemoteError as error:
        return str(error)
    return ""


def port(session: ssh_session.Session, host: str, number: int) -> str:
    """Open a TCP connection from the session's host; "" if that can be done.

    Several threads may share the session.
    """
    try:
        asked = [*_KNOCK, host, str(number)]
        result = session.run(asked, timeout=_CONNECT, check=False)
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
