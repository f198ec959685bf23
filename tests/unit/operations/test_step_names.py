# SPDX-License-Identifier: Apache-2.0
"""The steps of each operation, in their order, with and without optional features.

Journals and documents have their names; dashboards, campaigns and benchmarks their
kinds. To write the golden file again:
``python -m tests.unit.operations.test_step_names``.
"""

import json
import re
from functools import partial
from itertools import chain
from pathlib import Path
from typing import Any

from benchmarks.figures import PLAYBOOKS, WAITS
from tacker_k8s_mgmt.operations.connectivity import ConnectivityEnd, connectivity_start
from tacker_k8s_mgmt.operations.heal import HealEnd, HealStart
from tacker_k8s_mgmt.operations.instantiate import (
    Instantiate,
    WholeHealEnd,
    WholeHealStart,
)
from tacker_k8s_mgmt.operations.modify import Modify
from tacker_k8s_mgmt.operations.scale import ScaleIn, ScaleOut, ScaleOutRollback
from tacker_k8s_mgmt.operations.state import ClusterState
from tacker_k8s_mgmt.operations.terminate import (
    terminate_end,
    terminate_start,
)
from tacker_k8s_mgmt.operations.upgrade import Upgrade, UpgradeStart
from tests.helpers.fakes.clock import FakeClock
from tests.helpers.fakes.site import FakeSite
from tests.helpers.node_settings import wants
from tests.helpers.operations import dependencies
from tests.helpers.requests import VNF, params

GOLDEN = Path(__file__).parents[2] / "helpers/golden/steps.json"
FEATURES: dict[str, Any] = {
    "cluster": {"helm": True, "verify_pod_network": True},
    "tenants": [{"name": "one"}],
    "applications": [
        {"name": "web", "manifests": [{"path": "Files/w"}], "volumes": "delete"}
    ],
}
PATCH = {
    "k8s_nodes:vnfc:one:labels": "disk=ssd",
    "k8s_tenants": "[]",
    "k8s_applications": "[]",
}
OPERATIONS: dict[str, Any] = {
    "instantiate_end": Instantiate,
    "heal_start of all": partial(WholeHealStart, listed=()),
    "heal_end of all": WholeHealEnd,
    "heal_start": partial(HealStart, servers={}),
    "heal_end": partial(HealEnd, servers={}),
    "scale_start": partial(ScaleIn, stacks=()),
    "scale_end": partial(ScaleOut, stacks=()),
    "scale_rollback_start": partial(ScaleOutRollback, known={}),
    "change_external_connectivity_end": ConnectivityEnd,
    "change_current_package_start": UpgradeStart,
    "change_current_package_end": Upgrade,
    "modify_information_end": lambda deps: Modify(deps, PATCH),
}


def names(steps: Any) -> list[str]:
    return [f"{step.kind}: {step.name}" for step in steps]


def found() -> dict[str, dict[str, list[str]]]:
    return {"without": _of(), "with": _of(**FEATURES)}


def _of(**features: Any) -> dict[str, list[str]]:
    site = FakeSite()
    if features:
        wants(site, {"k8s_nodes:vnfc:one:labels": "disk=ssd"})
    wanted = params(**features)
    deps = dependencies(wanted, site, FakeClock())
    server: Any = site
    return {
        **{hook: names(make(deps).steps()) for hook, make in OPERATIONS.items()},
        "change_external_connectivity_start": names(connectivity_start(deps, ())),
        "terminate_start": names(
            (
                *terminate_start(site.vims),
                *ClusterState(deps).terminating(forced=False),
            )
        ),
        "terminate_end": names(terminate_end(VNF, site.vims, server)),
    }


def test_the_steps_are_those_that_documents_and_dashboards_name() -> None:
    assert found() == json.loads(GOLDEN.read_text())


def test_benchmarks_know_the_kinds_of_playbooks_and_waits() -> None:
    steps = {
        tuple(step.split(": ", 1))
        for hooks in found().values()
        for step in chain.from_iterable(hooks.values())
    }
    known = PLAYBOOKS | WAITS
    playbooks = re.compile(r"run \S+\.yml|gather the facts|renew .* with \S+\.yml")
    waits = re.compile(r"wait for|drain")
    assert {k for k, name in steps if playbooks.match(name)} <= PLAYBOOKS
    assert {k for k, name in steps if waits.match(name)} <= WAITS
    # Those of batches of workers are added while an upgrade runs.
    added = {"upgrade-control-planes", "upgrade-batch", "drain-batch"}
    assert known - {kind for kind, _ in steps} == added


if __name__ == "__main__":
    GOLDEN.write_text(json.dumps(found(), indent=2) + "\n")
