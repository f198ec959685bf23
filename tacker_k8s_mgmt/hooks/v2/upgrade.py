# SPDX-License-Identifier: Apache-2.0
"""Tacker's v2 operation "change current VNF package": the cluster's upgrade.

Tacker runs the scripts of the new package (``conductor_v2.py``), and between the hooks
updates the Heat stack with the user data; those of our packages do not change it. A
rollback runs the scripts of the former package.
"""

from collections.abc import Iterator
from functools import partial

from oslo_log import log as logging
from oslo_utils.uuidutils import is_uuid_like
from tacker.sol_refactored.common import vnfd_utils

from tacker_k8s_mgmt import errors
from tacker_k8s_mgmt.hooks import hints
from tacker_k8s_mgmt.hooks.context import SERVER_ONLY
from tacker_k8s_mgmt.hooks.entry import Plan
from tacker_k8s_mgmt.hooks.v2 import scale_status
from tacker_k8s_mgmt.hooks.v2.context import V2Hook, V2Site
from tacker_k8s_mgmt.hooks.v2.request import Call
from tacker_k8s_mgmt.lifecycle.state import Dependencies
from tacker_k8s_mgmt.lifecycle.steps.records import ClusterRecords
from tacker_k8s_mgmt.lifecycle.upgrade import Upgrade, UpgradeStart
from tacker_k8s_mgmt.request import user_data
from tacker_k8s_mgmt.request.params import ATTRIBUTE, InstallParams
from tacker_k8s_mgmt.topology import upgrade_plan

LOG = logging.getLogger(__name__)

_ROLLBACK_ADVICE = hints.Advice(
    "Send `rollback` again, or `fail` to end the operation.",
    refused="Mend what it has failed at and send `retry`, which goes on; or send "
    "`fail`, and the same change of package later.",
)
START_ADVICE = hints.Advice(hints.CHECK.failed, refused=hints.SEND_FAIL)
END_ADVICE = hints.Advice(
    "`retry` goes on from here; after `fail`, another request for the same version "
    "does."
)


def params_of_start(hook: V2Hook, advice: str) -> InstallParams | None:
    """As :func:`params_of_upgrade`, if Tacker will not change the VMs.

    :raises UnsupportedOperation: with everything that would make Tacker change them.
    """
    findings = list(_changes(hook.call))
    if findings:
        raise errors.UnsupportedOperation(
            detail="A change of the VNF package upgrades Kubernetes on the VMs that "
            f"there are, and replaces none: {'; '.join(findings)}; nothing was "
            "changed.",
        )
    return params_of_upgrade(hook, advice)


def params_of_upgrade(hook: V2Hook, advice: str) -> InstallParams | None:
    """The parameters of a request that names a Kubernetes version."""
    params = None
    if hook.call.names_parameters:
        params = hook.merged(advice, upgrade=True)
    if params is None or params.cluster.kubernetes_version is None:
        LOG.info("No Kubernetes version is asked for: only the package changes")
        return None
    return params


def start(hook: V2Hook, deps: Dependencies, site: V2Site) -> Plan:
    """Refuse what cannot work, before any change."""
    return Plan.of(UpgradeStart(deps))


def end(hook: V2Hook, deps: Dependencies, site: V2Site) -> Plan:
    """Upgrade the nodes to the Kubernetes version of the request."""
    kept = {ATTRIBUTE: upgrade_plan.kept(hook.call.stored[ATTRIBUTE], deps.params)}
    return Plan.of(Upgrade(deps), after=partial(hook.call.store, kept))


def rollback_start(hook: V2Hook) -> None:
    """Refuse to restore the former package once nodes are upgraded.

    :raises UnsupportedOperation: an upgrade has begun.
    """
    scale_status.remember(hook.call)
    if not hook.call.names_parameters:
        return
    with hints.attached(_ROLLBACK_ADVICE):
        params = hook.merged(hints.SEND_FAIL, needed=SERVER_ONLY, upgrade=True)
        with hook.site(params) as site:
            record = ClusterRecords(site, params.ansible.host).upgrade()
        if record.aim:
            raise errors.UnsupportedOperation(
                detail=f"The upgrade to Kubernetes {record.aim} has begun, and "
                "Kubernetes cannot go back; nothing was changed."
            )


def rollback_end(hook: V2Hook) -> None:
    """Restore what Tacker's rollback drops."""
    scale_status.restore(hook.call)


def _changes(call: Call) -> Iterator[str]:
    yield from user_data.package_change_problems(call.additional_params)
    vnfd = vnfd_utils.Vnfd(str(call.request["vnfdId"]))
    vnfd.init_from_csar_dir(call.package)
    named = vnfd.get_sw_image(call.instance["instantiatedVnfInfo"]["flavourId"])
    for vdu, used in sorted(call.images().items()):
        # An image granted by an NFVO is an id, and takes precedence over the name.
        if vdu in named and named[vdu] != used and not is_uuid_like(used):
            yield (
                f"the new package names the image {named[vdu]} for {vdu}, whose VMs "
                f"have {used}"
            )
