# SPDX-License-Identifier: Apache-2.0
"""``additionalParams.k8s_cluster_installation_param`` as a typed value.

Aliases are the names of the specification's attribute table and of the kubeadm driver's
user guide. The docstring of each field is its text in the user documentation.
"""

from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Annotated, Any, ClassVar, Literal

from pydantic import Field, SecretStr

from tacker_k8s_mgmt.model import networks, redaction
from tacker_k8s_mgmt.model.nodes import Role
from tacker_k8s_mgmt.model.playbook_runs import Forks
from tacker_k8s_mgmt.request import field_types, option_types, secret_fields
from tacker_k8s_mgmt.request.accounts import Account, PrivateKey
from tacker_k8s_mgmt.request.applications import Application
from tacker_k8s_mgmt.request.bastion import Bastion
from tacker_k8s_mgmt.request.cluster_options import Cluster
from tacker_k8s_mgmt.request.drain_policy import DrainPolicy
from tacker_k8s_mgmt.request.key_aliases import Structure
from tacker_k8s_mgmt.request.models import (
    AnsibleServer,
    ControlPlaneGroup,
    LoadBalancer,
    NodeGroup,
    Proxy,
    WorkerGroup,
)
from tacker_k8s_mgmt.request.operator_server import LEFT_TO_OPERATOR
from tacker_k8s_mgmt.request.option_metadata import (
    BUILT_ON,
    CHANGEABLE,
    Becomes,
    Changeable,
    Fixed,
)
from tacker_k8s_mgmt.request.profile_values import Expansion
from tacker_k8s_mgmt.request.registries import REGISTRY_VARIABLES, PrivateRegistry
from tacker_k8s_mgmt.request.secret_fields import Place
from tacker_k8s_mgmt.request.secret_references import Use
from tacker_k8s_mgmt.request.tenants import Tenant


