# SPDX-License-Identifier: Apache-2.0
"""``additionalParams.k8s_cluster_installation_param`` as a typed value.

Aliases are the names of the specification's attribute table and of the kubeadm driver's
user guide. The docstring of each field is its text in the user documentation.
"""

from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Annotated, Any, ClassVar, Literal

from pydantic import Field, SecretStr

from tacker_k8s_mgmt import text
from tacker_k8s_mgmt.model import network_plugins
from tacker_k8s_mgmt.model.load_balancer import InstallOption, install
from tacker_k8s_mgmt.model.nodes import ROLES, Role
from tacker_k8s_mgmt.model.playbooks import Forks, Means
from tacker_k8s_mgmt.request import fields, secrets
from tacker_k8s_mgmt.request.accounts import (
    SSH_PORT,
    Account,
    Bastion,
    KeyText,
    Login,
    Passphrase,
    Password,
)
from tacker_k8s_mgmt.request.applications import Application
from tacker_k8s_mgmt.request.cluster_options import Cluster
from tacker_k8s_mgmt.request.drain_policy import DrainPolicy
from tacker_k8s_mgmt.request.host_keys import ABOUT_HOST_KEY, HostKeys, OptionalHostKey
from tacker_k8s_mgmt.request.operator_server import LEFT_TO_OPERATOR
from tacker_k8s_mgmt.request.profile_document import ResolvedProfile
from tacker_k8s_mgmt.request.registries import REGISTRY_VARIABLES, PrivateRegistry
from tacker_k8s_mgmt.request.secrets import Place, Use
from tacker_k8s_mgmt.request.structure import (
    CHANGEABLE,
    SET_AT_CREATION,
    Changeable,
    Fixed,
    Sets,
    Structure,
)
from tacker_k8s_mgmt.request.tenants import Tenant

API_PORT = 6443
#: What the specification's sample request has as the ``ssh_cp_name`` of the load
#: balancer, and the port that it connects in ``extVirtualLinks``. The specification's
#: own Base HOT has only the port.
SPECIFIED_BALANCER = ("externalLB_instance", "externalLB_CP1")

_ABOUT_LOGIN = (
    "Password of that user, for the login and for sudo. Not needed with {key}; if both "
    "are given, the key logs in and the password serves sudo."
)
_Password = Annotated[
    Password, Field(description=_ABOUT_LOGIN.format(key="private_key"))
]
_PrivateKey = Annotated[
    KeyText,
    Field(
        description="SSH private key of that user: its text (RSA, ECDSA or Ed25519, in "
        "OpenSSH's or a PEM format), or the path of a file with it on Tacker's "
        "conductor, below the directory that the option [k8s_mgmt] key_directory "
        "names: absolute, or relative to that directory and beginning with ./."
    ),
]

_IN_THE_STACK = Fixed("it names what is in the Heat stack")
_LABELLED = Fixed(
    "nodes that are there would keep theirs; modify the VNF instance's metadata"
)
# Host variables of the inventory, not extra variables.
_LABELS = Sets("node_labels", value=None)
_TAINTS = Sets("node_taints", value=None)


class AnsibleServer(Login):
    """The pre-built server on which kubespray lies and from which it is run."""

    host: Annotated[fields.Host, CHANGEABLE] = Field(alias="ip_address")
    """IP address or host name of the Ansible server."""
    port: Annotated[fields.Port, CHANGEABLE] = SSH_PORT
    """SSH port of the Ansible server."""
    username: Annotated[fields.Name, CHANGEABLE]
    """User name on the Ansible server."""
    password: _Password = None
    private_key: _PrivateKey = None
    private_key_passphrase: Passphrase = None
    host_key: Annotated[OptionalHostKey, CHANGEABLE] = Field(
        default=None, description=f"SSH host key of that server: {ABOUT_HOST_KEY}"
    )
    kubespray_root: Annotated[fields.AbsolutePath, CHANGEABLE] = Field(
        alias="kubespray_root_path"
    )
    """Absolute path of the kubespray checkout on the Ansible server."""
    venv: Annotated[fields.OptionalAbsolutePath, CHANGEABLE] = Field(
        default=None, alias="venv_path"
    )
    """Absolute path of the Python virtual environment that holds the ansible-core this
    kubespray wants. Without it, the one on the user's PATH is taken."""
    directory: Annotated[
        fields.OwnedDirectory, Fixed("the cluster's inventory lies there")
    ] = Field(alias="transferring_inventory_path")
    """Absolute path of the directory for this cluster's inventory, variables and
    playbook runs. It is created, belongs to this VNF alone and is deleted when the VNF
    is terminated."""
    forks: Annotated[fields.OptionalForks, CHANGEABLE] = None
    """How many hosts Ansible works on at the same time, from 1 to 200: each takes a
    process of some 100 MB on the Ansible server. Default: forks of the checkout's
    ansible.cfg; without it, 10 for each core of the server and one for each 100 MiB of
    its available memory, whichever is less, at least 5 and at most 100 (8 with a
    bastion in between)."""
    strategy: Annotated[
        Literal["configured", "auto", "linear", "k8s_linear", "mitogen_linear"],
        CHANGEABLE,
    ] = "configured"
    """How Ansible works through a play. linear: Ansible's own way. k8s_linear: the
    same, without a process for each skipped task, include and local action.
    mitogen_linear: k8s_linear with mitogen's connections, if the Ansible server has a
    mitogen that is known to work with its ansible-core. configured: the strategy of the
    server's own Ansible configuration; without one, linear. auto: the same, but without
    one mitogen_linear. Default: configured."""
    resolve_downloads: Annotated[fields.Flag, CHANGEABLE] = True
    """Evaluate kubespray's list of downloads once in a run, before it. Otherwise each
    task that names a part of it evaluates it again for each host."""
    allow_unknown_release: Annotated[fields.Flag, CHANGEABLE] = False
    """Go on with a kubespray whose release this driver does not know. Default: refuse
    it, and name the releases that are known."""


