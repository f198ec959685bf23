# SPDX-License-Identifier: Apache-2.0
"""The schemas of request bodies as the installed Tacker has them.

After a change of Tacker's version, in its environment::

    python -m tests.contract.request_schemas
"""

import json
from pathlib import Path
from typing import Any

from tacker.api.schemas import vnf_lcm
from tacker.api.validation import parameter_types
from tacker.sol_refactored.api.schemas import vnflcm_v2

from tacker_k8s_mgmt.tools.csar import body as ours

DATA = Path(ours.__file__).with_name("request_schemas.json")
SCHEMAS: dict[str, dict[str, Any]] = {
    "v1": {
        ours.CREATE: vnf_lcm.create,
        ours.INSTANTIATE: vnf_lcm.instantiate,
        ours.SCALE: vnf_lcm.scale,
        ours.HEAL: vnf_lcm.heal,
        ours.TERMINATE: vnf_lcm.terminate,
        ours.CHANGE_EXT_CONN: vnf_lcm.change_ext_conn,
        # Only the names of its attributes: the controller does not apply it.
        ours.MODIFY: {
            "type": "object",
            "properties": {name: {} for name in vnf_lcm.update["properties"]},
        },
    },
    "v2": {
        ours.CREATE: vnflcm_v2.CreateVnfRequest_V200,
        ours.INSTANTIATE: vnflcm_v2.InstantiateVnfRequest_V200,
        ours.SCALE: vnflcm_v2.ScaleVnfRequest_V200,
        ours.HEAL: vnflcm_v2.HealVnfRequest_V200,
        ours.TERMINATE: vnflcm_v2.TerminateVnfRequest_V200,
        ours.CHANGE_EXT_CONN: vnflcm_v2.ChangeExtVnfConnectivityRequest_V200,
        ours.CHANGE_VNFPKG: vnflcm_v2.ChangeCurrentVnfPkgRequest_V200,
        ours.MODIFY: vnflcm_v2.VnfInfoModificationRequest_V200,
    },
}


def text() -> str:
    """The contents of the data file."""
    return json.dumps(_plain(SCHEMAS), indent=2) + "\n"


def _plain(value: Any) -> Any:
    """A schema as JSON, without the pattern that depends on Python's version."""
    if isinstance(value, dict):
        plain = {key: _plain(inner) for key, inner in value.items()}
        if plain.get("pattern") == parameter_types.valid_description_regex:
            plain["format"] = ours.PRINTABLE
            del plain["pattern"]
        return plain
    return list(map(_plain, value)) if isinstance(value, list | tuple) else value


if __name__ == "__main__":
    DATA.write_text(text(), encoding="utf-8")
