# SPDX-License-Identifier: Apache-2.0
"""The scale levels of a VNF instance, during a rollback in Tacker's v2 API.

When Tacker 16 rolls back a change of package or of external connectivity, it rebuilds
``instantiatedVnfInfo`` and stores it without ``scaleStatus`` and ``maxScaleLevels``
(``conductor_v2.py``, ``_rollback_lcm_op``; after other operations
``_make_inst_info_common`` restores them). It then refuses every scaling.
"""

from tacker_k8s_mgmt.hooks.v2.request import Call

_KEY = "scale_status"
_NAMES = ("scaleStatus", "maxScaleLevels", "localizationLanguage")


def remember(call: Call) -> None:
    """Keep them for the ``_end`` hook."""
    info = call.instance.get("instantiatedVnfInfo") or {}
    call.between[_KEY] = {name: info[name] for name in _NAMES if name in info}


def restore(call: Call) -> None:
    """Restore what Tacker has dropped."""
    info = call.instance.get("instantiatedVnfInfo")
    if info is not None:
        for name, value in call.between.pop(_KEY, {}).items():
            info.setdefault(name, value)
