"""``additionalParams.k8s_cluster_installation_param`` as a typed, checked value.

The border has the names of the specification's attribute table and of the kubeadm
driver's user guide that it builds on; inside we say control plane and worker. Every
field's description is the text of the user documentation.
"""

import ipaddress
import re
from collections.abc import Iterator, Mapping
from typing import Any, ClassVar
from urllib.parse import unquote, urlsplit

from pydantic import Field, SecretStr, ValidationError

from tacker_k8s_mgmt.cluster import checks, fields, kubespray, spelling
from tacker_k8s_mgmt.cluster.spelling import Reading, Structure
from tacker_k8s_mgmt.errors import ParamError

ATTRIBUTE = "k8s_cluster_installation_param"
API_PORT = 6443
SSH_PORT = 22

_BECAUSE = {
    "ansible": "it names the Ansible server, without which nothing can be installed",
}
_SECRET_VARIABLE = re.compile(
    r"(pass|passwd|password|secret|token|credentials?|(private|api|access)_?key)$", re.I
)


class AnsibleServer(Structure):
    """The pre-built server on which kubespray lies and from which it is run."""

    host: fields.Host = Field(
        alias="ip_address", description="IP address or host name of the Ansible server."
    )
    port: fields.Port = Field(
        default=SSH_PORT, description="SSH port of the Ansible server."
    )
    username: fields.Name = Field(description="User name on the Ansible server.")
    password: fields.Secret = Field(description="Password of that user.")
    kubespray_root: fields.AbsolutePath = Field(
        alias="kubespray_root_path",
        description="Absolute path of the kubespray checkout on the Ansible server.",
    )
    venv: fields.OptionalAbsolutePath = Field(
        default=None,
        alias="venv_path",
        description="Absolute path of the Python virtual environment that holds the "
        "ansible-core this kubespray wants. Without it, the one on the user's PATH is "
        "taken.",
    )
    directory: fields.OwnedDirectory = Field(
        alias="transferring_inventory_path",
        description="Absolute path of the directory for this cluster's inventory, "
        "variables and playbook runs. It is made, belongs to this VNF alone and is "
        "deleted when the VNF is terminated.",
    )


class NodeGroup(Structure):
    """The VMs of one role, found in the Heat stack by the names of their ports."""

    aspect_id: fields.OptionalName = Field(
        default=None,
        description="Name of the Heat group (AutoScalingGroup or ResourceGroup) that "
        "holds the VMs; the same as the scaling aspect. Without it, or when there is "
        "no such resource, the whole stack is searched.",
    )
    ssh_cp: fields.Name = Field(
        alias="ssh_cp_name",
        description="Heat resource (port or floating IP) with the address for SSH.",
    )
    nic_cp: fields.Name = Field(
        alias="nic_cp_name",
        description="Heat resource (port) whose address the node uses in the cluster.",
    )
    username: fields.Name = Field(description="User name on the VMs; needs sudo.")
    password: fields.Secret = Field(description="Password of that user.")


class ControlPlaneGroup(NodeGroup):
    """The VMs of the control plane, and the cluster's networks."""

    ignored: ClassVar[Mapping[str, str]] = {
        "cluster_cp_name": "the API's address is the load balancer's, or else the "
        "control plane's",
        "cluster_fip_name": "the API's address is the load balancer's, or else the "
        "control plane's",
    }

    pod_cidr: fields.OptionalNetwork4 = Field(
        default=None,
        description="IPv4 network for pods. "
        f"Default: kubespray's, {kubespray.DEFAULT_PODS}.",
    )
    service_cidr: fields.OptionalNetwork4 = Field(
        default=None,
        alias="cluster_cidr",
        description="IPv4 network for services. "
        f"Default: kubespray's, {kubespray.DEFAULT_SERVICES}.",
    )


class Proxy(Structure):
    """The HTTP proxy through which the nodes reach the outer world."""

    http_proxy: fields.OptionalProxyUrl = Field(
        default=None, description="URL of the proxy for http; may hold credentials."
    )
    https_proxy: fields.OptionalProxyUrl = Field(
        default=None, description="URL of the proxy for https; may hold credentials."
    )
    no_proxy: fields.ListOfNames = Field(
        default=(),
        description="Addresses, networks and names to be reached without the proxy, "
        "separated by commas; the cluster's own are added.",
    )
    node_cidr: fields.OptionalNetwork = Field(
        default=None,
        alias="k8s_node_cidr",
        description="Network of the nodes; reached without the proxy.",
    )


class LoadBalancer(Structure):
    """The VM in front of the cluster and the script that sets it up."""

    ssh_cp: fields.Name = Field(
        alias="ssh_cp_name",
        description="Heat resource (port or floating IP) with the address for SSH.",
    )
    nic_cp: fields.OptionalName = Field(
        default=None,
        alias="nic_cp_name",
        description="Heat resource (port) with the address that the nodes use. "
        "Default: that of ssh_cp_name.",
    )
    username: fields.Name = Field(
        alias="ssh_username", description="User name on the load balancer; needs sudo."
    )
    password: fields.Secret = Field(
        alias="ssh_password", description="Password of that user."
    )
    script_path: fields.PackagePath = Field(
        description="Path of the load balancer's script in the VNF package."
    )
    api_port: fields.Port = Field(
        default=API_PORT,
        description="Port at which the load balancer offers the Kubernetes API.",
    )


