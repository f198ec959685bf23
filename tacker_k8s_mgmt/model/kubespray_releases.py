"""Names and requirements of kubespray's releases.

Sources: ``galaxy.yml``, ``playbooks/ansible_version.yml`` and ``roles`` of v2.24 and
newer releases and of the development line. Playbooks, groups and variables that this
driver uses have the same names in all of them; the differences are in :data:`RELEASES`.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
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
    """A minor release: its requirements, and what it has no longer.

    :param ansible: ansible-core from (included) and to (excluded).
    :param removed: variables that are in ``roles`` of a former release and not in this
        one, with what to do now, as the end of a sentence; "" for nothing. A name that
        ends with ``*`` stands for all variables of a feature.
    :param leading_v: whether ``kube_version`` is written ``v1.31.9`` or ``1.31.9``.
    """

    ansible: tuple[str, str]
    removed: Mapping[str, str] = field(default_factory=dict)
    leading_v: bool = False

    def kube_version(self, version: str) -> str:
        """A Kubernetes version as this release writes it."""
        plain = version.removeprefix("v")
        return f"v{plain}" if self.leading_v else plain


def _gone(names: str, instead: str = "") -> Mapping[str, str]:
    return dict.fromkeys(names.split(), instead)


def _renamed(**names: str) -> Mapping[str, str]:
    return {old: f"it is {new} now" for old, new in names.items()}


_PER_GROUP = {
    f"{kind}_master_{resource}_reserved": f"{kind}_{resource}_reserved"
    for kind, resources in (
        ("kube", ("cpu", "memory", "ephemeral_storage", "pid")),
        ("system", ("cpu", "memory", "ephemeral_storage")),
    )
    for resource in resources
}
_HUBBLE_IMAGES = {
    f"cilium_hubble_{image}_image_{part}": f"cilium_{image}_image_{part}"
    for image in ("certgen", "envoy")
    for part in ("repo", "tag")
}
RELEASES: Mapping[Minor, Release] = {
    (2, 24): Release(
        ("2.15.5", "2.17.0"),
        _renamed(
            containerd_insecure_registries="containerd_registries_mirrors",
            metallb_ip_range="metallb_config.address_pools",
        ),
        leading_v=True,
    ),
    (2, 25): Release(("2.16.4", "2.17.0"), leading_v=True),
    (2, 26): Release(
        ("2.16.4", "2.17.0"),
        {
            **_renamed(kubeadm_version="kube_version"),
            **_gone("docker_container_storage_setup_*"),
        },
        leading_v=True,
    ),
    (2, 27): Release(
        ("2.16.4", "2.17.0"),
        {
            **_renamed(
                **_PER_GROUP,
                kubelet_node_custom_flags="kubelet_custom_flags",
                kubelet_node_config_extra_args="kubelet_config_extra_args",
            ),
            **_gone("containerd_use_config_path", "it is always on"),
            **_gone(
                "openstack_auth_url openstack_username openstack_password "
                "openstack_region openstack_tenant_id openstack_tenant_name "
                "openstack_domain_id openstack_domain_name",
                "use cluster.openstack; the cloud provider inside Kubernetes is gone",
            ),
        },
        leading_v=True,
    ),
    (2, 28): Release(
        ("2.16.4", "2.17.0"),
        {
            **_renamed(etcd_kubeadm_enabled="etcd_deployment_type: kubeadm"),
            **_gone(
                "cephfs_provisioner_* rbd_provisioner_*",
                "install Ceph CSI once the cluster runs",
            ),
            **_gone("krew_*"),
        },
    ),
    (2, 29): Release(
        ("2.17.3", "2.18.0"),
        {
            **_gone(
                "populate_inventory_to_hosts_file "
                "populate_loadbalancer_apiserver_to_hosts_file "
                "populate_localhost_entries_to_hosts_file etc_hosts_localhost_entries "
                "calico_cni_pool calico_cni_pool_ipv6 conntrack_modules"
            ),
            **_gone("weave_*", "choose another network plugin"),
        },
    ),
    (2, 30): Release(("2.17.3", "2.18.0"), _gone("etcd_cert_dir_mode")),
    (2, 31): Release(
        ("2.18.0", "2.19.0"),
        {
            **_renamed(ssh_bastion_confing__name="ssh_bastion_config_name"),
            **_gone("kubelet_static_pod_path kubeadm_config_api_version"),
            **_gone("deploy_netchecker netcheck_* netchecker_*"),
            **_gone("dashboard_*", "install the dashboard once the cluster runs"),
            **_gone(
                "ingress_nginx_*", "install an ingress controller once the cluster runs"
            ),
        },
    ),
    (2, 32): Release(
        ("2.18.0", "2.19.0"),
        {
            **_renamed(**_HUBBLE_IMAGES, eviction_hard_control_plane="eviction_hard"),
            **_gone("kube_apiserver_count"),
        },
    ),
}
#: kubespray's branch ``master``. Its ``galaxy.yml`` already has the version of the next
#: release, so the last row of the table is that of a release without a tag. A checkout
#: of it is accepted, but no message asks for one. Once that release is tagged, the row
#: of the next one is added below it.
DEVELOPMENT = max(RELEASES)
#: The known releases that have tags, for messages.
KNOWN = f"{tag(min(RELEASES))} to {tag(max(RELEASES.keys() - {DEVELOPMENT}))}"
