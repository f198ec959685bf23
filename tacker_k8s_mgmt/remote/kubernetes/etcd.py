# SPDX-License-Identifier: Apache-2.0
"""etcd's members and their health, asked on a control-plane node.

kubespray puts ``etcdctl`` and ``/etc/etcd.env`` on every host of the group ``etcd``
(roles ``etcdctl_etcdutl`` and ``etcd``, ``etcd_deployment_type`` host or docker). The
file names the node's own member and the certificates for it. That member may be the
failed one, and without a majority no member lists the others: then the members that the
file records are asked, and at last the file itself is the list.
"""

from collections.abc import Mapping, Sequence
from typing import Any

from tacker_k8s_mgmt import errors
from tacker_k8s_mgmt.kubespray.inventory import ETCD_ENV
from tacker_k8s_mgmt.model import untrusted
from tacker_k8s_mgmt.model.nodes import one_spelling
from tacker_k8s_mgmt.model.quorum import EtcdMember
from tacker_k8s_mgmt.remote.kubernetes.kubectl import NOT_UNDERSTOOD
from tacker_k8s_mgmt.remote.ssh.channel import Result, last_lines
from tacker_k8s_mgmt.remote.ssh.session import Session

_REQUEST_LIMIT = 5.0  # seconds for one member
# Seconds for a change, which waits for the election after a leader has gone.
_CHANGE_LIMIT = 60.0
# Seconds for a command beside that: etcdctl may ask several members in turn.
_COMMAND_LIMIT = 60.0
_CLIENT_PORT = 2379

# Endpoints are passed in the environment: etcdctl fails if an option sets them as well.
_SCRIPT = f"""\
export ETCDCTL_API=3 $(grep '^ETCDCTL_' {ETCD_ENV})
[ -z "$1" ] || export ETCDCTL_ENDPOINTS="$1"
shift
exec etcdctl "$@"
"""


#: A member as ``etcdctl member list`` prints it.
_Listed = Mapping[str, Any]


