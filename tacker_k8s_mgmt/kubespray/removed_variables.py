"""Variables that kubespray's releases have removed or renamed.

From the sources: each variable below is in ``roles`` of a release before ``since`` (of
one before the oldest known release if ``since`` is that) and no longer from ``since``
on. kubespray silently ignores removed variables, except for the few that it lists.
"""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass

from tacker_k8s_mgmt.model.versions import Minor, tag


@dataclass(frozen=True)
class Removal:
    """The removal of a variable.

    :param since: the first minor release without it.
    :param instead: what to do now, as the end of a sentence; "" for nothing.
    """

    since: Minor
    instead: str = ""


_PER_GROUP = {
    f"{kind}_master_{resource}_reserved": f"{kind}_{resource}_reserved"
    for kind, resources in (
        ("kube", ("cpu", "memory", "ephemeral_storage", "pid")),
        ("system", ("cpu", "memory", "ephemeral_storage")),
    )
    for resource in resources
}
_RENAMED: Mapping[Minor, Mapping[str, str]] = {
    (2, 24): {
        "containerd_insecure_registries": "containerd_registries_mirrors",
        "metallb_ip_range": "metallb_config.address_pools",
    },
    (2, 26): {"kubeadm_version": "kube_version"},
    (2, 27): {
        **_PER_GROUP,
        "kubelet_node_custom_flags": "kubelet_custom_flags",
        "kubelet_node_config_extra_args": "kubelet_config_extra_args",
    },
    (2, 28): {"etcd_kubeadm_enabled": "etcd_deployment_type: kubeadm"},
    (2, 31): {"ssh_bastion_confing__name": "ssh_bastion_config_name"},
    (2, 32): {
        "eviction_hard_control_plane": "eviction_hard",
        **{
            f"cilium_hubble_{image}_image_{part}": f"cilium_{image}_image_{part}"
            for image in ("certgen", "envoy")
            for part in ("repo", "tag")
        },
    },
}
_GONE: Mapping[Removal, str] = {
    Removal((2, 27), "it is always on"): "containerd_use_config_path",
    Removal(
        (2, 27),
        "use cluster.openstack; the cloud provider inside Kubernetes is gone",
    ): "openstack_auth_url openstack_username openstack_password openstack_region "
    "openstack_tenant_id openstack_tenant_name openstack_domain_id "
    "openstack_domain_name",
    Removal((2, 29)): "populate_inventory_to_hosts_file "
    "populate_loadbalancer_apiserver_to_hosts_file "
    "populate_localhost_entries_to_hosts_file etc_hosts_localhost_entries "
    "calico_cni_pool calico_cni_pool_ipv6 conntrack_modules",
    Removal((2, 30)): "etcd_cert_dir_mode",
    Removal((2, 31)): "kubelet_static_pod_path kubeadm_config_api_version "
    "deploy_netchecker",
    Removal((2, 32)): "kube_apiserver_count",
}
VARIABLES: Mapping[str, Removal] = {
    **{name: gone for gone, names in _GONE.items() for name in names.split()},
    **{
        old: Removal(since, f"it is {new} now")
        for since, names in _RENAMED.items()
        for old, new in names.items()
    },
}
_CEPH = "install Ceph CSI once the cluster runs"
#: The removal of all variables of a feature, by the beginning of their names.
FEATURES: Mapping[str, Removal] = {
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


def removal(name: str) -> Removal | None:
    """The removal of a variable; None if no known release has removed it."""
    features = (gone for start, gone in FEATURES.items() if name.startswith(start))
    return VARIABLES.get(name) or next(features, None)


def findings(
    variables: Iterable[str], version: str, at: Minor, stated: Iterable[str]
) -> Iterator[str]:
    """One sentence for each of a user's variables that a release does not have.

    :param version: kubespray's version, for the sentences.
    :param at: its minor release.
    :param stated: the removed variables that the checkout itself lists.
    """
    own = frozenset(stated)
    for name in variables:
        gone = removal(name)
        if gone and at >= gone.since:
            since = "" if at == gone.since else f" since {tag(gone.since)}"
            instead = f"; {gone.instead}" if gone.instead else ""
            yield (
                f"kubespray_vars.{name}: kubespray {version} has no such variable"
                f"{since}{instead}"
            )
        elif name in own:
            yield f"kubespray_vars.{name}: kubespray {version} has removed it"