class NodeGroup(Login):
    """The VMs of one role, found in the Heat stack by the names of their ports."""

    ignored: ClassVar[Mapping[str, str]] = {
        "vdu_id": "the names of the ports, and aspect_id, tell which VMs are meant"
    }

    aspect_id: Annotated[fields.OptionalName, _IN_THE_STACK] = None
    """Name of the Heat group (AutoScalingGroup or ResourceGroup) that holds the VMs;
    the same as the scaling aspect. Without it, or when there is no such resource, the
    whole stack is searched."""
    ssh_cp: Annotated[fields.Name, _IN_THE_STACK] = Field(alias="ssh_cp_name")
    """Heat resource (port or floating IP) with the address for SSH."""
    nic_cp: Annotated[fields.OptionalName, _IN_THE_STACK] = Field(
        default=None, alias="nic_cp_name"
    )
    """Heat resource (port) whose address the node uses in the cluster. Default: that of
    ssh_cp_name, or the port behind it if it is a floating IP."""
    username: Annotated[fields.Name, CHANGEABLE]
    """User name on the VMs; needs sudo."""
    password: _Password = None
    private_key: _PrivateKey = None
    private_key_passphrase: Passphrase = None
    host_keys: Annotated[HostKeys, CHANGEABLE] = Field(
        default=(),
        description=f"List of SSH host keys of these VMs. Of each VM: {ABOUT_HOST_KEY}",
    )
    node_labels: Annotated[tuple[fields.Label, ...], _LABELS, _LABELLED] = ()
    """List of labels for the nodes, each key=value."""
    node_taints: Annotated[tuple[fields.Taint, ...], _TAINTS, _LABELLED] = ()
    """List of taints for the nodes, each key=value:effect; effects are NoSchedule,
    PreferNoSchedule and NoExecute."""
    compute_host_label: Annotated[fields.OptionalLabelKey, _LABELS, _LABELLED] = None
    """Key of a label, such as CIS-node, that tells each node's compute host: its name
    in Nova or, where the VIM's user may not see that, Nova's hostId, which is the same
    for all VMs of a project on one host. Default: no such label."""

    @property
    def accepted_keys(self) -> tuple[str, ...]:
        """Host keys of the VMs; any key if there are none."""
        return self.host_keys


class WorkerAspect(Structure):
    """The workers of one scaling aspect, with labels and taints of their own."""

    aspect_id: fields.Name
    """Name of the Heat group that holds the VMs; the same as the scaling aspect."""
    ssh_cp: fields.OptionalName = Field(default=None, alias="ssh_cp_name")
    """Heat resource with the address for SSH. Default: worker_node's."""
    nic_cp: fields.OptionalName = Field(default=None, alias="nic_cp_name")
    """Heat resource with the address in the cluster. Default: worker_node's."""
    node_labels: tuple[fields.Label, ...] = ()
    """List of further labels for the nodes, each key=value; of a key that worker_node
    has too, this one counts."""
    node_taints: tuple[fields.Taint, ...] = ()
    """List of further taints for the nodes, each key=value:effect."""