class EtcdClient:
    """etcd behind one session with a control-plane node; its user may use sudo."""

    def __init__(self, session: Session) -> None:
        self._session = session

    def members(self) -> tuple[EtcdMember, ...]:
        """Return all members of etcd, sorted by name, with their health.

        Without a majority no member is healthy, and members that were added or removed
        since kubespray wrote the node's ``/etc/etcd.env`` are unknown.

        :raises RemoteError: the node cannot be reached.
        :raises ClusterError: there is no etcd to ask, or its answer cannot be parsed.
        """
        listed = self._list()
        try:
            return self._with_health(listed)
        except NOT_UNDERSTOOD as error:
            raise errors.ClusterError(
                detail=f"The answers of etcdctl on {self._session.host} could not be "
                f"understood ({type(error).__name__})."
            ) from error

    def run(self, *command: str, limit: float = _CHANGE_LIMIT) -> str:
        """Return the output of an etcdctl command for the node's own member.

        :param limit: seconds that etcd gets for it.
        :raises RemoteError: etcd refuses, or the node cannot be reached.
        """
        return self._run("", *command, check=True, limit=limit).stdout

    def _with_health(self, listed: Sequence[_Listed]) -> tuple[EtcdMember, ...]:
        endpoints = ",".join(filter(None, map(_endpoint, listed)))
        # A member reports its status even without a majority.
        status = {
            m["Endpoint"]: m["Status"]
            for m in self._ask(endpoints, "endpoint", "status") or ()
        }
        problems = {
            m["endpoint"]: "" if m["health"] else m.get("error") or "unhealthy"
            for m in self._ask(endpoints, "endpoint", "health") or ()
        }
        members = (_member(m, status.get(_endpoint(m)), problems) for m in listed)
        return tuple(
            sorted(map(untrusted.checked, members), key=lambda m: (m.name, m.member_id))
        )

    def _list(self) -> Sequence[_Listed]:
        listed: Sequence[_Listed] | None = self._ask("", "member", "list")
        if listed:
            return listed
        recorded = self._recorded()
        endpoints = ",".join(map(_endpoint, recorded))
        return self._ask(endpoints, "member", "list") or recorded

    def _recorded(self) -> Sequence[_Listed]:
        """Return the members that kubespray has recorded in ``/etc/etcd.env``.

        :raises ClusterError: there are none.
        """
        argv = ["grep", "^ETCD_INITIAL_CLUSTER=", ETCD_ENV]
        result = self._session.run(argv, timeout=_COMMAND_LIMIT, sudo=True, check=False)
        pairs = result.stdout.strip().partition("=")[2].split(",")
        members = [_from_pair(pair) for pair in pairs if "=" in pair]
        if not members:
            reason = last_lines(result.stderr)
            raise errors.ClusterError(
                detail=f"{ETCD_ENV} on {self._session.host} names no members of etcd"
                f"{f' ({reason})' if reason else ''}.",
                hint="etcd is asked where kubespray runs it on the hosts themselves: "
                "etcd_deployment_type host, which is the default.",
            )
        return members

    def _ask(self, endpoints: str, *command: str) -> Any:
        """Return etcdctl's JSON answer, or None if there is none.

        Its exit code is 1 also if only one of several members failed.

        :raises ClusterError: the answer cannot be parsed, or there is no etcdctl.
        """
        result = self._run(endpoints, *command, "-w", "json", check=False)
        if result.rc == 127:
            raise errors.ClusterError(
                detail=f"There is no etcdctl on {self._session.host}.",
                hint="kubespray installs it on every host of the group etcd.",
            )
        if not result.stdout.strip():
            return None
        try:
            answer = untrusted.parse_json(result.stdout)
            return answer["members"] if command[0] == "member" else list(answer)
        except (KeyError, TypeError, ValueError) as error:
            raise errors.ClusterError(
                detail=f"The answer to `etcdctl {' '.join(command)}` on "
                f"{self._session.host} could not be understood "
                f"({type(error).__name__})."
            ) from error

    def _run(
        self, endpoints: str, *command: str, check: bool, limit: float = _REQUEST_LIMIT
    ) -> Result:
        argv = ["sh", "-c", _SCRIPT, "etcdctl", endpoints, *command]
        argv.append(f"--command-timeout={limit:g}s")
        timeout = limit + _COMMAND_LIMIT
        return self._session.run(argv, timeout=timeout, sudo=True, check=check)


def _from_pair(pair: str) -> _Listed:
    """Return a member of ``ETCD_INITIAL_CLUSTER``: ``name=peer URL``."""
    name, _, url = pair.partition("=")
    address = _address(url)
    host = f"[{address}]" if ":" in address else address
    client_url = f"https://{host}:{_CLIENT_PORT}"
    return {"name": name, "ID": 0, "peerURLs": [url], "clientURLs": [client_url]}


def _endpoint(listed: _Listed) -> str:
    """Return the URL for clients; "" for a member that was never started."""
    return str(next(iter(listed.get("clientURLs") or ()), ""))


def _address(url: str) -> str:
    return one_spelling(untrusted.url_host(url))


def _member(
    listed: _Listed, status: Mapping[str, Any] | None, problems: Mapping[str, str]
) -> EtcdMember:
    member_id, leader_id = listed["ID"], 0
    if status:
        member_id = member_id or status["header"]["member_id"]
        leader_id = status.get("leader", 0)
    problem = "it was added and never started"
    if endpoint := _endpoint(listed):
        problem = problems.get(endpoint, "it does not answer")
    if problem and status and not leader_id:
        problem = f"it answers, but knows no leader ({problem})"
    return EtcdMember(
        name=listed.get("name", ""),
        member_id=f"{member_id:x}" if member_id else "",
        address=_address(listed["peerURLs"][0]),
        healthy=not problem,
        leader=0 < leader_id == member_id,
        learner=bool(listed.get("isLearner")),
        problem=problem,
    )
