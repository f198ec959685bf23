# SPDX-License-Identifier: Apache-2.0
"""A VNF instance: its Heat stack and its package."""

import abc
import errno
import os
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from oslo_log import log as logging

from tacker_k8s_mgmt.model import load_balancer
from tacker_k8s_mgmt.request.params import InstallParams
from tacker_k8s_mgmt.request.registries import certificate_problems
from tacker_k8s_mgmt.topology import (
    base_hot,
    base_hot_names,
    connection_points,
    heat_stack,
)
from tacker_k8s_mgmt.topology.connection_points import Attachment
from tacker_k8s_mgmt.topology.heat_stack import StackResource

LOG = logging.getLogger(__name__)

_LARGEST = 20 * 1024 * 1024  # bytes of an application's files


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
        return (*self._script_findings(), *self._certificate_findings())

    def registry_certificates(self) -> Mapping[str, bytes]:
        """Return the private registries' CA certificates, by their paths on the nodes.

        :raises OSError: the package has no such file, or a large one.
        """
        engine, found = self._params.container_engine, {}
        for registry in self._params.private_registries:
            place = registry.certificate_file(engine)
            if place and registry.certificate_path:
                files = self.package_files(registry.certificate_path)
                found[place] = files.get("", b"")
        return found

    def _certificate_findings(self) -> Iterator[str]:
        def read(path: str) -> bytes | None:
            try:
                return self.package_files(path).get("", b"")
            except OSError:
                return None

        return certificate_problems(self._params.private_registries, read)

    def _script_findings(self) -> Sequence[str]:
        if self._params.load_balancer is None:
            return ()
        attribute = "external_lb_param.script_path"
        path = self._params.load_balancer.script_path
        try:
            why = load_balancer.unusable(self._script())
        except OSError:
            return (f"{attribute}: the VNF package has no file {path}",)
        return (f"{attribute}: {path}: {why}",) if why else ()

    def base_hot_findings(self, flavour_id: str, user_data: str = "") -> Sequence[str]:
        """Return which names in the parameters the flavour's Base HOT does not have.

        Of a Base HOT that cannot be followed there is a warning in the log.

        :param user_data: path in the package of a script that may change the HOT.
        """
        where = f"BaseHOT/{flavour_id}"
        try:
            files = self.package_files(where)
            named = {f"{where}/{name}": content for name, content in files.items()}
            base, problems = base_hot.read(named, flavour_id)
            if base is None:
                raise ValueError("; ".join(problems))
            found = base_hot_names.compare(base, self._params)
            unknown = found.unknown
            if user_data and found.missing and not unknown:
                script = self.package_files(user_data).get("", b"")
                if base_hot_names.changes_resources(script):
                    unknown = f"{user_data} changes its resources"
        except (OSError, ValueError, RecursionError) as error:
            found, unknown = base_hot_names.Comparison(()), str(error)
        if not unknown:
            return found.missing
        LOG.warning(
            "VNF instance %s: %s of the VNF package cannot be followed, so the names "
            "in the request are compared with Heat's stack only: %s%s",
            *(self._vnf_id, where, unknown, "; ".join(("", *found.missing))),
        )
        return ()

    def package_files(self, path: str) -> Mapping[str, bytes]:
        """Return a file of the VNF package, or all files of a directory of it.

        :param path: relative to the package.
        :returns: by their paths below *path*; "" for a file itself.
        :raises OSError: the package has nothing there, or a file that is too large.
        """
        root = Path(self._package_root()).resolve()
        top = root / path
        found = [top] if top.is_file() else sorted(top.rglob("*"))
        if not top.exists():
            raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), path)
        files, size = {}, 0
        for file in filter(Path.is_file, found):
            # Tenants make packages, and another host gets what is read here.
            if not file.resolve().is_relative_to(root):
                raise OSError(errno.EPERM, "it leads out of the package", path)
            # Not by its size: a file may grow, and those of the kernel have none.
            with file.open("rb") as opened:
                content = opened.read(_LARGEST - size + 1)
            size += len(content)
            if size > _LARGEST:
                raise OSError(errno.EFBIG, os.strerror(errno.EFBIG), path)
            name = "" if file == top else str(file.relative_to(top))
            files[name] = content
        return files

    def _script(self) -> bytes:
        """Return the load balancer's script from the VNF package.

        :raises OSError: the package has no such file of its own, or a large one.
        """
        wanted = self._params.load_balancer
        path = wanted.script_path if wanted else ""
        content = self.package_files(path).get("")
        if content is None:
            raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR), path)
        return content
