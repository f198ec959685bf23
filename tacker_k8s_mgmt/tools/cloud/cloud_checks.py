# SPDX-License-Identifier: Apache-2.0
"""Whether a cloud has what an instantiate request needs: a row for each thing.

Nothing is changed there. What a service refuses to tell is a finding of its row, so one
run reports everything. Besides the cloud's resources and networks it is checked whether
Tacker would create the VMs in this cloud and no other, and whether the Ansible server
reaches what it has to.
"""

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

from tacker_k8s_mgmt.errors import CloudError, RemoteError
from tacker_k8s_mgmt.model import network_plugins, untrusted
from tacker_k8s_mgmt.model.nodes import ROLES, Role
from tacker_k8s_mgmt.model.yaml_text import dig, mapping, sequence
from tacker_k8s_mgmt.remote.ansible import server
from tacker_k8s_mgmt.remote.ssh.session import Session
from tacker_k8s_mgmt.request.reader import ClusterRequest
from tacker_k8s_mgmt.tools.cloud import facts
from tacker_k8s_mgmt.tools.cloud.client import Cloud
from tacker_k8s_mgmt.tools.cloud.demand import Demand, Package, Vdu
from tacker_k8s_mgmt.tools.cloud.facts import Flavor, Image, Network, Quotas, Vim
from tacker_k8s_mgmt.tools.csar import stack_preview
from tacker_k8s_mgmt.tools.csar.body import Request
from tacker_k8s_mgmt.tools.csar.tacker_api import V2, Api

_PAIRS = "allowed-address-pairs"


class NetworkChecks:
    """The checks of one request; parameters as those of :class:`CloudChecks`.

    Each method raises ``CloudError`` if Neutron cannot be asked.
    """

    def __init__(
        self,
        cloud: Cloud,
        request: Request,
        params: ClusterRequest,
        source: Package,
        demand: Demand,
    ) -> None:
        self._cloud, self._params, self._demand = cloud, params, demand
        self._look = stack_preview.StackPreview(
            request, params, source.flavour, source.base
        )
        self._known: dict[str, Network | None] = {}

    def gateways(self) -> dict[str, str]:
        """The gateways of the networks over which VMs are reached, by network."""
        points = self._demand.networks
        used = {points[cp] for cp in self._ssh_points() if cp in points}
        found = {}
        for name in sorted(used):
            network = self._found(name)
            for subnet in network.subnets if network else ():
                if subnet.gateway and self._is_used(subnet.cidr):
                    found[name] = subnet.gateway
        return found

    def network(self, name: str) -> Iterator[str]:
        """Problems of an existing network."""
        network = self._found(name)
        if network is None:
            yield (
                "Neutron has no such network that this project sees: name another one "
                "in extVirtualLinks"
            )
            return
        if not network.is_up:
            yield f"it is switched off: openstack network set --enable {name}"
        if not network.is_open:
            kind = "an external network" if network.is_external else "a network"
            yield (
                f"it is {kind} of another project, which has not shared it, so Neutron "
                "refuses ports on it: use one of the project's own, with floating IPs "
                "where VMs must be reached from outside"
            )
        subnets = [s for s in network.subnets if self._is_used(s.cidr)]
        if not subnets:
            yield (
                f"it has no {self._params.address_family} subnet, so VMs would have no "
                "address: openstack subnet create"
            )
        for subnet in subnets:
            yield from self._overlaps(subnet.cidr)
        yield from self._security(network)

    def _security(self, network: Network) -> Iterator[str]:
        if network.port_security is not False:
            return
        points = [
            cp
            for cp, reference in self._demand.networks.items()
            if self._found(reference) == network and cp in self._demand.filtered
        ]
        if points:
            yield (
                f"its port security is off, and {_listed(points)} of the Base HOT has "
                "security groups or address pairs, which Neutron refuses there: take "
                "them out of the Base HOT, or openstack network set "
                f"--enable-port-security {network.name}"
            )

    def _overlaps(self, cidr: str) -> Iterator[str]:
        family = self._params.address_family
        inner = {
            "pods (master_node.pod_cidr)": self._params.pod_cidr
            or network_plugins.network(network_plugins.PODS[family]),
            "services (master_node.cluster_cidr)": self._params.service_cidr
            or network_plugins.network(network_plugins.SERVICES[family]),
        }
        for name, other in inner.items():
            own = network_plugins.network(cidr)
            if own.version == other.version and own.overlaps(other):
                yield (
                    f"its subnet {cidr} overlaps the network of {name}, {other}: "
                    "choose another one for the cluster"
                )

    def _is_used(self, cidr: str) -> bool:
        version = network_plugins.network(cidr).version
        return self._params.address_family == f"ipv{version}"

    def _ssh_points(self) -> set[str]:
        return {group.ssh_cp for group in self._params.vms.values()}

    @property
    def plugin(self) -> str:
        """The network plugin that kubespray is told to install."""
        name = self._params.kubespray_vars.get("kube_network_plugin")
        return str(name or self._params.cluster.network_plugin)

    def packets(self) -> Iterator[str]:
        """What Neutron would drop, with the port security that networks really have."""
        unfiltered = {
            cp
            for cp, name in self._demand.networks.items()
            if (network := self._found(name)) and not network.port_security
        }
        dropped = list(self._look.spoofing(unfiltered))
        yield from dropped
        if not dropped and not self._demand.has_pairs:
            return
        if _PAIRS not in self._cloud.network_extensions():
            yield (
                f"this Neutron has no extension {_PAIRS}: choose an encapsulation "
                "(cluster.network.encapsulation), or have its operator enable it"
            )

    def _found(self, name: str) -> Network | None:
        if name not in self._known:
            self._known[name] = self._cloud.network(name)
        return self._known[name]


