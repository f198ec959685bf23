"""Names and requirements of kubespray's releases.

Sources: ``galaxy.yml``, ``playbooks/ansible_version.yml`` and the assertions of
``roles/validate_inventory`` of v2.24 to v2.31 and the development line. Playbooks,
groups and variables that this driver uses have the same names in all of them; the
differences are in :data:`RELEASES`.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from tacker_k8s_mgmt.model.nodes import Node, api_url, member_number
from tacker_k8s_mgmt.model.versions import Minor, tag

#: Playbooks, relative to ``kubespray_root_path``. From v2.29 on, those with a hyphen
#: have twins with an underscore.
CLUSTER = "cluster.yml"
SCALE = "scale.yml"
REMOVE_NODE = "remove-node.yml"
FACTS = "playbooks/facts.yml"
UPGRADE = "upgrade-cluster.yml"


@dataclass(frozen=True)
class Networks:
    """Default networks of an address family and their variables, in all releases."""

    pods: str
    services: str
    pods_variable: str
    services_variable: str


NETWORKS: Mapping[str, Networks] = {
    "ipv4": Networks(
        "10.233.64.0/18",
        "10.233.0.0/18",
        "kube_pods_subnet",
        "kube_service_addresses",
    ),
    "ipv6": Networks(
        "fd85:ee78:d8a6:8607::1:0/112",
        "fd85:ee78:d8a6:8607::1000/116",
        "kube_pods_subnet_ipv6",
        "kube_service_addresses_ipv6",
    ),
}
#: The first release that makes clusters without IPv4.
IPV6_SINCE = (2, 28)

#: Variables that this driver sets, with what a user can do instead. Extra variables
#: override the inventory on every host, so ``ip`` would give all nodes one address.
RESERVED: Mapping[str, str] = {
    "kube_pods_subnet": "use master_node.pod_cidr",
    "kube_service_addresses": "use master_node.cluster_cidr",
    "ipv4_stack": "use address_family",
    "http_proxy": "use proxy.http_proxy",
    "https_proxy": "use proxy.https_proxy",
    "no_proxy": "use proxy.no_proxy",
    "additional_no_proxy": "use proxy.no_proxy",
    "no_proxy_exclude_workers": "it is set when there is a proxy",
    "supplementary_addresses_in_ssl_keys": "it is made from the VMs' addresses",
    "loadbalancer_apiserver": "use external_lb_param",
    "kube_apiserver_port": "it is 6443; external_lb_param.api_port is free",
    "kube_override_hostname": "nodes have the names of the inventory",
    "kube_config_dir": "admin.conf is looked for in /etc/kubernetes",
    **dict.fromkeys(
        (
            *("ip", "access_ip", "ip6", "access_ip6"),
            *("etcd_member_name", "tacker_server_id"),
            *("tacker_aspect_id", "tacker_compute_host"),
        ),
        "it is set for each node in the inventory",
    ),
    **dict.fromkeys(
        (
            *("node", "reset_nodes", "allow_ungraceful_removal"),
            *("skip_confirmation", "delete_nodes_confirmation"),
            "reset_confirmation",
        ),
        "it belongs to the removal of a node",
    ),
    **dict.fromkeys(
        ("kube_control_plane", "kube_node", "etcd", "calico_rr", "k8s_cluster"),
        "it is a group of the inventory",
    ),
}

#: Further ones with address_family ipv6; with ipv4 they make a dual-stack cluster.
RESERVED_IPV6: Mapping[str, str] = {
    "ipv6_stack": "use address_family",
    "enable_dual_stack_networks": "use address_family",
    "kube_pods_subnet_ipv6": "use master_node.pod_cidr",
    "kube_service_addresses_ipv6": "use master_node.cluster_cidr",
}


def reserved(variable: str, address_family: str = "ipv4") -> str:
    """Why a user may not set a variable and what to do instead; "" if allowed."""
    if variable.startswith("ansible_"):
        return "it tells Ansible how to reach the nodes"
    if address_family == "ipv6" and variable in RESERVED_IPV6:
        return RESERVED_IPV6[variable]
    return RESERVED.get(variable, "")


def limit_without(names: Iterable[str]) -> str:
    """The limit that excludes hosts from a run; "" without hosts.

    In a play that gathers all hosts' facts, an unreachable host would fail the others.
    Some plays run on ``localhost``, which ``all`` does not include.
    """
    excluded = [f"!{name}" for name in names]
    return ":".join(["all", "localhost", *excluded]) if excluded else ""


#: The limit of runs for control planes: kubespray's docs/operations/nodes.md, "Adding
#: an etcd node".
CONTROL_PLANES = ("etcd", "kube_control_plane")
ETCD_PEER_PORT = 2380


def limit_to_control_planes(without: Iterable[str] = ()) -> str:
    """The limit of a run for the control planes, without these hosts."""
    return ",".join([*CONTROL_PLANES, *(f"!{name}" for name in without)])


def member_variables(planes: Iterable[Node]) -> dict[str, Any]:
    """Extra variables of ``cluster.yml`` that pin etcd's members.

    By default, ``roles/etcd/tasks/join_etcd_member.yml`` of all releases names the
    other members ``etcd1``, ``etcd2``, ... by position in the group. With a joining
    member's own name among them, etcd does not start. Another order than before would
    restart all members at once, so they are in the original order, by number.

    :param planes: the control planes that are or become members.
    """
    members = sorted(
        planes, key=lambda node: (member_number(node), node.etcd_member_name)
    )
    pairs = [
        f"{node.etcd_member_name}={api_url(node.address, ETCD_PEER_PORT)}"
        for node in members
    ]
    return {"etcd_retries": 10, "etcd_peer_addresses": ",".join(pairs)}


def removal_variables(*, dead: bool = False, undrained: bool = False) -> dict[str, Any]:
    """Extra variables of ``remove-node.yml``, besides the nodes' names.

    Source: kubespray's docs/operations/nodes.md, "Removing nodes". Newer releases need
    one of the two confirmations, older ones the other.

    :param dead: the hosts do not accept logins.
    :param undrained: some pods could not leave; kubespray's own drain may fail too.
    """
    variables: dict[str, Any] = {
        "skip_confirmation": True,
        "delete_nodes_confirmation": "yes",
    }
    if dead:
        variables["reset_nodes"] = False
    if dead or undrained:
        variables["allow_ungraceful_removal"] = True
    return variables


def upgrade_variables(
    drain: Mapping[str, Any], batch: Sequence[str] = ()
) -> dict[str, Any]:
    """Extra variables of ``upgrade-cluster.yml``.

    All releases drain a node that is Ready and not cordoned, and uncordon it
    afterwards; other nodes stay cordoned.

    :param drain: those of the drain policy, for the control planes, which kubespray
        drains.
    :param batch: cordoned and drained workers, which are upgraded at once.
    """
    return {
        "drain_nodes": True,
        **drain,
        "upgrade_node_always_cordon": False,
        "upgrade_node_fail_if_drain_fails": True,
        "upgrade_node_uncordon_after_drain_failure": True,
        # Do not prompt.
        "upgrade_node_confirm": False,
        "upgrade_node_post_upgrade_confirm": False,
        **({"serial": len(batch)} if batch else {}),
    }


#: The first releases with base URLs for downloads (``github_url``, ...), a CA for a
#: registry's mirror, and logins at several registries for CRI-O.
BASE_URLS_SINCE = (2, 25)
REGISTRY_CA_SINCE = (2, 28)
CRIO_LOGINS_SINCE = (2, 30)


@dataclass(frozen=True)
class Release:
    """Requirements of a minor release.

    :param ansible: ansible-core from (included) and to (excluded).
    :param leading_v: whether ``kube_version`` is written ``v1.31.9`` or ``1.31.9``.
    """

    ansible: tuple[str, str]
    leading_v: bool

    def kube_version(self, version: str) -> str:
        """A Kubernetes version as this release writes it."""
        plain = version.removeprefix("v")
        return f"v{plain}" if self.leading_v else plain


RELEASES: Mapping[Minor, Release] = {
    (2, 24): Release(("2.15.5", "2.17.0"), True),
    (2, 25): Release(("2.16.4", "2.17.0"), True),
    (2, 26): Release(("2.16.4", "2.17.0"), True),
    (2, 27): Release(("2.16.4", "2.17.0"), True),
    (2, 28): Release(("2.16.4", "2.17.0"), False),
    (2, 29): Release(("2.17.3", "2.18.0"), False),
    (2, 30): Release(("2.17.3", "2.18.0"), False),
    (2, 31): Release(("2.18.0", "2.19.0"), False),
    (2, 32): Release(("2.18.0", "2.19.0"), False),
}
#: The version of the development line, which is not released yet.
DEVELOPMENT = max(RELEASES)
#: The known releases, for messages.
KNOWN = f"{tag(min(RELEASES))} to {tag(max(RELEASES.keys() - {DEVELOPMENT}))}"
