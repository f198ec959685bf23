# SPDX-License-Identifier: Apache-2.0
"""Members of etcd's stand-in that form a cluster."""

from pathlib import Path

from lab.kubeapi.etcd.errors import EtcdError
from lab.kubeapi.etcd.node import Configuration, Node
from lab.kubeapi.etcd.raft import Times
from lab.kubeapi.etcd.wire import Client, Files
from tests.helpers.backends import free_ports
from tests.helpers.kubeapi import wait_for

QUICK = Times(heartbeat=0.05, election=0.25, request=2.0, lease=0.5)


def free_port() -> int:
    return free_ports(1)[0]


class Ensemble:
    """Members in this process; they stop and start again as machines do."""

    def __init__(self, directory: Path, count: int) -> None:
        self._directory = directory
        self._urls: dict[str, tuple[str, str]] = {}
        self.nodes: dict[str, Node] = {}
        self.names = [f"etcd{n}" for n in range(1, count + 1)]
        for name in self.names:
            self.plan(name)
        for name in self.names:
            self.start(name)

    def plan(self, name: str) -> None:
        """Give a member its addresses."""
        client, peer = (f"http://127.0.0.1:{free_port()}" for _ in range(2))
        self._urls[name] = (client, peer)

    def start(self, name: str, new: bool = True, without: str = "") -> None:
        """:param without: a member that it is not told of."""
        client, peer = self._urls[name]
        cluster = {one: urls[1] for one, urls in self._urls.items() if one != without}
        self.nodes[name] = Node(
            Configuration(
                name=name,
                directory=self._directory / name,
                client_url=client,
                peer_url=peer,
                listen_client=(client,),
                listen_peer=(peer,),
                cluster=cluster,
                new=new,
            ),
            QUICK,
        )

    def stop(self, *names: str) -> None:
        for name in names:
            self.nodes.pop(name).stop()

    def wipe(self, name: str) -> None:
        (self._directory / name / "member.json").unlink()

    def endpoint(self, name: str) -> str:
        return self._urls[name][0]

    def peer(self, name: str) -> str:
        return self._urls[name][1]

    def client(self) -> Client:
        endpoints = [client for client, _ in self._urls.values()]
        return Client(endpoints, Files(), QUICK.request)

    def leader(self) -> str:
        """The name of the member that all others follow, once there is one."""

        def agreed() -> str:
            told = {n.member.status()["leader"] for n in self.nodes.values()}
            leads = {
                name
                for name, n in self.nodes.items()
                if n.member.status()["leader"] == n.member.id
            }
            return leads.pop() if len(told) == len(leads) == 1 else ""

        return str(wait_for(agreed))

    def members(self) -> list[dict]:
        return wait_for(lambda: self.tried("/v3/members"))

    def tried(self, path: str, **message):
        """The answer; None while there is none."""
        try:
            return self.client().ask(path, message)
        except EtcdError as error:
            if not error.retryable:
                raise
            return None

    def ask(self, path: str, **message):
        return wait_for(lambda: self.tried(path, **message))

    def lease(self, holder: str, release: bool = False) -> dict:
        return self.ask("/v3/lease", holder=holder, release=release)
