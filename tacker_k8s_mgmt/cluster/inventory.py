"""The inventory on the Ansible server: where a cluster's names live.

Written whole from values, never edited. The text holds the nodes' passwords, so the
file's mode must be 0600.
"""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import yaml

from tacker_k8s_mgmt.cluster.nodes import Node, Role
from tacker_k8s_mgmt.cluster.params import InstallParams
from tacker_k8s_mgmt.errors import ClusterError

FILE_NAME = "hosts.yaml"
_HEADER = "# Written by tacker-k8s-mgmt; changes made here are lost.\n"
_TEMPLATE_MARKS = ("{{", "{%", "{#")


class _Unsafe(str):
    """Text that Ansible must not take for a template."""


class _Dumper(yaml.SafeDumper):
    def ignore_aliases(self, data: Any) -> bool:
        return True


class _Loader(yaml.SafeLoader):
    pass


_Dumper.add_representer(
    _Unsafe,
    lambda dumper, text: dumper.represent_scalar("!unsafe", str(text), style="'"),
)
_Loader.add_constructor("!unsafe", lambda _, node: str(node.value))


def render(nodes: Sequence[Node], params: InstallParams) -> str:
    """The inventory as YAML, with the groups that kubespray knows since v2.16.

    The order of the nodes is kept: kubespray's leading control plane is the first of
    its group.
    """
    control_planes = [node.name for node in nodes if node.role is Role.CONTROL_PLANE]
    workers = [node.name for node in nodes if node.role is Role.WORKER]
    document = {
        "all": {
            "hosts": {node.name: _host_vars(node, params) for node in nodes},
            "children": {
                "kube_control_plane": _group(control_planes),
                "etcd": _group(control_planes),
                "kube_node": _group(workers),
                "calico_rr": _group(()),
                "k8s_cluster": {
                    "children": {
                        "kube_control_plane": {},
                        "kube_node": {},
                        "calico_rr": {},
                    }
                },
            },
        }
    }
    return _HEADER + yaml.dump(
        document, Dumper=_Dumper, sort_keys=False, width=float("inf")
    )


def parse(text: str) -> tuple[Node, ...]:
    """The nodes of a rendered inventory, in its order.

    :raises ClusterError: if the text is not an inventory of ours.
    """
    nodes = _nodes_in(text)
    if nodes is None:
        raise ClusterError(
            detail="The inventory on the Ansible server is not as it was written.",
            hint=f"Restore {FILE_NAME} in the cluster's directory.",
        )
    return nodes


def _nodes_in(text: str) -> tuple[Node, ...] | None:
    # No error is chained from here: the parser's quote the text, passwords and all.
    try:
        everything = yaml.load(text, Loader=_Loader)["all"]  # noqa: S506
        workers = everything["children"]["kube_node"]["hosts"]
        return tuple(
            Node(
                name=name,
                role=Role.WORKER if name in workers else Role.CONTROL_PLANE,
                server_id=host["tacker_server_id"],
                ssh_address=host["ansible_host"],
                address=host["ip"],
                etcd_member_name=host.get("etcd_member_name", ""),
            )
            for name, host in everything["hosts"].items()
        )
    except (yaml.YAMLError, LookupError, TypeError, AttributeError):
        return None


def _host_vars(node: Node, params: InstallParams) -> dict[str, str]:
    group = params.control_plane if node.role is Role.CONTROL_PLANE else params.workers
    password = _text(group.password.get_secret_value())
    member = (
        {"etcd_member_name": node.etcd_member_name} if node.etcd_member_name else {}
    )
    return {
        "ansible_host": node.ssh_address,
        "ip": node.address,
        "access_ip": node.address,
        **member,
        "ansible_user": _text(group.username),
        "ansible_password": password,
        "ansible_become_password": password,
        "tacker_server_id": node.server_id,
    }


def _text(value: str) -> str:
    return _Unsafe(value) if any(mark in value for mark in _TEMPLATE_MARKS) else value


def _group(names: Iterable[str]) -> Mapping[str, Any]:
    return {"hosts": {name: {} for name in names}}
