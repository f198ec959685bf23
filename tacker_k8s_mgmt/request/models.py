# SPDX-License-Identifier: Apache-2.0
"""The structures of the parameters.

The docstring of each field is its text in the user documentation.
"""

from collections.abc import Mapping
from typing import Annotated, ClassVar

from pydantic import Field

from tacker_k8s_mgmt.model import networks
from tacker_k8s_mgmt.request import field_types, option_types
from tacker_k8s_mgmt.request import host_keys as public_keys
from tacker_k8s_mgmt.request.accounts import SSH_PORT
from tacker_k8s_mgmt.request.key_aliases import Structure
from tacker_k8s_mgmt.request.option_metadata import (
    BUILT_ON,
    CHANGEABLE,
    Becomes,
    Fixed,
)

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
    field_types.OptionalSecret,
    CHANGEABLE,
    Field(description=_ABOUT_LOGIN.format(key="private_key")),
]
_PrivateKey = Annotated[
    field_types.OptionalPrivateKey,
    CHANGEABLE,
    Field(
        description="SSH private key of that user: its text (RSA, ECDSA or Ed25519, in "
        "OpenSSH's or a PEM format), or the path of a file with it on Tacker's "
        "conductor, below the directory that the option [k8s_mgmt] key_directory "
        "names: absolute, or relative to that directory and beginning with ./."
    ),
]
_Passphrase = Annotated[
    field_types.OptionalSecret,
    CHANGEABLE,
    Field(description="Passphrase of that key, if it has one."),
]

_IN_THE_STACK = Fixed("it names what is in the Heat stack")
_LABELLED = Fixed(
    "nodes that are there would keep theirs; modify the VNF instance's metadata"
)
# Host variables of the inventory, not extra variables.
_LABELS = Becomes("node_labels", value=None)
_TAINTS = Becomes("node_taints", value=None)


class AnsibleServer(Structure):
    """The pre-built server on which kubespray lies and from which it is run."""

    host: Annotated[field_types.Host, CHANGEABLE] = Field(alias="ip_address")
    """IP address or host name of the Ansible server."""
    port: Annotated[field_types.Port, CHANGEABLE] = SSH_PORT
    """SSH port of the Ansible server."""
    username: Annotated[field_types.Name, CHANGEABLE]
    """User name on the Ansible server."""
    password: _Password = None
    private_key: _PrivateKey = None
    private_key_passphrase: _Passphrase = None
    host_key: Annotated[public_keys.OptionalHostKey, CHANGEABLE] = Field(
        default=None,
        description=f"SSH host key of that server: {public_keys.ABOUT}",
    )
    kubespray_root: Annotated[field_types.AbsolutePath, CHANGEABLE] = Field(
        alias="kubespray_root_path"
    )
    """Absolute path of the kubespray checkout on the Ansible server."""
    venv: Annotated[field_types.OptionalAbsolutePath, CHANGEABLE] = Field(
        default=None, alias="venv_path"
    )
    """Absolute path of the Python virtual environment that holds the ansible-core this
    kubespray wants. Without it, the one on the user's PATH is taken."""
    directory: Annotated[
        field_types.OwnedDirectory, Fixed("the cluster's inventory lies there")
    ] = Field(alias="transferring_inventory_path")
    """Absolute path of the directory for this cluster's inventory, variables and
    playbook runs. It is made, belongs to this VNF alone and is deleted when the VNF is
    terminated."""
    forks: Annotated[field_types.OptionalForks, CHANGEABLE] = None
    """How many hosts Ansible works on at the same time, from 1 to 200: each takes a
    process of some 100 MB on the Ansible server. Default: forks of the checkout's
    ansible.cfg; without it, 10 for each core of the server and one for each 100 MiB of
    its available memory, whichever is less, at least 5 and at most 100 (8 with a
    bastion in between)."""
    allow_unknown_release: Annotated[field_types.Flag, CHANGEABLE] = False
    """Go on with a kubespray whose release this driver does not know. Default: refuse
    it, and name the releases that are known."""


