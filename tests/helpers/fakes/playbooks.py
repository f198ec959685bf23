# SPDX-License-Identifier: Apache-2.0
"""Playbook runs on the Ansible server."""

import json
from collections.abc import Callable, Iterable, Sequence
from typing import Any

from tacker_k8s_mgmt import errors
from tacker_k8s_mgmt.kubespray import inventory, runs, variables
from tacker_k8s_mgmt.model.nodes import Node, Role, of_role
from tacker_k8s_mgmt.model.playbooks import PlaybookRequest
from tests.helpers.fakes.nodes import CONTROL_PLANE_TAINT, FakeNode
from tests.helpers.fakes.state import SiteState


def failed(request: PlaybookRequest, text: str, rc: int = 4) -> errors.PlaybookFailed:
    """What a run ends with; by default, that a host was unreachable."""
    return errors.PlaybookFailed(
        playbook=request.playbook, host="a", rc=rc, failures=[text], log="l"
    )


class FakePlaybooks:
    """Runs that do to the fake cluster what kubespray's do to a real one."""

    def __init__(self, site: SiteState) -> None:
        self._site = site

    def done(self, request: PlaybookRequest) -> bool:
        return self._site.ran == request.digest

    def live(self, request: PlaybookRequest) -> bool:
        return self._site.running == request.digest

    def run(
        self,
        request: PlaybookRequest,
        nodes: int,
        on_progress: Callable[[Any], None],
    ) -> None:
        self._site.touch(f"run {request.name}")
        self._site.runs.append(request)
        self._site.inventories.append(self._site.files["hosts.yaml"])
        effect: Callable[[PlaybookRequest], None] = getattr(
            self, f"_{request.name.replace('-', '_')}"
        )
        nodes_there = tuple(self._inventory().values())
        for node in runs.configured(request, nodes_there):
            # Its container engine may be told of registries that it has to trust.
            assert node.server_id in self._site.trusting, node.name
        effect(request)
        self._site.change("ran", request.digest)

    def _inventory(self) -> dict[str, Node]:
        text = self._site.files["hosts.yaml"]
        return {node.name: node for node in inventory.parse(text)}

    def _cluster(self, request: PlaybookRequest) -> None:
        known, limit = self._inventory(), request.limit.split(",")
        if request.limit:
            self._join(known[name] for name in limit if name in known)
        else:
            self._join(known.values())
            self._site.change(
                "etcd_scripts", frozenset(n.name for n in self._planes()[:1])
            )
        extra_vars = json.loads(self._site.files["vars.json"])
        names = extra_vars["supplementary_addresses_in_ssl_keys"]
        self._site.change("certified", frozenset(names))

    def _facts(self, request: PlaybookRequest) -> None:
        shut_out = request.limit.split(":!")[1:]
        known = self._inventory()
        self._use(request, [known[name] for name in known if name not in shut_out])

    def _use(self, request: PlaybookRequest, hosts: Iterable[Node]) -> None:
        """Work on hosts: log in to each, and write a file there."""
        site = self._site
        there = {vm.server_id for vm in (*site.control_planes, *site.workers)}
        for node in hosts:
            lost = node.server_id not in there - site.dead
            if lost or node.server_id in site.unfit:
                raise failed(request, node.name)

    def _planes(self) -> Sequence[Node]:
        return of_role(list(self._inventory().values()), Role.CONTROL_PLANE)

    def _delegate(self, request: PlaybookRequest) -> None:
        """Work on the first control plane, which no limit shuts out."""
        self._use(request, self._planes()[:1])

    def _scale(self, request: PlaybookRequest) -> None:
        known = self._inventory()
        hosts = [known[name] for name in request.limit.split(",")]
        self._use(request, hosts)
        self._delegate(request)
        self._give_etcd(request, hosts)
        self._join(node for node in hosts if node.role is Role.WORKER)

    def _give_etcd(self, request: PlaybookRequest, hosts: Iterable[Node]) -> None:
        """Certificates of etcd for workers, by a script on the first control plane.

        kubespray's roles/etcd/tasks/gen_certs_script.yml copies it there only if that
        host is in the run.
        """
        first = self._planes()[0].name
        scripts = self._site.etcd_scripts | ({first} & {node.name for node in hosts})
        self._site.change("etcd_scripts", scripts)
        extra_vars = json.loads(self._site.files["vars.json"])
        if variables.give_workers_etcd(extra_vars) and first not in scripts:
            raise failed(request, f"{first}: make-ssl-etcd.sh: No such file", rc=2)

    def _remove_node(self, request: PlaybookRequest) -> None:
        assert request.extra_vars["skip_confirmation"] is True
        known = self._inventory()
        if request.extra_vars.get("reset_nodes") is not False:
            self._facts(request)
        self._delegate(request)
        for name in request.extra_vars["node"].split(","):
            dead = known[name].server_id in self._site.dead
            if dead and request.extra_vars.get("reset_nodes") is not False:
                raise failed(request, name)
            if self._site.pods.get(name) and not dead:
                assert request.extra_vars.get("allow_ungraceful_removal"), "undrained"
            self._site.remove(name)

    def _join(self, members: Iterable[Node]) -> None:
        for node in members:
            if all(
                node.name != cluster_node.name
                for cluster_node in self._site.cluster_nodes
            ):
                leading = node.role is Role.CONTROL_PLANE
                joined = FakeNode(
                    node.name,
                    machine_id=node.server_id,
                    taints=(CONTROL_PLANE_TAINT,) if leading else (),
                )
                self._site.change("cluster_nodes", [*self._site.cluster_nodes, joined])

    def stop(self) -> bool:
        self._site.touch("playbooks.stop")
        return False