class InstallParams(Structure):
    """How a cluster is to be installed; made by :func:`parse`."""

    ignored: ClassVar[Mapping[str, str]] = {
        "script_path": "kubespray takes the place of the installation script",
        "helm_installation_script_path": "Helm comes with kubespray: set "
        "kubespray_vars.helm_enabled",
        "private_registry_connection_info": "registries are set with kubespray_vars",
        "storage_server": "storage is set with kubespray_vars",
        "pv_registration_params": "storage is set with kubespray_vars",
    }

    ansible: AnsibleServer = Field(
        description="The Ansible server and what lies where on it."
    )
    control_plane: ControlPlaneGroup = Field(
        alias="master_node", description="The VMs of the control plane."
    )
    workers: NodeGroup = Field(alias="worker_node", description="The worker VMs.")
    proxy: Proxy | None = Field(default=None, description="The nodes' HTTP proxy.")
    load_balancer: LoadBalancer | None = Field(
        default=None,
        alias="external_lb_param",
        description="The external load balancer; without it, none is set up.",
    )
    vim_name: fields.Name | None = Field(
        default=None,
        description="Name under which the cluster is registered as a VIM in Tacker.",
    )
    kubespray_vars: dict[str, Any] = Field(
        default_factory=dict,
        repr=False,
        description="Further kubespray variables, handed on as they are.",
    )
    warnings: tuple[str, ...] = Field(
        default=(), exclude=True, description="What was taken otherwise than written."
    )

    @property
    def pod_cidr(self) -> ipaddress.IPv4Network | None:
        """The pods' network, None for kubespray's own."""
        return self.control_plane.pod_cidr

    @property
    def service_cidr(self) -> ipaddress.IPv4Network | None:
        """The services' network, None for kubespray's own."""
        return self.control_plane.service_cidr

    def secrets(self) -> tuple[str, ...]:
        """Every secret text in the parameters, for redaction.

        A password that is also a user name here is left out: that text is shown
        anyway, and stars in its place would give away that the two are the same.
        """
        holders = (self.ansible, self.control_plane, self.workers, self.load_balancer)
        accounts = [holder for holder in holders if holder]
        found = {account.password.get_secret_value() for account in accounts}
        if self.proxy:
            found.update(_url_secrets(self.proxy.http_proxy))
            found.update(_url_secrets(self.proxy.https_proxy))
        found.update(_secret_leaves(self.kubespray_vars, secret=False))
        found.difference_update(account.username for account in accounts)
        return tuple(sorted(found))


def parse(additional_params: Mapping[str, Any] | None) -> InstallParams | None:
    """Read and check the parameters of an instantiate request.

    :param additional_params: the request's ``additionalParams``, as sent by the user or
        as shown by Tacker's GET view.
    :returns: None if the request asks nothing of this driver.
    :raises ParamError: with every problem at once.
    """
    given = additional_params or {}
    spellings = (ATTRIBUTE, spelling.camel(ATTRIBUTE))
    raw = next((given[name] for name in spellings if name in given), None)
    if raw is None:
        return None
    if not isinstance(raw, Mapping):
        raise ParamError(["the attribute itself must be a structure"])
    reading = spelling.read(InstallParams, raw)
    spelling.restore_keys(reading, "kubespray_vars")
    params, mistakes = _validated(reading)
    problems = [*reading.problems, *mistakes, *checks.problems(reading)]
    if params is None or problems:
        raise ParamError(problems)
    return params


def _validated(reading: Reading) -> tuple[InstallParams | None, list[str]]:
    warnings = (*reading.warnings, *checks.warnings(reading))
    try:
        values = {**reading.values, "warnings": warnings}
        return InstallParams.model_validate(values), []
    except ValidationError as error:
        # The details alone leave this block: the exception holds the user's secrets.
        details = error.errors(include_url=False, include_input=False)
    return None, [reading.sentence(detail, _BECAUSE) for detail in details]


def _url_secrets(url: SecretStr | None) -> Iterator[str]:
    password = urlsplit(url.get_secret_value()).password if url else None
    if password:
        yield from (password, unquote(password))


def _secret_leaves(value: Any, secret: bool) -> Iterator[str]:
    if isinstance(value, Mapping):
        for name, inner in value.items():
            named_so = _SECRET_VARIABLE.search(str(name)) is not None
            yield from _secret_leaves(inner, secret or named_so)
    elif isinstance(value, list):
        for inner in value:
            yield from _secret_leaves(inner, secret)
    elif secret and isinstance(value, str) and value:
        yield value
