# SPDX-License-Identifier: Apache-2.0
"""Heals and scales that Tacker starts by itself, after an alert.

Their requests have no ``additionalParams`` (``prometheus_plugin_driver.py`` in
``sol_refactored/conductor``), so they need a cluster whose secrets are all references.
One that fails stays ``FAILED_TEMP`` and blocks the VNF instance, so what cannot work is
refused when it is enabled.
"""

from collections.abc import Mapping
from typing import Any

from tacker_k8s_mgmt import errors
from tacker_k8s_mgmt.hooks import hints
from tacker_k8s_mgmt.hooks.v2.request import Call
from tacker_k8s_mgmt.request import params as parameters

# In vnfConfigurableProperties, by the operation that each has Tacker start.
_PROPERTIES = {"heal": "isAutohealEnabled", "scale": "isAutoscaleEnabled"}
_PROPERTY = "vnfConfigurableProperties"


def see_possible(call: Call) -> None:
    """Refuse to enable what later has no password.

    :raises ParamError: with every literal secret.
    """
    enabled = [name for name in _PROPERTIES.values() if _is_set(call, name)]
    literal = parameters.not_kept(_kept(call)) if enabled else ()
    if literal:
        reason = (
            f"is text, which is not kept, and {' and '.join(enabled)} has Tacker start "
            "operations that cannot repeat it; give a reference"
        )
        error = errors.ParamError([f"{name}: {reason}" for name in literal])
        error.hint = hints.UNCHANGED_SEND_ROLLBACK
        raise error


def advice(call: Call, otherwise: str) -> str:
    """What to send when a hook lacks parameters.

    :param otherwise: what an operator sends whose own request it was.
    """
    operation = call.operation.partition("_")[0]
    name = _PROPERTIES.get(operation, "")
    if call.names_parameters or not _is_set(call, name):
        return otherwise
    if not parameters.not_kept(call.stored):
        return otherwise
    return (
        f"{otherwise} If Tacker has started this operation after an alert, set {name} "
        f"to false until all secrets are references: its {operation}s cannot repeat "
        "any, and each blocks the VNF instance until `fail` is sent."
    )


def _kept(call: Call) -> Mapping[str, Any]:
    """The parameters that later operations find; at an instantiation, its own."""
    if call.names_parameters:
        return parameters.without_secrets(call.additional_params)
    return call.stored


def _is_set(call: Call, name: str) -> bool:
    places = (call.request, call.instance)
    properties = (place.get(_PROPERTY) or {} for place in places)
    # Tacker takes any value that Python takes for true.
    return bool(next((one[name] for one in properties if name in one), False))
