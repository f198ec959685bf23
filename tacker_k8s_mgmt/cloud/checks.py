# SPDX-License-Identifier: Apache-2.0
"""Whether a cloud has what an instantiate request needs: a row for each thing.

Nothing is changed there. What a service refuses to tell is a finding of its row, so one
run reports everything.
"""

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import partial

from tacker_k8s_mgmt.cloud import distributions
from tacker_k8s_mgmt.cloud.client import Cloud
from tacker_k8s_mgmt.cloud.demand import Demand, Package, Vdu
from tacker_k8s_mgmt.cloud.facts import Flavor, Image, Quotas
from tacker_k8s_mgmt.cloud.network_checks import NetworkChecks
from tacker_k8s_mgmt.cloud.rows import row
from tacker_k8s_mgmt.cloud.vim_checks import VimChecks
from tacker_k8s_mgmt.csar.request import Request
from tacker_k8s_mgmt.model.nodes import Role
from tacker_k8s_mgmt.request.params import InstallParams
from tacker_k8s_mgmt.status.check import Check

#: kubespray's own minimums in MB, by role, with the variables that change them.
MINIMUMS: Mapping[Role, tuple[str, int]] = {
    Role.CONTROL_PLANE: ("minimal_master_memory_mb", 1500),
    Role.WORKER: ("minimal_node_memory_mb", 1024),
}
#: MB of a VM's memory that Linux keeps for itself; kubespray compares what is left.
_KERNEL = 64
_UNSUPPORTED = "allow_unsupported_distribution_setup"
_NO_ASSERTS = "ignore_assert_errors"
#: How operators raise a quota, and what is counted in what.
_UNITS = {"ram": "MiB of ram", "gigabytes": "gigabytes of volumes"}


