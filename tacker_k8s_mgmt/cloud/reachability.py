# SPDX-License-Identifier: Apache-2.0
"""What the Ansible server has to reach for a request: a row for each thing."""

from collections.abc import Iterator

from tacker_k8s_mgmt.cloud.network_checks import NetworkChecks
from tacker_k8s_mgmt.errors import CloudError, RemoteError
from tacker_k8s_mgmt.remote.ansible import reach
from tacker_k8s_mgmt.remote.ssh.session import Session
from tacker_k8s_mgmt.request.params import InstallParams
from tacker_k8s_mgmt.status.check import Check

_TO_VMS = "Ansible server to VMs"
_MIRROR = "Ansible server to mirror"


def rows(
    session: Session | None,
    params: InstallParams,
    networks: NetworkChecks,
    warnings: list[str],
) -> Iterator[Check]:
    """The ways to the VMs' networks, and to the mirrors and registries.

    :param session: with the Ansible server; None if it could not be asked.
    :param warnings: what need not be a problem is added.
    """
    if session is None:
        silent = "the Ansible server could not be asked"
        yield Check(_TO_VMS, "", skipped=silent)
        yield Check(_MIRROR, "", skipped=silent)
        return
    yield from _gateways(session, params, networks, warnings)
    targets = list(reach.targets(params))
    if not targets:
        yield Check(_MIRROR, "", skipped="the request names none")
    for target in targets:
        try:
            why = reach.mirror(session, params, target)
        except RemoteError as error:
            why = str(error)
        skipped = "the Ansible server has no curl" if why is None else ""
        yield Check(_MIRROR, target.shown, (why,) if why else (), skipped)


def _gateways(
    session: Session,
    params: InstallParams,
    networks: NetworkChecks,
    warnings: list[str],
) -> Iterator[Check]:
    bastion = params.bastion
    if bastion is not None and bastion.carries_playbooks:
        yield Check(_TO_VMS, "", skipped="it goes through the bastion")
        return
    try:
        found = networks.gateways()
    except CloudError as error:
        yield Check(_TO_VMS, "", (str(error),))
        return
    if not found:
        yield Check(_TO_VMS, "", skipped="their networks have no gateway")
    for name, address in found.items():
        try:
            why, remark = reach.gateway(session, address)
        except RemoteError as error:
            why, remark = str(error), ""
        warnings += [remark] if remark else []
        yield Check(_TO_VMS, f"{name}, gateway {address}", (why,) if why else ())
