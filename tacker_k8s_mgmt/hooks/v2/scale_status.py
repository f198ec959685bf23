"""The scale levels of a VNF instance, over a rollback in Tacker's v2 API.

When Tacker 16 rolls back a change of package or of external connectivity, it makes
``instantiatedVnfInfo`` anew and stores it without ``scaleStatus`` and
``maxScaleLevels`` (``conductor_v2.py``, ``_rollback_lcm_op``; after other operations
``_make_inst_info_common`` puts them back). It then refuses to scale for ever.
"""

from tacker_k8s_mgmt.hooks.v2.request import Call

_KEY = "scale_status"
_NAMES = ("scaleStatus", "maxScaleLevels", "localizationLanguage")


def remember(call: Call) -> None:
    """Keep for the ``_end`` hook what there is before the rollback."""
    info = call.instance.get("instantiatedVnfInfo") or {}
    call.between[_KEY] = {name: info[name] for name in _NAMES if name in info}


def restore(call: Call) -> None:
    """Put back what has got lost."""
    info = call.instance.get("instantiatedVnfInfo")
    if info is not None:
        for name, value in call.between.pop(_KEY, {}).items():
            info.setdefault(name, value)