class WorkerGroup(NodeGroup):
    """The worker VMs, of one scaling aspect or of several."""

    aspects: Annotated[tuple[WorkerAspect, ...], _LABELS, _TAINTS, _LABELLED] = ()
    """List of scaling aspects of workers that have labels and taints of their own;
    their login is worker_node's. The workers are theirs and those of
    worker_node.aspect_id."""

    def aspect(self, aspect_id: str) -> WorkerAspect | None:
        """The aspect of this id, if it has labels of its own."""
        return next((a for a in self.aspects if a.aspect_id == aspect_id), None)


class ControlPlaneGroup(NodeGroup):
    """The VMs of the control plane, and the cluster's networks."""

    ignored: ClassVar[Mapping[str, str]] = {
        **NodeGroup.ignored,
        **dict.fromkeys(
            ("cluster_cp_name", "cluster_fip_name"),
            "the API's address is the load balancer's, or else the control plane's",
        ),
    }

    pod_cidr: Annotated[fields.OptionalNetwork, SET_AT_CREATION] = Field(
        default=None,
        description="Network for pods, of the family that address_family names. "
        f"Default: kubespray's, {' or '.join(network_plugins.PODS.values())}.",
    )
    service_cidr: Annotated[fields.OptionalNetwork, SET_AT_CREATION] = Field(
        default=None,
        alias="cluster_cidr",
        description="Network for services, of the same family. "
        f"Default: kubespray's, {' or '.join(network_plugins.SERVICES.values())}.",
    )


class Proxy(Structure):
    """The HTTP proxy through which the nodes reach the outer world."""

    http_proxy: fields.OptionalProxyUrl = None
    """URL of the proxy for http; may hold credentials."""
    https_proxy: fields.OptionalProxyUrl = None
    """URL of the proxy for https; may hold credentials."""
    no_proxy: fields.ListOfNames = ()
    """Addresses, networks and names to be reached without the proxy, separated by
    commas; the cluster's own are added."""
    node_cidr: fields.OptionalNetwork = Field(default=None, alias="k8s_node_cidr")
    """Network of the nodes; reached without the proxy."""


class LoadBalancer(Login):
    """The VM in front of the cluster and the script that sets it up."""

    ssh_cp: Annotated[fields.Name, _IN_THE_STACK] = Field(
        alias="ssh_cp_name",
        description="Heat resource (port or floating IP) with the address for SSH. "
        "{}, as in the specification's sample, stands for {} in a stack that has no "
        "resource of that name.".format(*SPECIFIED_BALANCER),
    )
    nic_cp: Annotated[fields.OptionalName, _IN_THE_STACK] = Field(
        default=None, alias="nic_cp_name"
    )
    """Heat resource (port) with the address that the nodes use. Default: that of
    ssh_cp_name, or the port behind it if it is a floating IP."""
    username: Annotated[fields.Name, CHANGEABLE] = Field(alias="ssh_username")
    """User name on the load balancer; needs sudo."""
    password: _Password = Field(
        default=None,
        alias="ssh_password",
        description=_ABOUT_LOGIN.format(key="ssh_private_key"),
    )
    private_key: _PrivateKey = Field(default=None, alias="ssh_private_key")
    private_key_passphrase: Passphrase = Field(
        default=None, alias="ssh_private_key_passphrase"
    )
    host_key: Annotated[OptionalHostKey, CHANGEABLE] = Field(
        default=None,
        alias="ssh_host_key",
        description=f"SSH host key of the load balancer: {ABOUT_HOST_KEY}",
    )
    script_path: Annotated[fields.PackagePath, CHANGEABLE]
    """Path of the load balancer's script in the VNF package."""
    api_port: Annotated[
        fields.Port, Fixed("the nodes and the VIM reach the API there")
    ] = API_PORT
    """Port at which the load balancer offers the Kubernetes API."""

    @property
    def options(self) -> tuple[InstallOption, ...]:
        """Those of the script's verb ``install`` that are attributes."""
        differs = "the API is at port {actual}, not at {wanted}"
        return (InstallOption("api_port", self.api_port, differs),)

    def script_problem(self, script: bytes | None) -> str:
        """What is wrong with the VNF package's script; "" for nothing.

        :param script: None if the package has no such file.
        """
        attribute = "external_lb_param.script_path"
        if script is None:
            return f"{attribute}: the VNF package has no file {self.script_path}"
        why = install(self.options).problem(script)
        return f"{attribute}: {self.script_path}: {why}" if why else ""


