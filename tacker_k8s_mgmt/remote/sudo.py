"""How the login user of a host becomes root for one command."""

from collections.abc import Callable
from dataclasses import dataclass, field

from tacker_k8s_mgmt import errors
from tacker_k8s_mgmt.remote.exchange import Result, last_lines

# What a non-interactive sudo may lack: kubespray puts kubectl into /usr/local/bin, on
# Flatcar into /opt/bin.
PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin:/opt/bin"

_HINT = (
    "Let user {user} run every command with sudo on {host}, with the login password or "
    "without one, and without requiretty."
)

_ENVIRONMENT = ("env", f"PATH={PATH}")


@dataclass(frozen=True)
class Elevation:
    """An argv prefix, and what has to come first on standard input."""

    prefix: tuple[str, ...]
    stdin: bytes = field(default=b"", repr=False)


def find(
    host: str, username: str, password: str, attempt: Callable[[Elevation], Result]
) -> Elevation:
    """Find the way that works on a host: silently, or with the login password.

    :param attempt: runs ``true`` in the given way. It is asked with the very program
        that the prefix starts, since a sudo rule may name programs.
    :raises CommandFailed: there is none.
    """
    if username == "root":
        return Elevation(_ENVIRONMENT)
    silent = Elevation(("sudo", "-n", "--", *_ENVIRONMENT))
    if attempt(silent).rc == 0:
        return silent
    # -k: with a cached login sudo would leave the password line to the command.
    asking = Elevation(
        ("sudo", "-k", "-S", "-p", "", "--", *_ENVIRONMENT), f"{password}\n".encode()
    )
    result = attempt(asking)
    if result.rc != 0:
        raise errors.CommandFailed(
            host=host,
            command="sudo true",
            rc=result.rc,
            tail=last_lines(result.stderr) or "no output",
            hint=_HINT.format(user=username, host=host),
        )
    return asking
