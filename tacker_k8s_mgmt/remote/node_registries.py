# SPDX-License-Identifier: Apache-2.0
"""What a node needs to pull from private registries: CA certificates and names."""

from collections.abc import Mapping, Sequence

from tacker_k8s_mgmt.remote.ssh.session import Session

_LIMIT = 60.0  # seconds for one file
_MARK = "# tacker-k8s-mgmt: private registry"
# Replaces a file by what comes on standard input. Argument: its path.
_WRITE = """
set -eu
umask 022
mkdir -p -- "$(dirname -- "$1")"
new=$(mktemp -- "$1.XXXXXX")
trap 'rm -f -- "$new"' EXIT
cat >"$new"
chmod 0644 -- "$new"
mv -f -- "$new" "$1"
"""
# Replaces the marked lines of a file by those on standard input, and leaves the others
# as they are. In a container the file may be a mount, which nothing can be moved to.
# Nothing is written where nothing is wanted and no line is marked.
# Arguments: its path, the mark.
_MERGE = """
set -eu
wanted=$(cat)
[ -n "$wanted" ] || grep -qF -- "$2" "$1" 2>/dev/null || exit 0
file=$(readlink -f -- "$1")
[ -e "$file" ] || : >"$file"
new=$(mktemp -- "$file.XXXXXX")
trap 'rm -f -- "$new"' EXIT
cp -a -- "$file" "$new"
{ grep -vF -- "$2" "$file" || [ $? = 1 ]; } >"$new"
[ -z "$wanted" ] || printf '%s\\n' "$wanted" >>"$new"
[ "$(cat -- "$new")" = "$(cat -- "$file")" ] ||
  mv -f -- "$new" "$file" 2>/dev/null || cat -- "$new" >"$file"
"""


def place(
    session: Session,
    certificates: Mapping[str, bytes],
    entries: Sequence[str],
    hosts: str = "/etc/hosts",
) -> None:
    """Write certificates and names; a second time, nothing changes.

    :param certificates: content by path on the node.
    :param entries: lines of /etc/hosts. Those of earlier requests are removed.
    :param hosts: that file.
    :raises RemoteError: the node could not be asked, or cannot write.
    """
    for path, content in certificates.items():
        argv = ["sh", "-c", _WRITE, "sh", path]
        session.run(argv, stdin=content, timeout=_LIMIT, sudo=True)
    lines = "".join(f"{entry} {_MARK}\n" for entry in entries)
    argv = ["sh", "-c", _MERGE, "sh", hosts, _MARK]
    session.run(argv, stdin=lines, timeout=_LIMIT, sudo=True)
