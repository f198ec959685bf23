# SPDX-License-Identifier: Apache-2.0
"""The checks before Tacker changes the external connectivity."""

from collections.abc import Sequence

from tacker_k8s_mgmt import errors
from tacker_k8s_mgmt.lifecycle.runner import Step
from tacker_k8s_mgmt.lifecycle.state import Dependencies
from tacker_k8s_mgmt.lifecycle.steps import preflight
from tacker_k8s_mgmt.lifecycle.steps.compare import see_none_rebuilt
from tacker_k8s_mgmt.topology import connection_points
from tacker_k8s_mgmt.topology.connection_points import Attachment
from tacker_k8s_mgmt.topology.vm_selectors import as_named

_UNCHANGED = "Nothing was changed."


def connectivity_start(
    deps: Dependencies, points: Sequence[Attachment]
) -> tuple[Step, ...]:
    """The steps of ``change_external_connectivity_start``, in the order of work.

    :param points: the connection points of the request.
    """
    return (
        preflight.step(deps),
        Step(
            "see that the cluster can follow the change", lambda: _check(deps, points)
        ),
    )


def _check(deps: Dependencies, points: Sequence[Attachment]) -> None:
    wrong = [f"{address} ({p.name})" for p in points for address in p.wrong_addresses]
    if wrong:
        raise errors.UnsupportedOperation(
            detail=f"These fixed addresses are no IP addresses: {', '.join(wrong)}.",
            hint=f"{_UNCHANGED} Write them as Neutron does, without a zone.",
        )
    site = deps.site
    present = site.attachments()
    names = {name for port in present for name in (port.name, *port.floating_ips)}
    params = as_named(deps.params, names)
    shared = connection_points.shared_addresses(points, present, params)
    if shared:
        raise errors.UnsupportedOperation(
            detail=f"{', '.join(shared)} cannot have a fixed address, because the "
            "VMs of a scaling group would all get it.",
            hint=f"{_UNCHANGED} Name a subnet (subnetId) and numDynamicAddresses.",
        )
    fixed = site.fixed_groups()
    if fixed:
        raise errors.UnsupportedOperation(
            detail="Tacker's v1 API cannot change the ports of this VNF: it does "
            f"not give Heat the template of the VMs in {', '.join(fixed)} "
            "(OS::Heat::ResourceGroup).",
            hint=f"{_UNCHANGED} The v2 API can, and so can packages whose groups "
            "are AutoScalingGroups.",
        )
    changing = connection_points.changing(points, present)
    inner = connection_points.inner_points(params, present)
    moved = sorted(changing & inner.keys())
    if moved:
        listed = ", ".join(f"{name} ({inner[name]})" for name in moved)
        raise errors.UnsupportedOperation(
            detail=f"The request changes {listed}: the cluster itself lives at "
            "these addresses, which cannot change while it runs.",
            hint=f"{_UNCHANGED} Leave these connection points out of the request, "
            "or terminate the VNF and instantiate it with the other network.",
        )
    entry = connection_points.entry_point(params)
    if entry in changing and site.vims.in_use():
        raise errors.UnsupportedOperation(
            detail=f"The request changes {entry}, where Tacker reaches the "
            "cluster, and other VNFs use the cluster as their VIM: Tacker lets no "
            "VIM go to another address while it is used.",
            hint=f"{_UNCHANGED} Terminate and delete these VNFs first, or leave "
            f"{entry} out of the request.",
        )
    see_none_rebuilt(deps)
