# SPDX-License-Identifier: Apache-2.0
"""The parts of the model's site: each may be away, or lack what an operation needs."""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from tacker_k8s_mgmt import errors
from tacker_k8s_mgmt.model.load_balancer import BalancerStatus, ScriptCall
from tacker_k8s_mgmt.model.nodes import Node
from tacker_k8s_mgmt.model.playbooks import PlaybookRequest
from tacker_k8s_mgmt.request.drain_policy import DrainPolicy
from tests.helpers.fakes.cluster import FakeCluster
from tests.helpers.fakes.load_balancer import FakeBalancer
from tests.helpers.fakes.nodes import FakeNode
from tests.helpers.fakes.playbooks import FakePlaybooks
from tests.helpers.fakes.work_directory import FakeWorkDir

if TYPE_CHECKING:
    from tests.helpers.model.site import ModelSite


class ModelWorkDir(FakeWorkDir):
    """The directory; the records of runs are in it."""

    def _empty(self, keep: Sequence[str]) -> bool:
        self._site.ran = ""
        return super()._empty(keep)


class ModelPlaybooks(FakePlaybooks):
    """kubespray needs its hosts and, for the API, the load balancer."""

    _site: "ModelSite"

    def run(
        self,
        request: PlaybookRequest,
        nodes: int,
        on_progress: Callable[[Any], None],
    ) -> None:
        site = self._site
        balancer = site.load_balancer
        is_away = balancer is not None and balancer.server_id in site.dead
        if request.name != "facts" and is_away:
            self._fail(request, "the API")
        super().run(request, nodes, on_progress)
        if site.gate.midway:
            site.ran = ""

    def _fail(self, request: PlaybookRequest, what: str) -> None:
        raise errors.PlaybookFailed(
            playbook=request.playbook, host="a", rc=4, failures=[what], log="l"
        )

    def _join(self, members: Iterable[Node]) -> None:
        site = self._site
        joining = list(members)
        for node in joining[: 1 if site.gate.midway else None]:
            if node.server_id not in site.every() - site.dead:
                raise errors.PlaybookFailed(
                    playbook="scale.yml", host="a", rc=4, failures=[node.name], log="l"
                )
            super()._join([node])

    def _remove_node(self, request: PlaybookRequest) -> None:
        names = request.extra_vars["node"].split(",")
        self._site.forbid("remove-node.yml for", names)
        self._site.see_drained(names)
        if self._site.gate.midway:
            variables = {**request.extra_vars, "node": names[0]}
            request = replace(request, extra_vars=variables)
        super()._remove_node(request)


class ModelCluster(FakeCluster):
    """The API, with kubelets that report or not."""

    _site: "ModelSite"

    def nodes(self) -> Sequence[FakeNode]:
        return self.listed()

    def listed(self) -> Sequence[FakeNode]:
        """The Node objects, with what their kubelets report."""
        return [
            replace(node, ready=self._site.is_ready(node)) for node in super().nodes()
        ]

    def cordon(self, names: Sequence[str]) -> tuple[str, ...]:
        self._site.forbid("cordoned", names, self._site.serviced)
        return super().cordon(names)

    def kept_by(self, node: str) -> tuple[str, ...]:
        return ("a budget",) if node in self._site.blocked else ()

    def drain(self, names: Sequence[str], policy: DrainPolicy) -> None:
        site = self._site
        site.forbid("drained", names, site.serviced)
        assert set(names) <= site.cordoned
        balancer = site.load_balancer
        stays = balancer and balancer.server_id not in site.dead | site.targets
        if stays:
            assert not set(names) & {name for name, _ in site.routes}
        kept = [name for name in names if name in site.blocked and site.pods.get(name)]
        for name in names:
            if name not in kept:
                site.pods.pop(name, None)
        if kept:
            outcomes = [f"{name}: a budget keeps a pod" for name in kept]
            raise self._kept(kept, outcomes)


class ModelBalancer(FakeBalancer):
    """The script on a VM that may be dead, or without it."""

    _site: "ModelSite"

    def call(self, call: ScriptCall) -> str:
        self._login()
        if self._site.balanced is None and call.verb != "install":
            raise errors.LoadBalancerError(
                host="b", verb=call.verb, reason="HAProxy is not installed"
            )
        return super().call(call)

    def status(self) -> BalancerStatus:
        self._login()
        return super().status()

    def _login(self) -> None:
        balancer = self._site.load_balancer
        if balancer is None or balancer.server_id in self._site.dead:
            raise errors.ConnectError(
                user="u", host="b", port=22, seconds=1, reason="no answer"
            )
