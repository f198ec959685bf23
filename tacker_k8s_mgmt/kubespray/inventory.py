# SPDX-License-Identifier: Apache-2.0
"""The inventory on the Ansible server, and files that kubespray writes on nodes.

The inventory is always rendered completely, never edited. It has the nodes' passwords,
so the file's mode must be 0600. The logins of existing workers are stored here only: a
later operation may have other credentials, which are for its new VMs.

The files on nodes are those of control planes that the driver reads.
"""

import posixpath
from collections.abc import Callable, Container, Mapping, Sequence
from dataclasses import replace
from typing import Any

import yaml
from pydantic import SecretStr

from tacker_k8s_mgmt.errors import ClusterError
from tacker_k8s_mgmt.model import untrusted
from tacker_k8s_mgmt.model.nodes import ROLES, Node, Role, of_role
from tacker_k8s_mgmt.model.yaml_text import SafeLoader, parse_yaml
from tacker_k8s_mgmt.request.accounts import Account, PrivateKey, ssh_common_args
from tacker_k8s_mgmt.request.installation import WorkerGroup
from tacker_k8s_mgmt.request.reader import ClusterRequest

FILE_NAME = "hosts.yaml"
_HEADER = "# Written by tacker-k8s-mgmt. Changes are lost, but for workers' logins.\n"
_TEMPLATE_MARKS = ("{{", "{%", "{#")
_LOGIN = (
    "ansible_user",
    "ansible_password",
    "ansible_ssh_private_key_file",
    "ansible_become_password",
)


class _Unsafe(str):
    """Text that is no template for Ansible."""


class _Dumper(yaml.SafeDumper):
    def ignore_aliases(self, data: Any) -> bool:
        return True


class _Loader(SafeLoader):
    pass


_Dumper.add_representer(
    _Unsafe,
    lambda dumper, text: dumper.represent_scalar("!unsafe", str(text), style="'"),
)
_Loader.add_constructor("!unsafe", lambda _, node: str(node.value))


def render(
    nodes: Sequence[Node],
    params: ClusterRequest,
    *,
    previous: str = "",
    renewed: Container[str] = (),
    without_etcd: Container[str] = (),
) -> str:
    """The inventory as YAML, with the groups of kubespray since v2.16.

    The nodes keep their order: kubespray's leading control plane is the first one.

    :param previous: the present inventory. Its nodes keep their login if their VM is
        the same, but for control planes.
    :param renewed: names of nodes that get the parameters' login nevertheless.
    :param without_etcd: names of control planes whose etcd member is gone already.
    :raises ClusterError: a compute host for a label is not known.
    """
    _refuse_unknown_hosts(nodes, params)
    kept = kept_logins(previous) if previous else {}

    def login(node: Node) -> Mapping[str, str]:
        if not node.is_control_plane and node.name not in renewed:
            return kept.get(node.server_id) or _login(node, params)
        return _login(node, params)

    groups = {
        group: [node.name for node in of_role(nodes, role)]
        for role, spec in ROLES.items()
        for group in spec.groups
    }
    groups["etcd"] = [name for name in groups["etcd"] if name not in without_etcd]
    # kubespray's playbooks name it, whether a role has it or not.
    groups.setdefault("calico_rr", [])
    document = {
        "all": {
            "hosts": {
                node.name: _host_vars(node, params, login(node)) for node in nodes
            },
            **_group_vars(params),
            "children": {
                **{
                    group: {"hosts": {name: {} for name in names}}
                    for group, names in groups.items()
                },
                "k8s_cluster": {
                    "children": {group: {} for group in groups if group != "etcd"},
                    # Not in `all`: localhost would inherit it, and kubespray's local
                    # tasks need no root.
                    "vars": {"ansible_become": True},
                },
            },
        }
    }
    return _HEADER + yaml.dump(
        document, Dumper=_Dumper, sort_keys=False, width=float("inf")
    )


def _refuse_unknown_hosts(nodes: Sequence[Node], params: ClusterRequest) -> None:
    groups = params.node_groups
    unknown = [
        node
        for node in nodes
        if groups[node.role].compute_host_label and not node.compute_host
    ]
    if unknown:
        vms = ", ".join(f"{node.server_id} ({node.name})" for node in unknown)
        raise ClusterError(
            detail="compute_host_label: Nova does not tell on which compute host these "
            f"VMs run: {vms}.",
            hint="Look at them with `openstack server show`, as the VIM's user.",
        )


def parse(text: str) -> tuple[Node, ...]:
    """The nodes of a rendered inventory, in its order.

    :raises ClusterError: the text is no inventory from :func:`render`.
    """
    nodes = _nodes_in(text)
    if nodes is None:
        raise ClusterError(
            detail="The inventory on the Ansible server is not as it was written.",
            hint=f"Restore {FILE_NAME} in the cluster's directory.",
        )
    return tuple(node for node, _ in nodes)


def kept_logins(text: str) -> dict[str, Mapping[str, str]]:
    """The login variables by server id, without control planes.

    :returns: nothing of a text that is not from :func:`render`.
    """
    return {
        node.server_id: {name: str(host[name]) for name in _LOGIN if name in host}
        for node, host in _nodes_in(text) or ()
        if not node.is_control_plane
    }


