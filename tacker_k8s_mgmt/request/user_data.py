# SPDX-License-Identifier: Apache-2.0
"""User data of a VNF package: Tacker's keys for it in ``additionalParams``."""

from collections.abc import Iterator, Mapping
from typing import Any

PATH = "lcm-operation-user-data"
CLASS = "lcm-operation-user-data-class"


def path(additional_params: Mapping[str, Any] | None) -> str:
    """The path in the package of what Tacker runs; "" for none."""
    given = additional_params or {}
    return str(given[PATH]) if given.get(PATH) and given.get(CLASS) else ""


def package_change_problems(additional_params: Mapping[str, Any]) -> Iterator[str]:
    """What would make Tacker's v2 API change VMs in a change of package."""
    if additional_params.get("vdu_params"):
        yield "additionalParams.vdu_params must be []"
    missing = [name for name in (PATH, CLASS) if not additional_params.get(name)]
    if missing:
        yield (
            f"additionalParams must have {' and '.join(missing)} as the request of the "
            "instantiation, for without them Tacker sets images and flavours anew"
        )