class ClusterRequest(Structure):
    """The parameters of a cluster, made by :class:`.reader.RequestReader`."""

    ignored: ClassVar[Mapping[str, str]] = {
        "script_path": "kubespray takes the place of the installation script",
        "helm_installation_script_path": "Helm comes with kubespray: set cluster.helm",
        "storage_server": "storage is set with cluster.storage",
        "pv_registration_params": "storage is set with cluster.storage",
    }

    profile: Annotated[
        fields.OptionalProfile, Fixed("what it stands for holds for life")
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
    address_family: Annotated[Literal["ipv4", "ipv6"], SET_AT_CREATION] = "ipv4"
    """Which of its addresses a node uses in the cluster: ipv4 or ipv6. Logins take the
    same family where a port has both. Default: ipv4."""
    cluster: Cluster = Field(default_factory=Cluster)
    """What is installed: versions, network plugin, registries, storage, authentication,
    add-ons. All of it has defaults."""
    private_registries: Annotated[
        tuple[PrivateRegistry, ...], Sets(*REGISTRY_VARIABLES, value=None), CHANGEABLE
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
        fields.Name | None, Fixed("the cluster is registered under it")
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
    expansion: ResolvedProfile | None = Field(default=None, exclude=True)
    """What came of the profile."""
    operators_server: bool = Field(default=False, exclude=True)
    """Whether the Ansible server is Tacker's operator's."""

    @property
    def pod_cidr(self) -> network_plugins.Network | None:
        """The pods' network; None for kubespray's default."""
        return self.control_plane.pod_cidr

    @property
    def service_cidr(self) -> network_plugins.Network | None:
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
    def means(self) -> Means:
        """What makes playbook runs faster."""
        return Means(self.ansible.strategy, self.ansible.resolve_downloads)

    @property
    def container_engine(self) -> str:
        """The nodes' container engine: containerd, crio or docker."""
        return self.cluster.container_manager or "containerd"

    @property
    def wants_compute_hosts(self) -> bool:
        """Whether nodes get a label with their compute host."""
        return any(group.compute_host_label for group in self.node_groups.values())

    @property
    def node_groups(self) -> Mapping[Role, NodeGroup]:
        """The structures with the VMs of nodes."""
        found = {Role.CONTROL_PLANE: self.control_plane, Role.WORKER: self.workers}
        return {role: group for role, group in found.items() if group}

    @property
    def vms(self) -> Mapping[Role, NodeGroup | LoadBalancer]:
        """The structures with VMs, by role."""
        vms = {**self.node_groups, Role.LOAD_BALANCER: self.load_balancer}
        return {role: group for role, group in vms.items() if group}

    @property
    def server_account(self) -> Account:
        """The login on the Ansible server."""
        account = self.ansible.account("ansible")
        if self.operators_server and account.private_key:
            key = replace(account.private_key, attribute="ansible_private_key_file")
            return replace(account, private_key=key)
        return account

    @property
    def bastion_account(self) -> Account | None:
        """The login on the bastion, if there is one."""
        return self.bastion.account("bastion") if self.bastion else None

    def account(self, role: Role) -> Account:
        """The login on the VMs of a role.

        :raises LookupError: the parameters have no load balancer.
        """
        return self.vms[role].account(ROLES[role].parameter)

    def node_accounts(self) -> tuple[Account, ...]:
        """The logins on the VMs of nodes."""
        return tuple(self.account(role) for role in self.node_groups)

    def accounts(self) -> tuple[Account, ...]:
        """All logins: the Ansible server's, those of the VMs by role, the bastion's."""
        vms, bastion = map(self.account, self.vms), self.bastion_account
        return (self.server_account, *vms, *([bastion] if bastion else []))

    def secrets(self) -> tuple[str, ...]:
        """All secret texts of the parameters, for redaction.

        A password that is also a user name is left out: stars in the user name's place
        would reveal that the two are the same. A user name that looks like a token is
        no name. Each line of a private key is a secret; the content of a key file is
        not known here. Texts that are no secrets may have URLs with logins.
        """
        texts = set(text.in_variables(self.kubespray_vars))
        texts.update(text.in_urls(self.model_dump()))
        texts.update(self._tokens())
        texts.update(secret.get_secret_value() for secret in self.resolved)

        def note(place: Place, secret: str) -> str:
            texts.update(() if place.is_variable else place.form.parts(secret))
            return secret

        secrets.changed(ClusterRequest, self, note)
        names = {account.username for account in self.accounts()}
        texts -= {name for name in names if not text.is_token(name)}
        return tuple(sorted(texts))

    def _tokens(self) -> Iterator[str]:
        """User names that registries and OpenStack take for tokens."""
        names = [one.username for one in self.cluster.registries]
        names += [one.username for one in self.private_registries]
        openstack = self.cluster.openstack
        names += [openstack.username] if openstack else []
        return (name for name in names if name and text.is_token(name))
