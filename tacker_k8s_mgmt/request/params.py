"""``additionalParams.k8s_cluster_installation_param`` as a typed, checked value.

The border has the names of the specification's attribute table and of the kubeadm
driver's user guide that it builds on; inside we say control plane and worker. Every
field's description is the text of the user documentation.
"""

import ipaddress
from collections.abc import Collection, Iterable, Mapping
from dataclasses import replace
from typing import Any, ClassVar, Literal

from pydantic import Field, SecretStr, ValidationError

from tacker_k8s_mgmt.errors import ParamError
from tacker_k8s_mgmt.model import redaction
from tacker_k8s_mgmt.model.nodes import Role
from tacker_k8s_mgmt.model.playbook_runs import Forks
from tacker_k8s_mgmt.request import (
    cross_validation,
    field_types,
    key_aliases,
    option_conflicts,
    secret_references,
    update_policy,
)
from tacker_k8s_mgmt.request.accounts import Account, PrivateKey
from tacker_k8s_mgmt.request.bastion import Bastion
from tacker_k8s_mgmt.request.cluster_options import Cluster
from tacker_k8s_mgmt.request.key_aliases import Reading, Structure
from tacker_k8s_mgmt.request.models import (
    API_PORT,
    AnsibleServer,
    ControlPlaneGroup,
    DrainPolicy,
    LoadBalancer,
    NodeGroup,
    Proxy,
    WorkerGroup,
)
from tacker_k8s_mgmt.request.registries import PrivateRegistry
from tacker_k8s_mgmt.request.secret_references import Resolver, Use

__all__ = [
    "API_PORT",
    "InstallParams",
    "LoadBalancer",
    "Proxy",
    "merged",
    "parse",
    "without_secrets",
]

ATTRIBUTE = "k8s_cluster_installation_param"
_BECAUSE = {
    "ansible": "it names the Ansible server, without which nothing can be installed",
}


