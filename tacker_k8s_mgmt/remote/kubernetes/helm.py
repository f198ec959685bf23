# SPDX-License-Identifier: Apache-2.0
"""Helm on a control plane, for Tacker's v1 API, which runs it there over SSH.

Tacker logs in with a password, which it keeps in its database and shows, and calls
``sudo`` for its directory of charts (``helm_client.py``). So the login is one of its
own: its sudo makes it no other user, and in the cluster it may do what the VIM may.
Where sudo is sudo-rs, which cannot be configured so, a program of that name runs what
it is given as the same user.
"""

import json
from collections.abc import Callable

from pydantic import SecretStr

from tacker_k8s_mgmt import errors
from tacker_k8s_mgmt.model.vim import CHARTS, USER, ClusterAccess, kubeconfig
from tacker_k8s_mgmt.remote.ssh.session import Session
from tacker_k8s_mgmt.request.accounts import Account

_LIMIT = 60.0  # seconds
_TRANSFER_LIMIT = 180.0

# Arguments: user, its home directory. Input: its password, then its kubeconfig.
# Debian's and Red Hat's sshd read sshd_config.d before their own settings, and the
# first value counts. Prints "new" if there was no such user.
_PREPARE = r"""
umask 077
user=$1 home=$2
IFS= read -r password
if ! id -u "$user" >/dev/null 2>&1; then
  useradd --system --home-dir "$home" --no-create-home --shell /bin/sh "$user"
  echo new
fi
mkdir -m 0755 -p "${home%/*}"
install -d -m 0700 -o "$user" "$home"
# As the user: root shall not follow links of it.
runuser -u "$user" -- sh -euc 'umask 077; cd "$1"; mkdir -p .kube
  cat >.kube/config.new; mv -f .kube/config.new .kube/config' sh "$home"
printf '%s:%s\n' "$user" "$password" | chpasswd -c SHA512

rules=/etc/sudoers.d/$user
printf '%s\n' "Defaults:$user runas_default=$user, !requiretty" \
  "$user ALL=($user) NOPASSWD: ALL" >"$rules.new"
chmod 0440 "$rules.new"
programs=
if visudo -cqf "$rules.new" >/dev/null 2>&1; then
  mv -f "$rules.new" "$rules"
else
  # sudo-rs has no runas_default. What Tacker calls is then no sudo at all.
  rm -f "$rules.new" "$rules"
  programs=/usr/local/lib/$user
  install -d -m 0755 "$programs"
  printf '%s\n' '#!/bin/sh' 'exec "$@"' >"$programs/sudo"
  chmod 0755 "$programs/sudo"
  if [ ! -d /etc/ssh/sshd_config.d ]; then
    echo "sudo-rs takes an sshd that reads /etc/ssh/sshd_config.d" >&2
    exit 1
  fi
fi

settings=/etc/ssh/sshd_config.d/10-$user.conf
wanted="Match User $user
  PasswordAuthentication yes
  AuthenticationMethods password
  AllowTcpForwarding no
  AllowAgentForwarding no
  X11Forwarding no
  PermitTTY no${programs:+
  SetEnv PATH=$programs:/usr/local/bin:/usr/bin:/bin:/opt/bin}"
if [ -d "${settings%/*}" ] && [ "$(cat "$settings" 2>/dev/null)" != "$wanted" ]; then
  printf '%s\n' "$wanted" >"$settings"
  sshd -t
  for unit in ssh sshd; do
    if systemctl is-active --quiet "$unit"; then
      systemctl reload "$unit"
      break
    fi
  done
fi
if ! sshd -T -C "user=$user,host=tacker,addr=192.0.2.1" |
  grep -qix 'passwordauthentication yes'; then
  echo "sshd accepts no password of $user, which /etc/ssh/sshd_config must not" \
    "rule out" >&2
  exit 1
fi
"""
_PACK = """
cd "$1"
runuser -u "$2" -- tar --exclude=./.kube -czf - . | base64 -w 0
"""
_UNPACK = 'cd "$1"; base64 -d | runuser -u "$2" -- tar -xzf -'


class HelmHost:
    """A control plane on which Tacker runs Helm.

    :param session: of a user that may use sudo.
    :param server: URL of the node's own API server.
    :param log_in: opens a session of another account.
    """

    def __init__(
        self, session: Session, server: str, log_in: Callable[[Account], Session]
    ) -> None:
        self._session = session
        self._server = server
        self._log_in = log_in

    def prepare(self, password: SecretStr, access: ClusterAccess) -> bool:
        """Create the login, or bring it in agreement.

        :param access: what the VIM is registered with.
        :returns: whether there was none.
        :raises RemoteError: the node refused something, or cannot be reached.
        """
        # JSON is YAML, too.
        config = json.dumps(kubeconfig(self._server, access, "cluster", USER, USER))
        text = f"{password.get_secret_value()}\n{config}"
        argv = ["sh", "-euc", _PREPARE, "sh", USER, CHARTS]
        try:
            result = self._session.run(argv, stdin=text, timeout=_LIMIT, sudo=True)
        except errors.CommandFailed as error:
            raise errors.HelmLoginError(
                host=self._session.host, reason=error.fields["tail"]
            ) from None
        return "new" in result.stdout.split()

    def verify(self, password: SecretStr) -> None:
        """Do what Tacker does: log in with the password, and list releases.

        :raises HelmLoginError: it does not work.
        """
        account = Account("cluster.helm", USER, password, None)
        try:
            with self._log_in(account) as session:
                session.run(["sudo", "test", "-w", CHARTS], timeout=_LIMIT)
                session.run(["helm", "list", "--short"], timeout=_LIMIT)
        except (errors.AuthError, errors.CommandFailed) as error:
            reason = error.fields.get("tail") or str(error)
            raise errors.HelmLoginError(
                host=self._session.host, reason=reason
            ) from None

    def charts(self) -> str:
        """Return the charts and repositories that Tacker has put there, packed.

        :raises CommandFailed: also if they are larger than a session's output may be.
        """
        argv = ["sh", "-euc", _PACK, "sh", CHARTS, USER]
        result = self._session.run(argv, timeout=_TRANSFER_LIMIT, sudo=True)
        return result.stdout

    def restore(self, charts: str) -> None:
        """Unpack what :meth:`charts` has returned on another control plane."""
        argv = ["sh", "-euc", _UNPACK, "sh", CHARTS, USER]
        self._session.run(argv, stdin=charts, timeout=_TRANSFER_LIMIT, sudo=True)