class InstallParams(Structure):
    """The parameters of a cluster, made by :func:`.params.parse`."""

    ignored: ClassVar[Mapping[str, str]] = {
        "script_path": "kubespray takes the place of the installation script",
        "helm_installation_script_path": "Helm comes with kubespray: set cluster.helm",
        "storage_server": "storage is set with cluster.storage",
        "pv_registration_params": "storage is set with cluster.storage",
    }

    profile: Annotated[
        option_types.OptionalProfile, Fixed("what it stands for holds for life")
    ] = None
    """Name of a platform profile, which gives parameters that the request does not."""
    ansible: Annotated[AnsibleServer, LEFT_TO_OPERATOR]
    """The Ansible server and what lies where on it. May be left out where Tacker's
    operator has a server for all requests; then no attribute of it may be given."""
    bastion: Bastion | None = None
    """The SSH host through which the others are reached; without it, they are reached
    directly."""
    control_plane: ControlPlaneGroup = Field(alias="master_node")
    """The VMs of the control plane."""
    workers: WorkerGroup = Field(alias="worker_node")
    """The worker VMs."""
    proxy: Annotated[Proxy | None, Fixed("it was set up on every node")] = None
    """The nodes' HTTP proxy."""
    load_balancer: Annotated[
        LoadBalancer | None,
        Changeable(unless_new="the cluster was built without a load balancer"),
    ] = Field(default=None, alias="external_lb_param")
    """The external load balancer; without it, none is set up."""
    address_family: Annotated[Literal["ipv4", "ipv6"], BUILT_ON] = "ipv4"
    """Which of its addresses a node uses in the cluster: ipv4 or ipv6. Logins take the
    same family where a port has both. Default: ipv4."""
    cluster: Cluster = Field(default_factory=Cluster)
    """What is installed: versions, network plugin, registries, storage, authentication,
    add-ons. All of it has defaults."""
    private_registries: Annotated[
        tuple[PrivateRegistry, ...],
        Becomes(*REGISTRY_VARIABLES, value=None),
        CHANGEABLE,
    ] = Field(default=(), alias="private_registry_connection_info")
    """List of private registries as in the kubeadm driver's user guide;
    cluster.registries has more options."""
    drain: Annotated[DrainPolicy, CHANGEABLE] = Field(default_factory=DrainPolicy)
    """How pods leave a node before scale-in and heal remove it."""
    tenants: Annotated[
        tuple[Tenant, ...],
        Fixed("modify the VNF instance's metadata: k8s_tenants has the new list"),
    ] = ()
    """List of the tenants that share the cluster, each with a namespace and a VIM of
    its own."""
    applications: Annotated[
        tuple[Application, ...],
        Fixed("modify the VNF instance's metadata: k8s_applications has the new list"),
    ] = ()
    """List of the applications on the cluster, in the order of their installation."""
    vim_name: Annotated[
        field_types.Name | None, Fixed("the cluster is registered under it")
    ] = None
    """Name under which the cluster is registered as a VIM in Tacker."""
    kubespray_vars: Annotated[dict[str, Any], CHANGEABLE] = Field(
        default_factory=dict, repr=False
    )
    """Further kubespray variables, handed on as they are. One for which there is an
    attribute here is refused beside that attribute."""
    warnings: tuple[str, ...] = Field(default=(), exclude=True)
    """What was taken otherwise than written."""
    changed_logins: frozenset[str] = Field(default=frozenset(), exclude=True)
    """Structures whose login a scale or heal request changes."""
    metadata_problems: tuple[str, ...] = Field(default=(), exclude=True)
    """What is wrong with the lists in the VNF instance's metadata; these then are not
    in force."""
    references: tuple[Use, ...] = Field(default=(), exclude=True)
    """Where a secret is given by reference."""
    resolved: tuple[SecretStr, ...] = Field(default=(), exclude=True)
    """Secrets that references lead to."""
    expansion: Expansion | None = Field(default=None, exclude=True)
    """What came of the profile."""
    operators_server: bool = Field(default=False, exclude=True)
    """Whether the Ansible server is Tacker's operator's."""

    @property
    def pod_cidr(self) -> networks.Network | None:
        """The pods' network; None for kubespray's default."""
        return self.control_plane.pod_cidr

    @property
    def service_cidr(self) -> networks.Network | None:
        """The services' network; None for kubespray's default."""
        return self.control_plane.service_cidr

    @property
    def forks(self) -> Forks:
        """Ansible's forks.

        With a bastion, at first each fork logs in there, and sshd drops simultaneous
        logins from the tenth on (``MaxStartups``, 10:30:100 by default).
        """
        if self.bastion and self.bastion.carries_playbooks:
            return Forks(self.ansible.forks, most=8)
        return Forks(self.ansible.forks)

    @property
    def container_engine(self) -> str:
        """The nodes' container engine: containerd, crio or docker."""
        return self.cluster.container_manager or "containerd"

    @property
    def deletes_volumes(self) -> bool:
        """Whether the volumes of an application are to be deleted with it."""
        return any(app.volumes == "delete" for app in self.applications)

    @property
    def wants_compute_hosts(self) -> bool:
        """Whether nodes get a label with their compute host."""
        groups = (self.control_plane, self.workers)
        return any(group.compute_host_label for group in groups)

    @property
    def server_account(self) -> Account:
        """The login on the Ansible server."""
        account = _account("ansible", self.ansible)
        if self.operators_server and account.private_key:
            key = replace(account.private_key, attribute="ansible_private_key_file")
            return replace(account, private_key=key)
        return account

    @property
    def bastion_account(self) -> Account | None:
        """The login on the bastion, if there is one."""
        return _account("bastion", self.bastion) if self.bastion else None

    def account(self, role: Role) -> Account:
        """The login on the VMs of a role.

        :raises LookupError: the parameters have no load balancer.
        """
        return self._machine_accounts()[role]

    def accounts(self) -> tuple[Account, ...]:
        """All logins: the Ansible server's, those of the VMs by role, the bastion's."""
        vms, bastion = self._machine_accounts().values(), self.bastion_account
        return (self.server_account, *vms, *([bastion] if bastion else []))

    def secrets(self) -> tuple[str, ...]:
        """All secret texts of the parameters, for redaction.

        A password that is also a user name is left out: stars in the user name's place
        would reveal that the two are the same. A user name that looks like a token is
        no name. Each line of a private key is a secret; the content of a key file is
        not known here. Texts that are no secrets may have URLs with logins.
        """
        texts = set(redaction.in_variables(self.kubespray_vars))
        texts.update(redaction.in_urls(self.model_dump()))
        texts.update(self._tokens())
        texts.update(secret.get_secret_value() for secret in self.resolved)

        def note(place: Place, secret: str) -> str:
            texts.update(() if place.is_variable else place.form.parts(secret))
            return secret

        secret_fields.changed(InstallParams, self, note)
        names = {account.username for account in self.accounts()}
        texts -= {name for name in names if not redaction.is_token(name)}
        return tuple(sorted(texts))

    def _tokens(self) -> Iterator[str]:
        """User names that registries and OpenStack take for tokens."""
        names = [one.username for one in self.cluster.registries]
        names += [one.username for one in self.private_registries]
        openstack = self.cluster.openstack
        names += [openstack.username] if openstack else []
        return (name for name in names if name and redaction.is_token(name))

    def _machine_accounts(self) -> Mapping[Role, Account]:
        accounts = {
            Role.CONTROL_PLANE: _account("master_node", self.control_plane),
            Role.WORKER: _account("worker_node", self.workers),
        }
        if self.load_balancer:
            balancer = _account("external_lb_param", self.load_balancer)
            accounts[Role.LOAD_BALANCER] = balancer
        return accounts


def _account(
    attribute: str, holder: AnsibleServer | Bastion | NodeGroup | LoadBalancer
) -> Account:
    key = None
    if holder.private_key:
        name = type(holder).model_fields["private_key"].alias or "private_key"
        key = PrivateKey(
            f"{attribute}.{name}", holder.private_key, holder.private_key_passphrase
        )
    if isinstance(holder, NodeGroup):
        host_keys = holder.host_keys
    else:
        host_keys = (holder.host_key,) if holder.host_key else ()
    return Account(attribute, holder.username, holder.password, key, host_keys)