class InstallParams(Structure):
    """How a cluster is to be installed; made by :func:`parse`."""

    ignored: ClassVar[Mapping[str, str]] = {
        "script_path": "kubespray takes the place of the installation script",
        "helm_installation_script_path": "Helm comes with kubespray: set cluster.helm",
        "storage_server": "storage is set with cluster.storage",
        "pv_registration_params": "storage is set with cluster.storage",
    }

    ansible: AnsibleServer = Field(
        description="The Ansible server and what lies where on it."
    )
    bastion: Bastion | None = Field(
        default=None,
        description="The SSH host through which the others are reached; without it, "
        "they are reached directly.",
    )
    control_plane: ControlPlaneGroup = Field(
        alias="master_node", description="The VMs of the control plane."
    )
    workers: WorkerGroup = Field(alias="worker_node", description="The worker VMs.")
    proxy: Proxy | None = Field(default=None, description="The nodes' HTTP proxy.")
    load_balancer: LoadBalancer | None = Field(
        default=None,
        alias="external_lb_param",
        description="The external load balancer; without it, none is set up.",
    )
    address_family: Literal["ipv4", "ipv6"] = Field(
        default="ipv4",
        description="Which of its addresses a node uses in the cluster: ipv4 or ipv6. "
        "Logins take the same family where a port has both. Default: ipv4.",
    )
    cluster: Cluster = Field(
        default_factory=Cluster,
        description="What is installed: versions, network plugin, registries, storage, "
        "authentication, add-ons. All of it has defaults.",
    )
    private_registries: tuple[PrivateRegistry, ...] = Field(
        default=(),
        alias="private_registry_connection_info",
        description="List of private registries in the words of the kubeadm driver's "
        "user guide; cluster.registries can say more.",
    )
    drain: DrainPolicy = Field(
        default_factory=DrainPolicy,
        description="How pods leave a node before scale-in and heal remove it.",
    )
    vim_name: field_types.Name | None = Field(
        default=None,
        description="Name under which the cluster is registered as a VIM in Tacker.",
    )
    kubespray_vars: dict[str, Any] = Field(
        default_factory=dict,
        repr=False,
        description="Further kubespray variables, handed on as they are. One for which "
        "there is an attribute here is refused beside that attribute.",
    )
    warnings: tuple[str, ...] = Field(
        default=(), exclude=True, description="What was taken otherwise than written."
    )
    changed_logins: frozenset[str] = Field(
        default=frozenset(),
        exclude=True,
        description="Structures whose login a scale or heal request changes.",
    )
    references: tuple[Use, ...] = Field(
        default=(), exclude=True, description="Where a secret is given by reference."
    )
    resolved: tuple[SecretStr, ...] = Field(
        default=(), exclude=True, description="Secrets that references lead to."
    )

    @property
    def pod_cidr(self) -> ipaddress.IPv4Network | ipaddress.IPv6Network | None:
        """The pods' network, None for kubespray's own."""
        return self.control_plane.pod_cidr

    @property
    def service_cidr(self) -> ipaddress.IPv4Network | ipaddress.IPv6Network | None:
        """The services' network, None for kubespray's own."""
        return self.control_plane.service_cidr

    @property
    def forks(self) -> Forks:
        """How many hosts Ansible works on at the same time.

        Until the first node is reached through a bastion, each fork logs in to it, and
        sshd drops logins from the tenth on (``MaxStartups``, 10:30:100 by default).
        """
        if self.bastion and self.bastion.carries_playbooks:
            return Forks(self.ansible.forks, most=8)
        return Forks(self.ansible.forks)

    @property
    def wants_compute_hosts(self) -> bool:
        """Whether nodes get a label that tells their compute host."""
        groups = (self.control_plane, self.workers)
        return any(group.compute_host_label for group in groups)

    @property
    def server_account(self) -> Account:
        """The login on the Ansible server."""
        return _account("ansible", self.ansible)

    @property
    def bastion_account(self) -> Account | None:
        """The login on the bastion, if there is one."""
        return _account("bastion", self.bastion) if self.bastion else None

    def account(self, role: Role) -> Account:
        """The login on the VMs of a role.

        :raises LookupError: there is no load balancer in these parameters.
        """
        return self._machine_accounts()[role]

    def accounts(self) -> tuple[Account, ...]:
        """Every login: on the Ansible server first, then on the VMs by role."""
        bastion = self.bastion_account
        return (
            self.server_account,
            *self._machine_accounts().values(),
            *([bastion] if bastion else []),
        )

    def secrets(self) -> tuple[str, ...]:
        """Every secret text in the parameters, for redaction.

        A password that is also a user name here is left out: that text is shown
        anyway, and stars in its place would give away that the two are the same. Of
        a private key, each line is a secret; of one that lies in a file, nothing is
        known here.
        """
        found: set[str] = set()
        for account in self.accounts():
            key = account.private_key
            for secret in (account.password, key and key.passphrase):
                found.update([secret.get_secret_value()] if secret else [])
            if key and not key.path:
                found.update(redaction.in_private_key(key.given.get_secret_value()))
        proxy = self.proxy
        for url in (proxy.http_proxy, proxy.https_proxy) if proxy else ():
            found.update(redaction.in_url(url.get_secret_value()) if url else ())
        found.update(redaction.in_variables(self.kubespray_vars))
        found.update(secret.get_secret_value() for secret in self.resolved)
        found.update(self.cluster.secrets())
        for registry in self.private_registries:
            secret = registry.password
            found.update([secret.get_secret_value()] if secret else [])
        found.difference_update(account.username for account in self.accounts())
        return tuple(sorted(found))

    def _machine_accounts(self) -> Mapping[Role, Account]:
        found = {
            Role.CONTROL_PLANE: _account("master_node", self.control_plane),
            Role.WORKER: _account("worker_node", self.workers),
        }
        if self.load_balancer:
            balancer = _account("external_lb_param", self.load_balancer)
            found[Role.LOAD_BALANCER] = balancer
        return found


def parse(
    additional_params: Mapping[str, Any] | None,
    resolver: Resolver | None = None,
    *,
    needed: Collection[str] | None = None,
) -> InstallParams | None:
    """Read and check the parameters of an instantiate request.

    :param additional_params: the request's ``additionalParams``, as sent by the user or
        as shown by Tacker's GET view.
    :param resolver: tells secrets that are given by reference; without it they are only
        checked, and texts that are none stand for them.
    :param needed: structures whose secrets are needed (``ansible``...); None for all.
        Those of others may be missing.
    :returns: None if the request asks nothing of this driver.
    :raises ParamError: with every problem at once.
    """
    raw = _given(additional_params)
    return None if raw is None else _checked(_read(raw), resolver, needed)


