"""Variables that kubespray's releases have removed or renamed.

Read off the sources: each variable below is in ``roles`` of a release before ``since``
(or, with ``since`` the oldest known release, in one before that) and no longer from
``since`` on. A removed variable is not an error for kubespray, except for the few that
it lists itself: it does nothing, without a word.
"""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from types import MappingProxyType

Minor = tuple[int, int]


@dataclass(frozen=True)
class Removal:
    """Since which minor release a variable is gone, and what is there in its place.

    :param instead: what to do now, as the end of a sentence; "" for nothing.
    """

    since: Minor
    instead: str = ""


def _renamed(since: Minor, names: Mapping[str, str]) -> dict[str, Removal]:
    return {old: Removal(since, f"it is {new} now") for old, new in names.items()}


def _gone(since: Minor, instead: str, *names: str) -> dict[str, Removal]:
    return dict.fromkeys(names, Removal(since, instead))


_OPENSTACK = "use cluster.openstack; the cloud provider inside Kubernetes is gone"
_CEPH = "install Ceph CSI once the cluster runs"
_PER_GROUP = {
    f"{kind}_master_{what}_reserved": f"{kind}_{what}_reserved"
    for kind, whats in (
        ("kube", ("cpu", "memory", "ephemeral_storage", "pid")),
        ("system", ("cpu", "memory", "ephemeral_storage")),
    )
    for what in whats
}

VARIABLES: Mapping[str, Removal] = MappingProxyType(
    {
        **_renamed(
            (2, 24),
            {
                "containerd_insecure_registries": "containerd_registries_mirrors",
                "metallb_ip_range": "metallb_config.address_pools",
            },
        ),
        **_renamed((2, 28), {"etcd_kubeadm_enabled": "etcd_deployment_type: kubeadm"}),
        **_renamed((2, 26), {"kubeadm_version": "kube_version"}),
        **_renamed(
            (2, 27),
            {
                **_PER_GROUP,
                "kubelet_node_custom_flags": "kubelet_custom_flags",
                "kubelet_node_config_extra_args": "kubelet_config_extra_args",
            },
        ),
        **_gone((2, 27), "it is always on", "containerd_use_config_path"),
        **_gone(
            (2, 27),
            _OPENSTACK,
            *("openstack_auth_url", "openstack_username", "openstack_password"),
            *("openstack_region", "openstack_tenant_id", "openstack_tenant_name"),
            *("openstack_domain_id", "openstack_domain_name"),
        ),
        **_gone(
            (2, 29),
            "",
            "populate_inventory_to_hosts_file",
            "populate_loadbalancer_apiserver_to_hosts_file",
            "populate_localhost_entries_to_hosts_file",
        ),
        **_gone((2, 29), "", "etc_hosts_localhost_entries", "calico_cni_pool"),
        **_gone((2, 29), "", "calico_cni_pool_ipv6", "conntrack_modules"),
        **_gone((2, 30), "", "etcd_cert_dir_mode"),
        **_renamed((2, 31), {"ssh_bastion_confing__name": "ssh_bastion_config_name"}),
        **_gone((2, 31), "", "kubelet_static_pod_path", "kubeadm_config_api_version"),
        **_gone((2, 31), "", "deploy_netchecker"),
        **_renamed(
            (2, 32),
            {
                "eviction_hard_control_plane": "eviction_hard",
                **{
                    f"cilium_hubble_{what}_image_{part}": f"cilium_{what}_image_{part}"
                    for what in ("certgen", "envoy")
                    for part in ("repo", "tag")
                },
            },
        ),
        **_gone((2, 32), "", "kube_apiserver_count"),
    }
)
#: The same for all variables of a feature, by the beginning of their names.
FEATURES: Mapping[str, Removal] = MappingProxyType(
    {
        "docker_container_storage_setup_": Removal((2, 26)),
        "cephfs_provisioner_": Removal((2, 28), _CEPH),
        "rbd_provisioner_": Removal((2, 28), _CEPH),
        "krew_": Removal((2, 28)),
        "weave_": Removal((2, 29), "choose another network plugin"),
        "dashboard_": Removal((2, 31), "install the dashboard once the cluster runs"),
        "ingress_nginx_": Removal(
            (2, 31), "install an ingress controller once the cluster runs"
        ),
        "netcheck_": Removal((2, 31)),
        "netchecker_": Removal((2, 31)),
    }
)


def removal(name: str) -> Removal | None:
    """What became of a variable, None if nothing did."""
    features = (gone for start, gone in FEATURES.items() if name.startswith(start))
    return VARIABLES.get(name) or next(features, None)


def findings(
    variables: Iterable[str], version: str, at: Minor, stated: Iterable[str]
) -> Iterator[str]:
    """One sentence for each of a user's variables that a release does not have.

    :param version: kubespray's version, for the sentence.
    :param at: its minor release.
    :param stated: those that the checkout itself says it has removed.
    """
    own = frozenset(stated)
    for name in variables:
        gone = removal(name)
        if gone and at >= gone.since:
            since = (
                "" if at == gone.since else f" since v{gone.since[0]}.{gone.since[1]}"
            )
            instead = f"; {gone.instead}" if gone.instead else ""
            yield (
                f"kubespray_vars.{name}: kubespray {version} has no such variable"
                f"{since}{instead}"
            )
        elif name in own:
            yield f"kubespray_vars.{name}: kubespray {version} has removed it"
