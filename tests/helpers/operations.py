# SPDX-License-Identifier: Apache-2.0
"""Operations on fakes, as the hooks run them."""

from dataclasses import replace
from typing import Any, cast

from tacker_k8s_mgmt.config import Limits
from tacker_k8s_mgmt.model.nodes import Machine, Role
from tacker_k8s_mgmt.operations.heal import HealEnd, HealStart
from tacker_k8s_mgmt.operations.instantiate import (
    Instantiate,
    WholeHealEnd,
    WholeHealStart,
)
from tacker_k8s_mgmt.operations.scale import ScaleIn, ScaleOut
from tacker_k8s_mgmt.operations.state import OperationContext
from tacker_k8s_mgmt.operations.step import Runner
from tacker_k8s_mgmt.remote.site import Site
from tacker_k8s_mgmt.request.reader import ClusterRequest
from tacker_k8s_mgmt.text import Redactor
from tests.helpers.fakes.clock import FakeClock
from tests.helpers.fakes.journal import FakeJournal
from tests.helpers.fakes.nodes import machine
from tests.helpers.fakes.site import FakeSite
from tests.helpers.requests import VNF, params


def dependencies(
    wanted: ClusterRequest, site: FakeSite, clock: FakeClock
) -> OperationContext:
    return OperationContext(
        wanted,
        VNF,
        # Without etcd: tests of several control planes have a whole site.
        cast(Site, site),
        clock,
        Limits(ready_timeout=60, poll_interval=5),
        on_progress=lambda progress: None,
        metadata=site.metadata,
        patch=site.patch,
        vnfcs=site.vnfc_servers,
        features=site.features,
    )


def run(kind: Any, site: FakeSite, wanted: Any = None, **arguments: Any) -> FakeJournal:
    """Run one operation and return its journal."""
    wanted = wanted or params()
    clock, journal = FakeClock(), FakeJournal()
    work = kind(dependencies(wanted, site, clock), **arguments)
    redact = Redactor(wanted.secrets())
    left = getattr(work, "left", lambda: "")
    before = getattr(work, "members_before", None)

    def advice(error: Exception) -> tuple[str, tuple[str, ...]]:
        count = before("worker_instance") if before else None
        return f"There were {count} workers." if before else "", ()

    runner = Runner(kind.__name__, journal, clock, redact, left, advice)
    runner.run(work.steps())
    return journal


def instantiated(
    wanted: Any = None, kind: type[FakeSite] = FakeSite, **options: Any
) -> FakeSite:
    """A site with a whole cluster; what it took is not among its calls."""
    site = kind(**options)
    run(Instantiate, site, wanted)
    site.calls.clear()
    site.forgotten.clear()
    site.changes.clear()
    site.runs.clear()
    site.pod_probes.clear()
    return site


def scale_in(
    site: FakeSite, *servers: str, wanted: Any = None, **arguments: Any
) -> FakeJournal:
    """As Tacker's v2 API does it, which may choose any members."""
    others = getattr(site, "others", ())
    members = others if set(servers) & set(others) else site.workers
    names = {getattr(one, "server_id", one) for one in members}
    arguments = {"size": len(names - set(servers)), **arguments}
    stacks = [f"member-{server}" for server in servers]
    return run(ScaleIn, site, wanted, stacks=stacks, **arguments)


def scale_out(
    site: FakeSite, *servers: str, wanted: Any = None, **arguments: Any
) -> FakeJournal:
    stacks = [f"member-{server}" for server in servers]
    return run(ScaleOut, site, wanted, stacks=stacks, **arguments)


def heal_start(site: FakeSite, *servers: str, wanted: Any = None) -> FakeJournal:
    return run(HealStart, site, wanted, servers=_vnfcs(servers))


def heal_end(site: FakeSite, *servers: str, wanted: Any = None) -> FakeJournal:
    return run(HealEnd, site, wanted, servers=_vnfcs(servers))


def _vnfcs(servers: tuple[str, ...]) -> dict[str, str]:
    return {server: f"vnfc-of-{server}" for server in servers}


def rebuild(site: FakeSite, *servers: str) -> tuple[str, ...]:
    """What Heat does between the hooks: a new server on each old port."""
    new = {server: f"{server}-anew" for server in servers}

    def built(one: Machine) -> Machine:
        return replace(one, server_id=new.get(one.server_id, one.server_id))

    site.workers = [built(worker) for worker in site.workers]
    assert site.load_balancer is not None
    site.load_balancer = built(site.load_balancer)
    site.dead -= set(servers)
    return tuple(new.values())


def heal_all_start(site: FakeSite, wanted: Any = None, **arguments: Any) -> FakeJournal:
    arguments = {"listed": servers_of(site), **arguments}
    return run(WholeHealStart, site, wanted, **arguments)


def heal_all_end(site: FakeSite, wanted: Any = None) -> FakeJournal:
    return run(WholeHealEnd, site, wanted)


def servers_of(site: FakeSite) -> list[str]:
    """Ids of all servers in the stack."""
    return list(site.machines().places)


def replace_all(site: FakeSite, suffix: str = "new") -> None:
    """What Heat does between the hooks of a heal of the whole VNF."""

    def built(one: Machine) -> Machine:
        return replace(one, server_id=f"{one.server_id}-{suffix}")

    site.control_planes = [built(one) for one in site.control_planes]
    site.workers = [built(one) for one in site.workers]
    site.load_balancer = site.load_balancer and built(site.load_balancer)
    site.cluster_nodes, site.cordoned = [], frozenset()
    site.routes, site.balanced, site.exposed = frozenset(), None, ()


def silenced(site: FakeSite, name: str) -> None:
    """The kubelet of a node that accepts logins does not report."""
    site.cluster_nodes = [
        replace(node, ready=False, reason="quiet") if node.name == name else node
        for node in site.cluster_nodes
    ]


MASTER, FIVE, FIFTY_FIVE = (
    "control-plane-10-10-0-4",
    "worker-10-10-0-5",
    "worker-10-10-0-55",
)
SIX, SEVEN = "worker-10-10-0-6", "worker-10-10-0-7"


def state(site: FakeSite) -> tuple[object, ...]:
    """What an operator would look at, and what the next operation builds on."""
    routes = sorted(name for name, _ in site.routes)
    # Host keys are recorded as soon as they are seen, and forgotten with the VM.
    files = {name: site.files[name] for name in site.files if name != "services.json"}
    return site.members, site.listed, routes, site.cordoned, files, site.pods


def grown(*numbers: int) -> FakeSite:
    site = instantiated()
    site.workers += [machine(Role.WORKER, number) for number in numbers]
    return site