def merged(
    stored: Mapping[str, Any] | None,
    override: Mapping[str, Any] | None,
    resolver: Resolver | None = None,
    *,
    needed: Collection[str] | None = None,
    upgrade: bool = False,
) -> InstallParams | None:
    """The parameters of an operation later in the cluster's life.

    Neither mapping is changed, and Tacker stores the merged values nowhere: they hold
    for this operation. What may be changed, and why other things may not:
    :mod:`.update_policy`. A secret that was not kept (:func:`without_secrets`) has to
    be repeated or replaced.

    :param stored: ``additionalParams`` of the instantiation.
    :param override: ``additionalParams`` of the scale or heal request.
    :param resolver: as above, and so is *needed*.
    :param upgrade: the Kubernetes version may change, too.
    :returns: None if this driver was not asked for when the VNF was instantiated.
    :raises ParamError: with every problem at once.
    """
    change, raw = _given(override), _given(stored)
    if change is None:
        return parse(stored, resolver, needed=needed)
    if raw is None:
        raise ParamError(["was not given when the VNF was instantiated"])
    later = _read(change)
    before = secret_references.restore_repeated(InstallParams, _read(raw), later)
    merge = update_policy.upgraded if upgrade else update_policy.merge
    reading = merge(before, later)
    changed = update_policy.changed_logins(before, reading)
    params = _checked(reading, resolver, needed)
    return params.model_copy(update={"changed_logins": changed})


def completed(
    stored: Mapping[str, Any],
    requests: Iterable[Mapping[str, Any]],
    resolver: Resolver | None = None,
) -> InstallParams:
    """The parameters as they are kept, with their secrets from where they were given.

    :param stored: ``additionalParams`` as :func:`without_secrets` keeps them.
    :param requests: ``additionalParams`` of the requests before, the latest first.
    :param resolver: as above.
    :raises ParamError: with every problem at once.
    """
    raw = _given(stored)
    if raw is None:
        raise ParamError(["was not given when the VNF was instantiated"])
    reading = _read(raw)
    for request in requests:
        if (given := _given(request)) is not None:
            later = _read(given)
            reading = secret_references.restore_repeated(InstallParams, reading, later)
    return _checked(reading, resolver, None)


def without_secrets(additional_params: Mapping[str, Any]) -> dict[str, Any]:
    """The attribute as it may be kept where others see it; :func:`merged` reads it.

    :param additional_params: of a request that :func:`parse` takes.
    :returns: ``{"k8s_cluster_installation_param": ...}``; nothing if it is not given.
    """
    raw = _given(additional_params)
    if raw is None:
        return {}
    return {ATTRIBUTE: secret_references.without_secrets(InstallParams, _read(raw))}


def _given(additional_params: Mapping[str, Any] | None) -> Mapping[str, Any] | None:
    """The attribute in either spelling; whatever else there is, Tacker's or not, is
    nothing of ours.
    """
    given = additional_params or {}
    spellings = (ATTRIBUTE, key_aliases.camel(ATTRIBUTE))
    raw = next((given[name] for name in spellings if name in given), None)
    if raw is not None and not isinstance(raw, Mapping):
        raise ParamError(["the attribute itself must be a structure"])
    return raw


def _read(raw: Mapping[str, Any]) -> Reading:
    reading = key_aliases.read(InstallParams, raw)
    secret_references.read(InstallParams, reading)
    key_aliases.restore_keys(reading, "kubespray_vars")
    return reading


def _checked(
    written: Reading, resolver: Resolver | None, needed: Collection[str] | None
) -> InstallParams:
    opened = secret_references.resolve(InstallParams, written, resolver, needed)
    reading = replace(written, values=opened.values)
    params, mistakes = _validated(reading)
    problems = [
        *reading.problems,
        *opened.missing,
        *mistakes,
        *cross_validation.problems(reading),
        *option_conflicts.problems(reading),
    ]
    if params is None or problems or opened.lost:
        raise ParamError([*opened.lost, *problems], elsewhere=not problems)
    found = {"references": tuple(opened.uses), "resolved": tuple(opened.secrets)}
    return params.model_copy(update=found) if opened.uses else params


def _validated(reading: Reading) -> tuple[InstallParams | None, list[str]]:
    warnings = (
        *reading.warnings,
        *cross_validation.warnings(reading),
        *option_conflicts.warnings(reading),
    )
    try:
        values = {**reading.values, "warnings": warnings}
        return InstallParams.model_validate(values), []
    except ValidationError as error:
        # The details alone leave this block: the exception holds the user's secrets.
        details = error.errors(include_url=False, include_input=False)
    return None, [reading.sentence(detail, _BECAUSE) for detail in details]


def _account(
    attribute: str, holder: AnsibleServer | Bastion | NodeGroup | LoadBalancer
) -> Account:
    key = None
    if holder.private_key:
        name = type(holder).model_fields["private_key"].alias or "private_key"
        key = PrivateKey(
            f"{attribute}.{name}", holder.private_key, holder.private_key_passphrase
        )
    given = holder.host_keys if isinstance(holder, NodeGroup) else holder.host_key
    host_keys = (given,) if isinstance(given, str) else given or ()
    return Account(attribute, holder.username, holder.password, key, host_keys)