def _listed(names: Iterable[str]) -> str:
    return ", ".join(sorted(names)) or "none"


@dataclass(frozen=True)
class Check:
    """The result of one check.

    :param where: file, host or path.
    :param findings: one sentence each, with what to do about it.
    :param skipped: why it was not checked, "" if it was.
    """

    name: str
    where: str
    findings: tuple[str, ...] = ()
    skipped: str = ""

    @property
    def result(self) -> str:
        """In words, for the table."""
        if self.skipped:
            return f"not checked: {self.skipped}"
        count = len(self.findings)
        return f"{count} problem{'s' if count > 1 else ''}" if count else "good"


def row(
    name: str, where: str, ask: Callable[[], Iterable[str]], subject: str = ""
) -> Check:
    """A row with findings.

    :param subject: what they are about, where several rows have the same name.
    """
    try:
        texts = tuple(f"{subject}: {text}" if subject else text for text in ask())
        return Check(name, where, texts)
    except CloudError as error:
        return Check(name, where, (str(error),))


_DEFAULT = "Tacker's default VIM"
_OWN = "VIM of the request"
_PORTS = {"http": 80, "https": 443}
# Words for the same in accessInfo: SOL 003's of v2, and Tacker's own of v1.
_PROJECT = ("project", "projectName", "project_name", "tenant")
_DOMAIN = ("projectDomain", "projectDomainName", "project_domain_name")
_KINDS = {
    "openstack",
    "etsinfv.openstack_keystone.v_3",
    "etsinfv.openstack_keystone.v_2",
}