def account(
    wanted: Account, login: Mapping[str, str], read: Callable[[str], str | None]
) -> Account:
    """The account with which Ansible logs in to a node.

    :param wanted: the request's.
    :param login: what :func:`kept_logins` returns of the node.
    :param read: returns the text of a file in the cluster's directory.
    """
    secret = login.get("ansible_password") or login.get("ansible_become_password")
    key = wanted.private_key
    name = posixpath.basename(login.get("ansible_ssh_private_key_file", ""))
    if not name:
        key = None
    elif key is None or key.file_name != name:
        key = PrivateKey.kept(name, read)
    return replace(
        wanted,
        username=login.get("ansible_user", wanted.username),
        password=SecretStr(secret) if secret else None,
        private_key=key,
    )


def _nodes_in(text: str) -> tuple[tuple[Node, Mapping[str, Any]], ...] | None:
    """The nodes with their variables; None if the text is not from :func:`render`."""
    # No error is chained from here: the parser's errors quote the text with passwords.
    try:
        group = parse_yaml(text, _Loader)["all"]
        roles = {
            name: role
            for role, spec in ROLES.items()
            if spec.groups and role is not Role.CONTROL_PLANE
            for name in group["children"][spec.groups[0]]["hosts"]
        }
        return tuple(
            (_node(name, host, roles.get(name, Role.CONTROL_PLANE)), host)
            for name, host in group["hosts"].items()
        )
    except (yaml.YAMLError, LookupError, TypeError, ValueError, AttributeError):
        return None


def _node(name: str, host: Mapping[str, Any], role: Role) -> Node:
    node = Node(
        name=name,
        role=role,
        server_id=host["tacker_server_id"],
        ssh_address=host["ansible_host"],
        address=host["ip6"] if "ip6" in host else host["ip"],
        etcd_member_name=host.get("etcd_member_name", ""),
        aspect_id=host.get("tacker_aspect_id", ""),
        compute_host=host.get("tacker_compute_host", ""),
    )
    return untrusted.checked(node)


def _host_vars(
    node: Node, params: ClusterRequest, login: Mapping[str, str]
) -> dict[str, Any]:
    # All releases that can make a cluster without IPv4 have ip6.
    suffix = "6" if params.address_family == "ipv6" else ""
    host = {
        "ansible_host": node.ssh_address,
        f"ip{suffix}": node.address,
        f"access_ip{suffix}": node.address,
        "etcd_member_name": node.etcd_member_name,
        **login,
        **kubelet_vars(node, params),
        "tacker_server_id": node.server_id,
        "tacker_aspect_id": node.aspect_id,
        "tacker_compute_host": node.compute_host,
    }
    return {name: _inert(value) for name, value in host.items() if value}


def kubelet_vars(node: Node, params: ClusterRequest) -> dict[str, Any]:
    """The kubelet's registration: labels, taints and provider id."""
    group = params.node_groups[node.role]
    own = group.aspect(node.aspect_id) if isinstance(group, WorkerGroup) else None
    texts = (*group.node_labels, *(own.node_labels if own else ()))
    labels = {key: value for key, _, value in (text.partition("=") for text in texts)}
    if group.compute_host_label and node.compute_host:
        labels[group.compute_host_label] = node.compute_host
    taints = [*group.node_taints, *(own.node_taints if own else ())]
    openstack = params.cluster.openstack
    # The cloud controller would not find the server by the node's name.
    provider = {"providerID": f"openstack:///{node.server_id}"}
    return {
        "node_labels": labels,
        "node_taints": list(dict.fromkeys(taints)),
        "kubelet_config_extra_args": provider
        if openstack and openstack.cloud_controller
        else {},
    }


def _group_vars(params: ClusterRequest) -> dict[str, Any]:
    bastion, account = params.bastion, params.bastion_account
    if bastion is None or account is None or not bastion.carries_playbooks:
        return {}
    arguments = ssh_common_args(bastion, account, params.ansible.directory)
    return {"vars": {"ansible_ssh_common_args": _text(arguments)}}


def _login(node: Node, params: ClusterRequest) -> dict[str, str]:
    account = params.account(node.role)
    login = {"ansible_user": account.username}
    password = account.password.get_secret_value() if account.password else ""
    if account.private_key:
        path = f"{params.ansible.directory}/{account.private_key.file_name}"
        login["ansible_ssh_private_key_file"] = path
    else:
        login["ansible_password"] = password
    return login | ({"ansible_become_password": password} if password else {})


def _text(value: str) -> str:
    return _Unsafe(value) if any(mark in value for mark in _TEMPLATE_MARKS) else value


def _inert(value: Any) -> Any:
    """A variable without templates; names of compute hosts and aspects may have any."""
    if isinstance(value, dict):
        return {name: _inert(inner) for name, inner in value.items()}
    return _text(value) if isinstance(value, str) else value


ADMIN_CONFIG = "/etc/kubernetes/admin.conf"
ETCD_ENV = "/etc/etcd.env"
