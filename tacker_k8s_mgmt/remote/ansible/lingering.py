"""Whether systemd-logind ends a login's processes with the login."""

from tacker_k8s_mgmt.remote.ssh.session import Session

_LIMIT = 30.0  # seconds
# logind.conf(5). Without a session id, logind does not know of the login.
_SCRIPT = r"""
[ -n "${XDG_SESSION_ID:-}" ] || exit 1
manager="org.freedesktop.login1 /org/freedesktop/login1 org.freedesktop.login1.Manager"
setting() { busctl get-property $manager "$1"; }
user=\"$(id -un)\"
[ "$(setting KillUserProcesses)" = "b true" ] || exit 1
case $(setting KillExcludeUsers) in *"$user"*) exit 1 ;; esac
case $(setting KillOnlyUsers) in "as 0" | *"$user"*) ;; *) exit 1 ;; esac
"""


def ended_with_login(session: Session) -> bool:
    """Return whether logind ends this user's processes at the end of a login.

    That includes playbook runs: neither ``setsid`` nor, without lingering, a scope of
    the user's service manager prevents it.

    :returns: False also if logind cannot be queried.
    :raises RemoteError: the session broke.
    """
    return session.run(["sh", "-c", _SCRIPT], timeout=_LIMIT, check=False).rc == 0
