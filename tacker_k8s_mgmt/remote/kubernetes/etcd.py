"""Asks etcd on a control-plane node who its members are and how they do.

kubespray puts ``etcdctl`` and ``/etc/etcd.env`` on every host of the group ``etcd``
(roles ``etcdctl_etcdutl`` and ``etcd``, ``etcd_deployment_type`` host or docker); the
file says where the node's own member listens and which certificates open it. That
member may be the ill one, and without a majority nobody tells the list of members: so
the others are asked next, and at last the file itself is believed.
"""

import ipaddress
import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlsplit

from tacker_k8s_mgmt import errors
from tacker_k8s_mgmt.model.quorum import EtcdMember
from tacker_k8s_mgmt.remote.ssh.channel import last_lines
from tacker_k8s_mgmt.remote.ssh.session import Session

ENV_FILE = "/etc/etcd.env"

_REQUEST_LIMIT = "--command-timeout=5s"  # for one member
_COMMAND_LIMIT = 60.0  # seconds for etcdctl, which may ask several members in turn
_CLIENT_PORT = 2379

# Endpoints go in by the environment: etcdctl refuses to start when an option and a
# variable say the same thing.
_SCRIPT = f"""\
export ETCDCTL_API=3 $(grep '^ETCDCTL_' {ENV_FILE})
[ -z "$1" ] || export ETCDCTL_ENDPOINTS="$1"
shift
exec etcdctl "$@"
"""


@dataclass(frozen=True)
class _Listed:
    """A member before its health is known.

    :param endpoint: URL for clients; "" for one that was never started.
    """

    name: str
    member_id: int
    address: str
    endpoint: str
    learner: bool = False


@dataclass(frozen=True)
class _Status:
    """What a member says about itself; it can without a majority."""

    member_id: int
    leader_id: int


class EtcdClient:
    """etcd behind one session with a control-plane node; its user may use sudo."""

    def __init__(self, session: Session) -> None:
        self._session = session

    def members(self) -> tuple[EtcdMember, ...]:
        """All members of etcd, by name, with their health.

        Without a majority no member is healthy, and a member that was added or removed
        since kubespray wrote the node's ``/etc/etcd.env`` is not known.

        :raises RemoteError: the node cannot be reached.
        :raises ClusterError: there is no etcd that can be asked.
        """
        listed = self._list()
        endpoints = [one.endpoint for one in listed if one.endpoint]
        status, health = self._status(endpoints), self._health(endpoints)
        found = (_member(one, status.get(one.endpoint), health) for one in listed)
        return tuple(sorted(found, key=lambda one: (one.name, one.member_id)))

    def remove(self, member_id: str) -> None:
        """Take a member out of etcd for good.

        :param member_id: hexadecimal, as :meth:`members` tells it.
        :raises RemoteError: etcd refuses, or the node cannot be reached.
        """
        argv = ["sh", "-c", _SCRIPT, "etcdctl", "", "member", "remove", member_id]
        self._session.run([*argv, _REQUEST_LIMIT], timeout=_COMMAND_LIMIT, sudo=True)

    def _list(self) -> Sequence[_Listed]:
        own = self._ask("", "member", "list")
        if own:
            return _listed(own)
        recorded = self._recorded()
        others = self._ask(_joined(recorded), "member", "list")
        return _listed(others) if others else recorded

    def _status(self, endpoints: Sequence[str]) -> Mapping[str, _Status]:
        told = self._ask(",".join(endpoints), "endpoint", "status") or ()
        return {
            one["Endpoint"]: _Status(
                one["Status"]["header"]["member_id"], one["Status"].get("leader", 0)
            )
            for one in told
        }

    def _health(self, endpoints: Sequence[str]) -> Mapping[str, str]:
        """What is wrong with the member at each endpoint; "" if nothing is."""
        told = self._ask(",".join(endpoints), "endpoint", "health") or ()
        return {
            one["endpoint"]: "" if one["health"] else one.get("error") or "unhealthy"
            for one in told
        }

    def _recorded(self) -> Sequence[_Listed]:
        """The members as kubespray has written them down.

        :raises ClusterError: it has not.
        """
        argv = ["grep", "^ETCD_INITIAL_CLUSTER=", ENV_FILE]
        result = self._session.run(argv, timeout=_COMMAND_LIMIT, sudo=True, check=False)
        pairs = result.stdout.strip().partition("=")[2].split(",")
        found = [_from_pair(pair) for pair in pairs if "=" in pair]
        if not found:
            said = last_lines(result.stderr)
            raise errors.ClusterError(
                detail=f"{ENV_FILE} on {self._session.host} names no members of etcd"
                f"{f' ({said})' if said else ''}.",
                hint="etcd is asked where kubespray runs it on the hosts themselves: "
                "etcd_deployment_type host, which is the default.",
            )
        return found

    def _ask(self, endpoints: str, *words: str) -> Any:
        """What etcdctl answers, as JSON; None if it knows nothing.

        Its exit code is 1 also when one member of several is ill.

        :raises ClusterError: its answer could not be understood, or it is not there.
        """
        argv = ["sh", "-c", _SCRIPT, "etcdctl", endpoints, *words, _REQUEST_LIMIT]
        result = self._session.run(
            [*argv, "-w", "json"], timeout=_COMMAND_LIMIT, sudo=True, check=False
        )
        if result.rc == 127:
            raise errors.ClusterError(
                detail=f"There is no etcdctl on {self._session.host}.",
                hint="kubespray installs it on every host of the group etcd.",
            )
        if not result.stdout.strip():
            return None
        try:
            answer = json.loads(result.stdout)
            return answer["members"] if words[0] == "member" else list(answer)
        except (KeyError, TypeError, ValueError) as error:
            raise errors.ClusterError(
                detail=f"The answer to `etcdctl {' '.join(words)}` on "
                f"{self._session.host} could not be understood "
                f"({type(error).__name__})."
            ) from error


def _listed(members: Iterable[Mapping[str, Any]]) -> Sequence[_Listed]:
    return [
        _Listed(
            name=one.get("name", ""),
            member_id=one["ID"],
            address=_address(one["peerURLs"][0]),
            endpoint=next(iter(one.get("clientURLs") or ()), ""),
            learner=bool(one.get("isLearner")),
        )
        for one in members
    ]


def _from_pair(pair: str) -> _Listed:
    """A member of ``ETCD_INITIAL_CLUSTER``: ``name=peer URL``."""
    name, _, url = pair.partition("=")
    address = _address(url)
    host = f"[{address}]" if ":" in address else address
    return _Listed(name, 0, address, f"https://{host}:{_CLIENT_PORT}")


def _joined(members: Iterable[_Listed]) -> str:
    return ",".join(one.endpoint for one in members)


def _address(url: str) -> str:
    host = urlsplit(url).hostname or ""
    try:
        return str(ipaddress.ip_address(host))
    except ValueError:  # a name
        return host


def _member(
    listed: _Listed, status: _Status | None, health: Mapping[str, str]
) -> EtcdMember:
    member_id = listed.member_id or (status.member_id if status else 0)
    if not listed.endpoint:
        problem = "it was added and never started"
    else:
        problem = health.get(listed.endpoint, "it does not answer")
    if problem and status and not status.leader_id:
        problem = f"it answers, but knows no leader ({problem})"
    return EtcdMember(
        name=listed.name,
        member_id=f"{member_id:x}" if member_id else "",
        address=listed.address,
        healthy=not problem,
        leader=status is not None and 0 < status.leader_id == member_id,
        learner=listed.learner,
        problem=problem,
    )
