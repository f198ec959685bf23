# SPDX-License-Identifier: Apache-2.0
"""How often Heat polls a resource.

Heat itself waits for a second between two looks, and that at every level of nested
stacks; real VMs take a minute, hosts of the lab a second.
"""

from typing import Any

from heat.engine import scheduler

LONGEST_PAUSE = 0.3


class Runner(scheduler.TaskRunner):
    """Heat's runner of tasks, less patient."""

    def _sleep(self, wait_time: float | None) -> None:
        super()._sleep(wait_time and min(wait_time, LONGEST_PAUSE))


scheduler.TaskRunner = Runner


def resource_mapping() -> dict[str, Any]:
    """No resource."""
    return {}
