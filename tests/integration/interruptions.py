# SPDX-License-Identifier: Apache-2.0
"""Playbook runs to which a later operation attaches."""

from tests.integration.cluster import Cluster, eventually
from tests.integration.laboratory import CONDUCTOR, Lab


def plays_on(lab: Lab, cluster: Cluster) -> bool:
    """Whether a run of the cluster holds its lock."""
    lock = f"{cluster.directory}/run.lock"
    return "free" not in lab.ansible(f"flock -n {lock} echo free; true")


def attached(lab: Lab, run: str) -> int:
    """How often the driver says that it has attached to a run."""
    return lab.logs(f"{CONDUCTOR}*").count(f"attached to run {run}")


def wait_until_attached(lab: Lab, run: str, times: int) -> None:
    eventually(lambda: attached(lab, run) >= times)