class CloudChecks:
    """The checks of one request.

    :param request: an instantiate request.
    :param params: its parameters.
    :param source: the package that it is for.
    :param demand: what the request makes of that.
    """

    def __init__(
        self,
        cloud: Cloud,
        request: Request,
        params: InstallParams,
        source: Package,
        demand: Demand,
    ) -> None:
        self._cloud, self._params, self._demand = cloud, params, demand
        self.networks = NetworkChecks(cloud, request, params, source, demand)
        self.vims = VimChecks(cloud, request, source.api)
        self.warnings: list[str] = []
        self._flavors: dict[str, Flavor | None] = {}

    def rows(self) -> Iterator[Check]:
        """All of them, but for the name of the cluster's VIM; adds to the warnings."""
        yield from self._vdu_rows("image", "image", self._image)
        yield from self._vdu_rows("flavour", "flavor", self._flavor)
        yield self._key_row()
        for name in dict.fromkeys(self._demand.networks.values()):
            yield row("network", name, partial(self.networks.network, name), name)
        yield row("pods' packets", self.networks.plugin, self.networks.packets)
        yield row("quotas of Nova", self._cloud.project, self._compute)
        yield row("quotas of Neutron", self._cloud.project, self._network_quotas)
        if "volumes" in self._demand.counts:
            yield row("quotas of Cinder", self._cloud.project, self._volumes)
        yield row("Heat", ", ".join(sorted(self._demand.versions)), self._heat)
        yield self.vims.used()

    # VDUs

    def _vdu_rows(
        self,
        title: str,
        attribute: str,
        check: Callable[[str, list[Vdu]], Iterable[str]],
    ) -> Iterator[Check]:
        """A row for each image or flavour, with the VDUs that want it."""
        users = defaultdict(list)
        for vdu in self._demand.vdus:
            users[getattr(vdu, attribute)].append(vdu)
        for name, vdus in users.items():
            where = f"{name or '(none)'} ({_listed(vdu.name for vdu in vdus)})"
            yield row(title, where, partial(check, name, vdus), name)

    def _image(self, name: str, vdus: list[Vdu]) -> Iterator[str]:
        image = self._cloud.image(name) if name else None
        if image is None:
            yield (
                "Glance has no such image that this project may use: upload it, or "
                "name another one (csar build --image)"
            )
            return
        if image.status != "active":
            yield f"the image is {image.status}: upload its data"
        variables = self._params.kubespray_vars
        if variables.get(_UNSUPPORTED) or variables.get(_NO_ASSERTS):
            return
        if not any(vdu.role in MINIMUMS for vdu in vdus):
            return
        if distributions.is_refused(image):
            yield _unknown(image)
        elif not distributions.distribution(image):
            self.warnings.append(f"image: {image.name}: {_unknown(image)}")

    def _flavor(self, name: str, vdus: list[Vdu]) -> Iterator[str]:
        flavor = self._found_flavor(name) if name else None
        if flavor is None:
            yield (
                "Nova has no such flavour that this project may use: make it, or name "
                "another one (csar build --flavor)"
            )
            return
        for vdu in vdus:
            yield from self._memory(flavor, vdu)
        for image_name in dict.fromkeys(vdu.image for vdu in vdus if vdu.image):
            image = self._cloud.image(image_name)
            if image and 0 < flavor.disk < image.min_disk:
                yield (
                    f"its disk has {flavor.disk} GiB, and the image {image.name} needs "
                    f"{image.min_disk}: choose a larger flavour"
                )
            if image and flavor.ram < image.min_ram:
                yield (
                    f"it has {flavor.ram} MiB of memory, and the image {image.name} "
                    f"needs {image.min_ram}: choose a larger flavour"
                )

    def _memory(self, flavor: Flavor, vdu: Vdu) -> Iterator[str]:
        variables = self._params.kubespray_vars
        if vdu.role is None or vdu.role not in MINIMUMS or variables.get(_NO_ASSERTS):
            return
        name, default = MINIMUMS[vdu.role]
        wanted = variables.get(name, default)
        if isinstance(wanted, int) and flavor.ram - _KERNEL < wanted:
            yield (
                f"it has {flavor.ram} MiB of memory, of which Linux keeps some "
                f"{_KERNEL}, and kubespray wants {wanted} MB for {vdu.name} ({name}): "
                "choose a larger flavour"
            )

    def _key_row(self) -> Check:
        wanted = list(dict.fromkeys(vdu.key for vdu in self._demand.vdus if vdu.key))
        if not wanted:
            return Check("key pair", "", skipped="no VM has one (key_name)")

        def findings() -> Iterator[str]:
            known = self._cloud.keypairs()
            for name in wanted:
                if name not in known:
                    yield (
                        f"the user of this cloud has no key pair {name} (there are: "
                        f"{_listed(known)}): openstack keypair create --public-key "
                        f"FILE {name}, as the user that the VIM has"
                    )

        return row("key pair", _listed(wanted), findings)

    def _found_flavor(self, name: str) -> Flavor | None:
        if name not in self._flavors:
            self._flavors[name] = self._cloud.flavor(name)
        return self._flavors[name]

    # Quotas

    def _compute(self) -> Iterator[str]:
        wanted = dict(self._demand.counts)
        for vdu in self._demand.vdus:
            flavor = self._found_flavor(vdu.flavor) if vdu.flavor else None
            if flavor:
                wanted["cores"] = wanted.get("cores", 0) + vdu.number * flavor.vcpus
                wanted["ram"] = wanted.get("ram", 0) + vdu.number * flavor.ram
        return _exceeded(wanted, self._cloud.compute_quotas())

    def _network_quotas(self) -> Iterator[str]:
        return _exceeded(self._demand.counts, self._cloud.network_quotas())

    def _volumes(self) -> Iterator[str]:
        return _exceeded(self._demand.counts, self._cloud.volume_quotas())

    # Heat

    def _heat(self) -> Iterator[str]:
        heat = self._cloud.heat()
        for version in sorted(self._demand.versions - heat.versions):
            yield (
                f"it does not read heat_template_version {version} (it reads: "
                f"{_listed(heat.versions)}): write the Base HOT for one of these"
            )
        if missing := sorted(self._demand.types - heat.types):
            yield (
                f"it does not make {_listed(missing)}, which the Base HOT has: use "
                "others, or have its operator enable the service behind them"
            )


def _listed(names: Iterable[str]) -> str:
    return ", ".join(sorted(names)) or "none"


def _unknown(image: Image) -> str:
    by = (
        f"its property os_distro is {image.distribution}"
        if image.distribution
        else "it has no property os_distro, and its name has no distribution's"
    )
    return (
        f"kubespray may not install on it: {by}. Use an image of "
        f"{_listed(distributions.LOGINS)}; for one of these, openstack image set "
        f"--property os_distro=NAME {image.name}; for another that is to be tried, "
        f"kubespray_vars.{_UNSUPPORTED}: true"
    )


def _exceeded(wanted: Mapping[str, int], quotas: Quotas) -> Iterator[str]:
    for name, quota in quotas.items():
        needed = wanted.get(name, 0)
        if needed > quota.free:
            what = _UNITS.get(name, name.replace("_", " "))
            yield (
                f"{what}: the request needs {needed}, and of {quota.limit} there are "
                f"{quota.limit - quota.used} left: have the quota raised, or delete "
                "what is not used"
            )
