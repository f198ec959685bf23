"""Operations on fakes, as the hooks run them."""

from typing import Any

from tacker_k8s_mgmt.lifecycle.heal import HealEnd, HealStart
from tacker_k8s_mgmt.lifecycle.instantiate import Instantiate
from tacker_k8s_mgmt.lifecycle.runner import Runner
from tacker_k8s_mgmt.lifecycle.scale_in import ScaleIn
from tacker_k8s_mgmt.lifecycle.scale_out import ScaleOut
from tacker_k8s_mgmt.model.redaction import Redactor
from tests.unit.lifecycle.fakes import (
    VNF,
    FakeClock,
    FakeJournal,
    FakeSite,
    params,
)


def run(kind: Any, site: FakeSite, wanted: Any = None, **arguments: Any) -> FakeJournal:
    """Run one operation and return its journal."""
    wanted = wanted or params()
    clock, journal = FakeClock(), FakeJournal()
    work = kind(
        wanted,
        VNF,
        site,
        clock,
        ready_timeout=60,
        poll_interval=5,
        on_progress=lambda progress: None,
        **arguments,
    )
    redact = Redactor(wanted.secrets())
    Runner(kind.__name__, journal, clock, redact, work.left).run(work.steps())
    return journal


def instantiated(wanted: Any = None, **options: Any) -> FakeSite:
    """A site with a whole cluster; what it took is not among its calls."""
    site = FakeSite(**options)
    run(Instantiate, site, wanted)
    site.calls.clear()
    site.forgotten.clear()
    site.changes.clear()
    site.runs.clear()
    return site


def scale_in(site: FakeSite, *servers: str, wanted: Any = None) -> FakeJournal:
    return run(ScaleIn, site, wanted, stacks=[f"member-{one}" for one in servers])


def scale_out(
    site: FakeSite, *servers: str, wanted: Any = None, **arguments: Any
) -> FakeJournal:
    stacks = [f"member-{one}" for one in servers]
    arguments.setdefault("way_on", "There were {} workers.".format)
    return run(ScaleOut, site, wanted, stacks=stacks, **arguments)


def heal_start(site: FakeSite, *servers: str, wanted: Any = None) -> FakeJournal:
    return run(HealStart, site, wanted, servers=_vnfcs(servers))


def heal_end(site: FakeSite, *servers: str, wanted: Any = None) -> FakeJournal:
    return run(HealEnd, site, wanted, servers=_vnfcs(servers))


def _vnfcs(servers: tuple[str, ...]) -> dict[str, str]:
    return {server: f"vnfc-of-{server}" for server in servers}