class VimChecks:
    """The checks of one request.

    :param api: Tacker's, that the request is for.
    """

    def __init__(self, cloud: Cloud, request: Request, api: Api) -> None:
        self._cloud, self._request, self._api = cloud, request, api
        self._vims: list[Vim] | None = None

    def used(self) -> Check:
        """Whether the VIM that Tacker would use is the cloud of this login."""
        given = self._request.body.get("vimConnectionInfo")
        if not given:
            return row(_DEFAULT, self._cloud.project, self._default)
        infos = [*given.values()] if isinstance(given, Mapping) else sequence(given)
        return row(_OWN, self._cloud.project, partial(self._given, infos))

    def name(self, name: str) -> Check:
        """Whether the name of the cluster's VIM is free in Tacker's registry."""
        if self._api is V2:
            return Check("VIM name", name, skipped="v2 keeps it with the VNF instance")

        def findings() -> Iterator[str]:
            if any(vim.name == name for vim in self._registered()):
                yield (
                    f"Tacker has a VIM of this name already: choose another vim_name, "
                    f"or delete it (openstack vim delete {name})"
                )

        return row("VIM name", name, findings)

    def _registered(self) -> list[Vim]:
        if self._vims is None:
            self._vims = self._cloud.vims()
        return self._vims

    def _default(self) -> Iterator[str]:
        default = [vim for vim in self._registered() if vim.is_default]
        if not default:
            yield (
                "there is none: openstack vim register --is-default --config-file "
                "FILE NAME, or give vimConnectionInfo in the request"
            )
        for vim in default:
            yield from self._differences(vim)

    def _given(self, infos: Sequence[Any]) -> Iterator[str]:
        for info in map(mapping, infos):
            vim_id = str(info.get("vimId") or "")
            if self._api is V2 or not vim_id:
                yield from self._differences(_vim(info))
                continue
            found = [vim for vim in self._registered() if vim.id == vim_id]
            if not found:
                yield f"Tacker has no VIM of the id {vim_id}: openstack vim list"
            for vim in found:
                yield from self._differences(vim)

    def _differences(self, vim: Vim) -> Iterator[str]:
        if vim.kind.lower() not in _KINDS:
            yield f"{vim.name} is of type {vim.kind}: VMs need an OpenStack"
            return
        known = {_place(url) for url in self._cloud.identity_urls}
        if vim.auth_url and _place(vim.auth_url) not in known:
            yield (
                f"{vim.name} is at {vim.auth_url}, and this login is at "
                f"{self._cloud.auth_url}: log in to the cloud of the VIM"
            )
        elif vim.project and self._is_other(vim):
            own = _qualified(self._cloud.project, self._cloud.domain)
            yield (
                f"{vim.name} is for the project {_qualified(vim.project, vim.domain)}, "
                f"and this login is for {own}: log in to that of the VIM"
            )

    def _is_other(self, vim: Vim) -> bool:
        domains = {vim.domain.lower(), self._cloud.domain.lower()} - {""}
        return vim.project != self._cloud.project or len(domains) > 1


def _vim(info: Mapping[str, Any]) -> Vim:
    """The VIM that a request describes."""
    access = mapping(info.get("accessInfo"))

    def first(names: tuple[str, ...]) -> str:
        return next((str(access[name]) for name in names if access.get(name)), "")

    return Vim(
        str(info.get("id") or "vimConnectionInfo"),
        str(info.get("vimType")),
        auth_url=str(dig(info, "interfaceInfo", "endpoint") or ""),
        project=first(_PROJECT),
        domain=first(_DOMAIN),
    )


def _qualified(project: str, domain: str) -> str:
    return f"{project} of the domain {domain}" if domain else project


def _place(url: str) -> tuple[str, int, str]:
    """Where a Keystone is: its host, port and path, whatever the version."""
    try:
        split = untrusted.url_parts(url)
    except ValueError:
        return url, 0, ""
    path = split.path.rstrip("/")
    for version in ("/v3", "/v2.0"):
        path = path.removesuffix(version)
    return (
        (split.hostname or "").lower(),
        split.port or _PORTS.get(split.scheme, 0),
        path,
    )


#: kubespray's own minimums in MB, by role, with the variables that change them.
_MINIMUMS: Mapping[Role, tuple[str, int]] = {
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
        params: ClusterRequest,
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
        if not any(vdu.role and ROLES[vdu.role].groups for vdu in vdus):
            return
        if facts.is_refused(image):
            yield _unknown(image)
        elif not facts.distribution(image):
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
        if vdu.role is None or vdu.role not in _MINIMUMS or variables.get(_NO_ASSERTS):
            return
        name, default = _MINIMUMS[vdu.role]
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


def _unknown(image: Image) -> str:
    by = (
        f"its property os_distro is {image.distribution}"
        if image.distribution
        else "it has no property os_distro, and its name has no distribution's"
    )
    return (
        f"kubespray may not install on it: {by}. Use an image of "
        f"{_listed(facts.LOGINS)}; for one of these, openstack image set "
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


_TO_VMS = "Ansible server to VMs"
_MIRROR = "Ansible server to mirror"


def rows(
    session: Session | None,
    params: ClusterRequest,
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
    targets = list(server.targets(params))
    if not targets:
        yield Check(_MIRROR, "", skipped="the request names none")
    for target in targets:
        try:
            why = server.mirror(session, params, target)
        except RemoteError as error:
            why = str(error)
        skipped = "the Ansible server has no curl" if why is None else ""
        yield Check(_MIRROR, target.shown, (why,) if why else (), skipped)


def _gateways(
    session: Session,
    params: ClusterRequest,
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
            why, remark = server.gateway(session, address)
        except RemoteError as error:
            why, remark = str(error), ""
        warnings += [remark] if remark else []
        yield Check(_TO_VMS, f"{name}, gateway {address}", (why,) if why else ())
