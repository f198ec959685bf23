# SPDX-License-Identifier: Apache-2.0
"""The way to run a command as root on a host: as root, or with sudo."""

from collections.abc import Callable
from dataclasses import dataclass, field

from tacker_k8s_mgmt import errors
from tacker_k8s_mgmt.remote.ssh.channel import Result, last_lines

# sudo's own PATH may be shorter: kubespray installs kubectl in /usr/local/bin, on
# Flatcar in /opt/bin.
PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin:/opt/bin"

_HINT = (
    "Let user {user} run every command with sudo on {host}, with the login password or "
    "without one, and without requiretty."
)
_HINT_FOR_KEYS = (
    "For the former, give the password beside the private key in the parameters."
)

#: Counts the lines that sudo left on standard input.
PROBE = ("wc", "-l")
_ENVIRONMENT = ("env", f"PATH={PATH}", "LC_ALL=C")


@dataclass(frozen=True)
class Elevation:
    """An argv prefix, and what has to come first on standard input."""

    prefix: tuple[str, ...]
    stdin: bytes = field(default=b"", repr=False)


def find(
    host: str,
    username: str,
    password: str | None,
    attempt: Callable[[Elevation], Result],
) -> Elevation:
    """Return the elevation that works on a host, with or without the password.

    With a password there is one attempt: sudo reads it only if it needs one, and a
    refused ``sudo -n`` would be logged as an error.

    :param password: None if the parameters give a private key alone.
    :param attempt: runs :data:`PROBE` with an elevation. The prefix is the one used
        later, because sudo rules may name programs.
    :raises CommandFailed: none works.
    """
    if username == "root":
        return Elevation(_ENVIRONMENT)
    silent = Elevation(("sudo", "-n", "--", *_ENVIRONMENT))
    hint = _HINT.format(user=username, host=host)
    if password is None:
        result = attempt(silent)
        if result.rc != 0:
            raise _refused(host, result, f"{hint} {_HINT_FOR_KEYS}")
        return silent
    # -k: with cached credentials sudo would leave the password to the command's input.
    asking = Elevation(
        ("sudo", "-k", "-S", "-p", "", "--", *_ENVIRONMENT), f"{password}\n".encode()
    )
    result = attempt(asking)
    if result.rc != 0:
        raise _refused(host, result, hint)
    return asking if result.stdout.strip() == "0" else silent


def _refused(host: str, result: Result, hint: str) -> errors.CommandFailed:
    return errors.CommandFailed(
        host=host,
        command="sudo true",
        rc=result.rc,
        tail=last_lines(result.stderr) or "no output",
        hint=hint,
    )
