"""Whether what a login starts outlives it: systemd-logind may end it all."""

from tacker_k8s_mgmt.remote.ssh.session import Session

_LIMIT = 30.0  # seconds
# logind.conf(5). Without the session's id, sshd has not told logind of the login.
_ENDED = r"""
[ -n "${XDG_SESSION_ID:-}" ] || exit 1
manager="org.freedesktop.login1 /org/freedesktop/login1 org.freedesktop.login1.Manager"
setting() { busctl get-property $manager "$1"; }
user=\"$(id -un)\"
[ "$(setting KillUserProcesses)" = "b true" ] || exit 1
case $(setting KillExcludeUsers) in *"$user"*) exit 1 ;; esac
case $(setting KillOnlyUsers) in "as 0" | *"$user"*) ;; *) exit 1 ;; esac
"""


def ended_with_login(session: Session) -> bool:
    """Whether logind ends the processes of this user at the end of a login.

    Playbook runs, too: neither ``setsid`` nor, without lingering, a scope of the user's
    own service manager keeps a process from that.

    :returns: False also where logind cannot be asked.
    :raises RemoteError: the session broke.
    """
    return session.run(["sh", "-c", _ENDED], timeout=_LIMIT, check=False).rc == 0