class NodeGroup(Structure):
    """The VMs of one role, found in the Heat stack by the names of their ports."""

    ignored: ClassVar[Mapping[str, str]] = {
        "vdu_id": "the names of the ports, and aspect_id, tell which VMs are meant"
    }

    aspect_id: Annotated[field_types.OptionalName, _IN_THE_STACK] = None
    """Name of the Heat group (AutoScalingGroup or ResourceGroup) that holds the VMs;
    the same as the scaling aspect. Without it, or when there is no such resource, the
    whole stack is searched."""
    ssh_cp: Annotated[field_types.Name, _IN_THE_STACK] = Field(alias="ssh_cp_name")
    """Heat resource (port or floating IP) with the address for SSH."""
    nic_cp: Annotated[field_types.OptionalName, _IN_THE_STACK] = Field(
        default=None, alias="nic_cp_name"
    )
    """Heat resource (port) whose address the node uses in the cluster. Default: that of
    ssh_cp_name, or the port behind it if it is a floating IP."""
    username: Annotated[field_types.Name, CHANGEABLE]
    """User name on the VMs; needs sudo."""
    password: _Password = None
    private_key: _PrivateKey = None
    private_key_passphrase: _Passphrase = None
    host_keys: Annotated[public_keys.HostKeys, CHANGEABLE] = Field(
        default=(),
        description="List of SSH host keys of these VMs. Of each VM: "
        f"{public_keys.ABOUT}",
    )
    node_labels: Annotated[tuple[option_types.Label, ...], _LABELS, _LABELLED] = ()
    """List of labels for the nodes, each key=value."""
    node_taints: Annotated[tuple[option_types.Taint, ...], _TAINTS, _LABELLED] = ()
    """List of taints for the nodes, each key=value:effect; effects are NoSchedule,
    PreferNoSchedule and NoExecute."""
    compute_host_label: Annotated[option_types.OptionalLabelKey, _LABELS, _LABELLED] = (
        None
    )
    """Key of a label, such as CIS-node, that tells each node's compute host: its name
    in Nova or, where the VIM's user may not see that, Nova's hostId, which is the same
    for all VMs of a project on one host. Default: no such label."""


class WorkerAspect(Structure):
    """The workers of one scaling aspect, with labels and taints of their own."""

    aspect_id: field_types.Name
    """Name of the Heat group that holds the VMs; the same as the scaling aspect."""
    ssh_cp: field_types.OptionalName = Field(default=None, alias="ssh_cp_name")
    """Heat resource with the address for SSH. Default: worker_node's."""
    nic_cp: field_types.OptionalName = Field(default=None, alias="nic_cp_name")
    """Heat resource with the address in the cluster. Default: worker_node's."""
    node_labels: tuple[option_types.Label, ...] = ()
    """List of further labels for the nodes, each key=value; of a key that worker_node
    has too, this one counts."""
    node_taints: tuple[option_types.Taint, ...] = ()
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

    pod_cidr: Annotated[field_types.OptionalNetwork, BUILT_ON] = Field(
        default=None,
        description="Network for pods, of the family that address_family names. "
        f"Default: kubespray's, {' or '.join(networks.PODS.values())}.",
    )
    service_cidr: Annotated[field_types.OptionalNetwork, BUILT_ON] = Field(
        default=None,
        alias="cluster_cidr",
        description="Network for services, of the same family. "
        f"Default: kubespray's, {' or '.join(networks.SERVICES.values())}.",
    )


class Proxy(Structure):
    """The HTTP proxy through which the nodes reach the outer world."""

    http_proxy: field_types.OptionalProxyUrl = None
    """URL of the proxy for http; may hold credentials."""
    https_proxy: field_types.OptionalProxyUrl = None
    """URL of the proxy for https; may hold credentials."""
    no_proxy: field_types.ListOfNames = ()
    """Addresses, networks and names to be reached without the proxy, separated by
    commas; the cluster's own are added."""
    node_cidr: field_types.OptionalNetwork = Field(default=None, alias="k8s_node_cidr")
    """Network of the nodes; reached without the proxy."""


class LoadBalancer(Structure):
    """The VM in front of the cluster and the script that sets it up."""

    ssh_cp: Annotated[field_types.Name, _IN_THE_STACK] = Field(
        alias="ssh_cp_name",
        description="Heat resource (port or floating IP) with the address for SSH. "
        "{}, as in the specification's sample, stands for {} in a stack that has no "
        "resource of that name.".format(*SPECIFIED_BALANCER),
    )
    nic_cp: Annotated[field_types.OptionalName, _IN_THE_STACK] = Field(
        default=None, alias="nic_cp_name"
    )
    """Heat resource (port) with the address that the nodes use. Default: that of
    ssh_cp_name, or the port behind it if it is a floating IP."""
    username: Annotated[field_types.Name, CHANGEABLE] = Field(alias="ssh_username")
    """User name on the load balancer; needs sudo."""
    password: _Password = Field(
        default=None,
        alias="ssh_password",
        description=_ABOUT_LOGIN.format(key="ssh_private_key"),
    )
    private_key: _PrivateKey = Field(default=None, alias="ssh_private_key")
    private_key_passphrase: _Passphrase = Field(
        default=None, alias="ssh_private_key_passphrase"
    )
    host_key: Annotated[public_keys.OptionalHostKey, CHANGEABLE] = Field(
        default=None,
        alias="ssh_host_key",
        description=f"SSH host key of the load balancer: {public_keys.ABOUT}",
    )
    script_path: Annotated[field_types.PackagePath, CHANGEABLE]
    """Path of the load balancer's script in the VNF package."""
    api_port: Annotated[
        field_types.Port, Fixed("the nodes and the VIM reach the API there")
    ] = API_PORT
    """Port at which the load balancer offers the Kubernetes API."""
