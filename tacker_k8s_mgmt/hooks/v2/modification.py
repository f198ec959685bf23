# SPDX-License-Identifier: Apache-2.0
"""Tacker's v2 operation "modify VNF information": what the cluster is to become.

Automatic operations are enabled by it, too, and refused if they cannot work.

Its request has no ``additionalParams``, and so no place for literal secrets.
"""

from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any

from oslo_config import cfg

from tacker_k8s_mgmt import errors
from tacker_k8s_mgmt.hooks import hints, modification
from tacker_k8s_mgmt.hooks.entry import Plan
from tacker_k8s_mgmt.hooks.v2 import automatic, settings
from tacker_k8s_mgmt.hooks.v2.context import V2Hook, V2Site
from tacker_k8s_mgmt.lifecycle.modify import Modify
from tacker_k8s_mgmt.lifecycle.state import Dependencies
from tacker_k8s_mgmt.request.params import InstallParams

END_ADVICE = hints.Advice(
    "`retry` goes on from here; `rollback` gives the cluster what it had before."
)
# Between the hooks of the operation.
_REFUSED = "metadata refused"


def params(hook: V2Hook, advice: str) -> InstallParams | None:
    """The stored parameters; None for a request that is not ours, or a refused one.

    :raises ParamError: automatic operations are enabled that could not work.
    """
    call = hook.call
    if call.operation == "modify_information_start":
        call.between[_REFUSED] = True
    elif call.between.get(_REFUSED):
        return None
    elif call.operation == "modify_information_end":
        automatic.see_possible(call)
    if not modification.concerns(call.patch):
        call.between.pop(_REFUSED, None)
        return None
    try:
        return hook.merged(advice)
    except errors.ParamError:
        return hook.completed(advice, _former_requests(call.vnf_id))


def start(hook: V2Hook, deps: Dependencies, site: V2Site) -> Plan:
    """Refuse what cannot be done, before anything changes."""
    checked = partial(hook.call.between.pop, _REFUSED, None)
    return Plan(_modify(hook, deps).start_steps(), after=checked)


def end(hook: V2Hook, deps: Dependencies, site: V2Site) -> Plan:
    """Give the cluster what the metadata want."""
    return Plan.of(_modify(hook, deps))


def rollback_end(hook: V2Hook, deps: Dependencies, site: V2Site) -> Plan:
    """Give the cluster what the former metadata want, which Tacker has kept."""
    return Plan.of(_modify(hook, deps, checked=False))


def _modify(hook: V2Hook, deps: Dependencies, *, checked: bool = True) -> Modify:
    return Modify(deps, modification.concerns(hook.call.patch), checked=checked)


def _former_requests(vnf_id: str) -> Sequence[Mapping[str, Any]]:
    """``additionalParams`` of the operations that ended well, latest first.

    :raises TackerError: Tacker's database cannot be read.
    """
    # Few hooks need the database, whose modules take long to import. They register
    # options, also for the command line, so the configuration is read again.
    cfg.CONF.clear()
    import tacker.cmd.conductor  # noqa: F401

    from tacker_k8s_mgmt.hooks.v2 import lookup

    settings.read()
    # The conductor has its database; do not wait for it.
    cfg.CONF.set_override("max_retries", 0, group="database")
    try:
        return lookup.Record(vnf_id).carried_out()
    except Exception as error:
        # The drivers of databases raise many kinds, whose texts may have the password.
        raise errors.TackerError(
            detail="The literal passwords and keys of former requests are not kept "
            "with the VNF instance, and Tacker's database, which has the requests, "
            f"could not be read ({type(error).__name__}).",
            hint="Let the conductor's user read the configuration with [database] "
            "connection. Or send a heal or scale request with references in place of "
            "literal secrets; what it gives is known from then on.",
        ) from None
