# SPDX-License-Identifier: Apache-2.0
"""A VNF instance: its Heat stack and its package."""

import abc
import os
from collections.abc import Sequence

from oslo_log import log as logging

from tacker_k8s_mgmt.model import load_balancer
from tacker_k8s_mgmt.request.params import InstallParams
from tacker_k8s_mgmt.topology import connection_points, heat_stack
from tacker_k8s_mgmt.topology.connection_points import Attachment
from tacker_k8s_mgmt.topology.heat_stack import StackResource

LOG = logging.getLogger(__name__)


class Vnf(abc.ABC):
    """A VNF instance; the APIs of Tacker differ in how they find stack and package."""

    def __init__(self, vnf_id: str, params: InstallParams) -> None:
        self._vnf_id = vnf_id
        self._params = params

    @abc.abstractmethod
    def _stack(self) -> tuple[str, Sequence[StackResource]]:
        """Return name or id of the VNF's Heat stack, and all its resources.

        :raises RemoteError: Heat failed.
        """

    @abc.abstractmethod
    def _package_root(self) -> str:
        """Return the directory of the VNF package."""

    def machines(self) -> heat_stack.Machines:
        """Return the VNF's VMs, from its Heat stack."""
        name, resources = self._stack()
        machines = heat_stack.find_machines(name, resources, self._params)
        if machines.unnamed:
            LOG.warning(
                "VNF instance %s: no parameter leads to the VMs %s; they are no part "
                "of the cluster",
                self._vnf_id,
                ", ".join(machines.unnamed),
            )
        return machines

    def attachments(self) -> Sequence[Attachment]:
        """Return the ports of the VNF's Heat stack."""
        return connection_points.attachments(self._stack()[1])

    def fixed_groups(self) -> Sequence[str]:
        """Return the groups of VMs whose ports Tacker cannot change."""
        return ()

    def package_findings(self) -> Sequence[str]:
        """Return what the VNF package lacks."""
        if self._params.load_balancer is None:
            return ()
        attribute = "external_lb_param.script_path"
        path = self._params.load_balancer.script_path
        try:
            why = load_balancer.unusable(self._script())
        except OSError:
            return (f"{attribute}: the VNF package has no file {path}",)
        return (f"{attribute}: {path}: {why}",) if why else ()

    def _script(self) -> bytes:
        """Return the load balancer's script from the VNF package.

        :raises OSError: the package has no such file.
        """
        wanted = self._params.load_balancer
        path = os.path.join(self._package_root(), wanted.script_path if wanted else "")
        with open(path, "rb") as file:
            return file.read()
