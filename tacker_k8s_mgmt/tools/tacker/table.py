# SPDX-License-Identifier: Apache-2.0
"""What Tacker takes: each verb, by API, kind of operation and state.

From Tacker's code: ``tacker/api/vnflcm/v1/controller.py`` for v1, and
``tacker/sol_refactored`` (``controller/vnflcm_v2.py``, ``conductor/conductor_v2.py``,
``conductor/vnflcm_driver_v2.py``) for v2. ``tests/contract/test_verbs.py`` holds the
table to it.

v1 answers ``retry`` of a modification with an error, and has no change of package. v2
takes every ``rollback`` and then finds that it has none, so that the operation is in
FAILED_TEMP again, with another error.
"""

from collections.abc import Mapping
from types import MappingProxyType

from tacker_k8s_mgmt.hooks.advice import FAIL, RETRY, ROLLBACK, Verb
from tacker_k8s_mgmt.tools.tacker.records import V1, V2

INSTANTIATE, TERMINATE, HEAL = "INSTANTIATE", "TERMINATE", "HEAL"
SCALE_OUT, SCALE_IN = "SCALE_OUT", "SCALE_IN"
CHANGE_EXT_CONN, MODIFY_INFO = "CHANGE_EXT_CONN", "MODIFY_INFO"
CHANGE_VNFPKG = "CHANGE_VNFPKG"

_OF_V1 = frozenset(
    {
        *(INSTANTIATE, TERMINATE, HEAL, SCALE_OUT, SCALE_IN),
        *(CHANGE_EXT_CONN, MODIFY_INFO),
    }
)
#: The kinds of operations that each API has.
OPERATIONS: Mapping[str, frozenset[str]] = MappingProxyType(
    {V1.name: _OF_V1, V2.name: _OF_V1 | {CHANGE_VNFPKG}}
)
#: Those for which Tacker takes a verb while they are in FAILED_TEMP, and in no other
#: state.
HANDLED: Mapping[tuple[str, Verb], frozenset[str]] = MappingProxyType(
    {
        (V1.name, RETRY): _OF_V1 - {MODIFY_INFO},
        (V1.name, ROLLBACK): frozenset({INSTANTIATE, SCALE_OUT}),
        (V1.name, FAIL): _OF_V1,
        (V2.name, RETRY): OPERATIONS[V2.name],
        (V2.name, ROLLBACK): OPERATIONS[V2.name] - {HEAL, TERMINATE, SCALE_IN},
        (V2.name, FAIL): OPERATIONS[V2.name],
    }
)
#: What begins the error of an operation of the v1 API that ``retry`` would complete
#: without calling the driver again: its VMs are there by then.
RETRIED_IN_VAIN: Mapping[tuple[str, str], str] = MappingProxyType(
    {(V1.name, SCALE_OUT): "scale_end"}
)
#: What begins the error of an operation of which a rollback does harm: the first hook
#: has refused it, and Tacker would delete each VM that it does not count.
HARMFUL_ROLLBACK: Mapping[tuple[str, str], str] = MappingProxyType(
    {(V2.name, SCALE_OUT): "scale_start failed"}
)


def verbs_for(api: str, kind: str, error: str = "") -> tuple[Verb, ...]:
    """The verbs that have an effect on an operation in FAILED_TEMP.

    :param error: Tacker's text.
    """
    hook = RETRIED_IN_VAIN.get((api, kind))
    vain = hook is not None and hook in error
    return tuple(
        verb
        for verb in (RETRY, ROLLBACK, FAIL)
        if kind in HANDLED[api, verb] and not (vain and verb is RETRY)
    )


def advised(api: str, kind: str, error: str) -> tuple[Verb, ...]:
    """The verbs to name as a next step: no rollback that deletes what still works.

    :param error: Tacker's text.
    """
    begin = HARMFUL_ROLLBACK.get((api, kind))
    harmful = begin is not None and error.startswith(begin)
    return tuple(
        verb
        for verb in verbs_for(api, kind, error)
        if not (harmful and verb is ROLLBACK)
    )
