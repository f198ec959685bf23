# SPDX-License-Identifier: Apache-2.0
"""The releases of kubespray: what each requires, and which variables it has removed.

Sources: ``galaxy.yml``, ``playbooks/ansible_version.yml`` and ``roles`` of v2.24 and
newer releases and of the development line. Playbooks, groups and variables that this
driver uses have the same names in all of them; the differences are in :data:`RELEASES`.

kubespray silently ignores variables that it has removed or renamed, except for the few
that it lists. So those of a request are looked for here.
"""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field

from tacker_k8s_mgmt.model.network_plugins import Minor, tag

#: The first release that makes clusters without IPv4.
IPV6_SINCE = (2, 28)
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
    :param tagged: no for kubespray's branch ``master``, whose ``galaxy.yml`` already
        has the version of the next release. A checkout of it is accepted, but no
        message asks for one.
    """

    ansible: tuple[str, str]
    removed: Mapping[str, str] = field(default_factory=dict)
    leading_v: bool = False
    tagged: bool = True

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
        tagged=False,
    ),
}
_TAGGED = [at for at, release in RELEASES.items() if release.tagged]
#: The known releases that have tags, for messages.
KNOWN = f"{tag(min(_TAGGED))} to {tag(max(_TAGGED))}"


@dataclass(frozen=True)
class Removal:
    """The removal of a variable.

    :param since: the first minor release without it.
    :param instead: what to do now, as the end of a sentence; "" for nothing.
    """

    since: Minor
    instead: str = ""


_ALL = {
    name: Removal(since, instead)
    for since, release in RELEASES.items()
    for name, instead in release.removed.items()
}
VARIABLES: Mapping[str, Removal] = {
    name: gone for name, gone in _ALL.items() if not name.endswith("*")
}
#: The removal of all variables of a feature, by the beginning of their names.
FEATURES: Mapping[str, Removal] = {
    name.removesuffix("*"): gone for name, gone in _ALL.items() if name.endswith("*")
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
