"""What is checked before Tacker changes the ports of a change of connectivity."""

from collections.abc import Sequence

from tacker_k8s_mgmt import errors
from tacker_k8s_mgmt.lifecycle import ports
from tacker_k8s_mgmt.lifecycle.runner import Step
from tacker_k8s_mgmt.lifecycle.steps import preflight
from tacker_k8s_mgmt.request.params import InstallParams
from tacker_k8s_mgmt.topology import connection_points
from tacker_k8s_mgmt.topology.connection_points import Attachment

_UNCHANGED = "Nothing was changed."


class ConnectivityStart:
    """The steps of ``change_external_connectivity_start``.

    :param asked: the connection points of the request.
    """

    def __init__(
        self,
        params: InstallParams,
        vnf_id: str,
        site: ports.Site,
        asked: Sequence[Attachment],
    ) -> None:
        self._params = params
        self._vnf_id = vnf_id
        self._site = site
        self._asked = asked

    def steps(self) -> tuple[Step, ...]:
        """The steps in the order of work."""
        return (
            preflight.Preflight(self._params, self._vnf_id, self._site).step(),
            Step("see that the cluster can follow the change", self._check),
        )

    def _check(self) -> None:
        present = self._site.attachments()
        shared = connection_points.shared_addresses(self._asked, present, self._params)
        if shared:
            raise errors.UnsupportedOperation(
                detail=f"{', '.join(shared)} cannot have a fixed address, because the "
                "VMs of a scaling group would all get it.",
                hint=f"{_UNCHANGED} Name a subnet (subnetId) and numDynamicAddresses.",
            )
        fixed = self._site.fixed_groups()
        if fixed:
            raise errors.UnsupportedOperation(
                detail="Tacker's v1 API cannot change the ports of this VNF: it does "
                f"not give Heat the template of the VMs in {', '.join(fixed)} "
                "(OS::Heat::ResourceGroup).",
                hint=f"{_UNCHANGED} The v2 API can, and so can packages whose groups "
                "are AutoScalingGroups.",
            )
        changing = connection_points.changing(self._asked, present)
        inner = connection_points.inner_points(self._params, present)
        moved = sorted(changing & inner.keys())
        if moved:
            listed = ", ".join(f"{name} ({inner[name]})" for name in moved)
            raise errors.UnsupportedOperation(
                detail=f"The request changes {listed}: the cluster itself lives at "
                "these addresses, which cannot change while it runs.",
                hint=f"{_UNCHANGED} Leave these connection points out of the request, "
                "or terminate the VNF and instantiate it with the other network.",
            )
        entry = connection_points.entry_point(self._params)
        if entry in changing and self._site.vims.in_use():
            raise errors.UnsupportedOperation(
                detail=f"The request changes {entry}, where Tacker reaches the "
                "cluster, and other VNFs use the cluster as their VIM: Tacker lets no "
                "VIM go to another address while it is used.",
                hint=f"{_UNCHANGED} Terminate and delete these VNFs first, or leave "
                f"{entry} out of the request.",
            )
