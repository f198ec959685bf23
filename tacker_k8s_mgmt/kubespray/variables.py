# SPDX-License-Identifier: Apache-2.0
"""The extra variables of every playbook run, as one JSON object.

Booleans and numbers are not written as strings, which kubespray would refuse. For the
network plugin they are encapsulation, MTU and network interface.
"""

import json
import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Any

from tacker_k8s_mgmt.errors import ClusterError
from tacker_k8s_mgmt.model import network_plugins, untrusted
from tacker_k8s_mgmt.model.nodes import Machine, Node, Role, of_role
from tacker_k8s_mgmt.request import registries, structure
from tacker_k8s_mgmt.request.cluster_options import LOCAL_PATH_IS_DEFAULT, Cluster
from tacker_k8s_mgmt.request.fields import NODES
from tacker_k8s_mgmt.request.installation import Proxy
from tacker_k8s_mgmt.request.reader import ClusterRequest

_IPV6_HEADER_IS_LONGER = 20
_INTERFACE_VARIABLES = frozenset({"flannel_interface", "flannel_interface_regexp"})
# Numbers of octets of IPv4 addresses to compare: few, because new nodes have to match.
_PREFIX_OCTETS = (2, 3)


def pod_mtu(
    nic_mtus: Collection[int],
    plugin: str = network_plugins.DEFAULT,
    encapsulation: str | None = None,
    address_family: str = "ipv4",
) -> int:
    """The largest MTU of pods whose packets fit between any two nodes.

    :param nic_mtus: bytes, of each node's network interface in the cluster.
    :param encapsulation: None for the plugin's default.
    :raises ClusterError: no MTU is known, or too little is left for pods.
    """
    if not nic_mtus:
        raise ClusterError(
            detail="The MTU of the nodes' network interfaces is not known.",
            hint="Give cluster.network.mtu as a number.",
        )
    least = min(nic_mtus)
    left = least - _overhead(plugin, encapsulation, address_family)
    needed = 1280 if address_family == "ipv6" else 576
    if left < needed:
        raise ClusterError(
            detail=f"A node's network interface has an MTU of {least} bytes, which "
            f"leaves {left} for pods; {needed} are needed.",
            hint="Give the VMs' networks a larger MTU.",
        )
    return left


def _overhead(plugin: str, encapsulation: str | None, address_family: str) -> int:
    base = network_plugins.PLUGINS[plugin].encapsulation(encapsulation).overhead
    return base + (_IPV6_HEADER_IS_LONGER if address_family == "ipv6" and base else 0)


def variables(
    options: Cluster, address_family: str, nic_mtus: Collection[int]
) -> dict[str, Any]:
    """Variables for the encapsulation and the MTU of the network plugin.

    :param nic_mtus: see :func:`pod_mtu`; needed if the request has the MTU computed.
    """
    network, plugin = options.network, network_plugins.PLUGINS[options.network_plugin]
    built: dict[str, Any] = {}
    if network.encapsulation:
        built |= plugin.encapsulation(network.encapsulation).variables
    mtu = network.mtu
    if mtu == NODES:
        mtu = pod_mtu(nic_mtus, plugin.name, network.encapsulation, address_family)
    if isinstance(mtu, int):
        if plugin.subtracts_overhead:
            mtu += _overhead(plugin.name, network.encapsulation, address_family)
        built[plugin.mtu_variable] = mtu
    return built


def own_interface(
    variables: Mapping[str, Any], nodes: Sequence[Node]
) -> dict[str, str]:
    """The variable that makes flannel use the cluster's network on VMs with two.

    By default flannel uses the interface of the default route, on the external network,
    whose security groups block VXLAN. Other plugins use that of the node's address.

    :param variables: kubespray's; a user's choice of an interface takes precedence.
    :returns: empty if prefixes of the addresses do not distinguish the networks.
    """
    if (
        variables.get("kube_network_plugin") != "flannel"
        or _INTERFACE_VARIABLES & variables.keys()
    ):
        return {}
    if any(":" in node.address for node in nodes):
        return {}
    for octets in _PREFIX_OCTETS:
        inside = {tuple(node.address.split(".")[:octets]) for node in nodes}
        outside = {tuple(node.ssh_address.split(".")[:octets]) for node in nodes}
        if len(inside) == 1 and not inside & outside:
            # Without backslashes, as kubespray's template has it in a YAML string.
            prefix = "".join(f"{number}[.]" for number in inside.pop())
            return {"flannel_interface_regexp": f"^{prefix}"}
    return {}


_API_BALANCER = "loadbalancer_apiserver"
_CERTIFIED = "supplementary_addresses_in_ssl_keys"
_SHOW_LOGS = "unsafe_show_logs"
_SANDBOX_REPOSITORY = "pod_infra_image_repo"
# roles/kubespray_defaults/defaults/main/download.yml, of all supported releases.
_IMAGE_DEFAULTS = {
    "kube_image_repo": "registry.k8s.io",
    _SANDBOX_REPOSITORY: "{{ kube_image_repo }}/pause",
}
_NAMED = re.compile(r"\{\{ *(\w+) *\}\}")
_NESTED = 5  # variables that name each other
_LONGEST_NAME = 255  # characters of a repository
_ADMISSION_PLUGINS = "kube_apiserver_enable_admission_plugins"
# From Kubernetes 1.30 on a policy of each tenant's namespace is in its place.
_NO_EXTERNAL_IPS = (
    "{{ ['DenyServiceExternalIPs'] "
    "if (kube_version | string).lstrip('v') is version('1.30', '<') else [] }}"
)
_BETWEEN_URLS = re.compile(r"[\s\"]+")


def build(
    params: ClusterRequest,
    nodes: Sequence[Node],
    load_balancer: Machine | None,
    *,
    nic_mtus: Collection[int] = (),
    healing_members: int | None = None,
) -> dict[str, Any]:
    """The kubespray variables of a cluster; may hold credentials of many kinds.

    With a load balancer, kubespray has a default for
    ``apiserver_loadbalancer_domain_name``: up to v2.29 a name that it adds to each
    node's /etc/hosts, from v2.30 on the address. Both are in the API's certificate.
    ``kubespray_vars`` may have another name.

    :param nic_mtus: bytes, of each node's network interface in the cluster; needed if
        the request has the pods' MTU computed.
    :param healing_members: number of etcd's members while a control plane is healed.
    :raises ClusterError: the pods' MTU cannot be computed.
    """
    balancers = (
        [load_balancer.ssh_address, load_balancer.address] if load_balancer else []
    )
    control_planes = of_role(nodes, Role.CONTROL_PLANE)
    variables: dict[str, Any] = {
        # Tacker and the VIM's users connect to these addresses.
        _CERTIFIED: _unique([*balancers, *(n.ssh_address for n in control_planes)])
    }
    family, suffix = params.address_family, ""
    if family == "ipv6":
        variables |= {"ipv4_stack": False, "ipv6_stack": True}
        suffix = "_ipv6"
    if params.pod_cidr:
        variables[f"kube_pods_subnet{suffix}"] = str(params.pod_cidr)
    if params.service_cidr:
        variables[f"kube_service_addresses{suffix}"] = str(params.service_cidr)
    if load_balancer and params.load_balancer:
        variables[_API_BALANCER] = {
            "address": load_balancer.address,
            "port": params.load_balancer.api_port,
        }
    if params.proxy:
        own = (
            *([params.proxy.node_cidr] if params.proxy.node_cidr else []),
            params.pod_cidr or network_plugins.PODS[family],
            params.service_cidr or network_plugins.SERVICES[family],
            *balancers,
        )
        variables.update(_proxy(params.proxy, map(str, own)))
    variables |= _options(params, nic_mtus)
    if params.kubespray_vars.get("kube_external_ca_mode"):
        # kubespray refuses both: nodes cannot renew certificates of an external CA.
        variables.pop("auto_renew_certificates", None)
    variables |= params.kubespray_vars
    if healing_members is not None and healing_members % 2 == 0:
        # Otherwise kubespray refuses an even number, also when workers join.
        variables["ignore_assert_errors"] = True
    variables |= own_interface(variables, nodes)
    return _showing_downloads(variables)


def sandbox_repository(params: ClusterRequest) -> str:
    """The repository of the image that nodes have for the sandboxes of pods.

    :returns: "" if kubespray makes it of more than the request says.
    """
    known = {
        **_IMAGE_DEFAULTS,
        **structure.variables(params.cluster),
        **params.kubespray_vars,
    }

    def value(found: re.Match[str]) -> str:
        return str(known.get(found[1], found[0]))[: _LONGEST_NAME + 1]

    text = str(known[_SANDBOX_REPOSITORY])
    for _ in range(_NESTED):
        if "{" not in text or len(text) > _LONGEST_NAME:
            break
        text = _NAMED.sub(value, text)
    return "" if "{" in text or len(text) > _LONGEST_NAME else text


def api_address(text: str) -> str | None:
    """The load balancer's address in the text of the variables, if there is one."""
    balancer = untrusted.parse_json(text).get(_API_BALANCER)
    return str(balancer["address"]) if balancer else None


def certified_addresses(text: str) -> Sequence[str]:
    """The addresses for the API servers' certificates in the text of the variables."""
    return tuple(untrusted.parse_json(text)[_CERTIFIED])


def _options(params: ClusterRequest, nic_mtus: Collection[int]) -> dict[str, Any]:
    """The variables of options.

    Most options declare theirs (:class:`.structure.Sets`); the others depend
    on several options.
    """
    options = params.cluster
    openstack, storage = options.openstack, options.storage
    built = structure.variables(params)
    if params.tenants:
        built[_ADMISSION_PLUGINS] = _NO_EXTERNAL_IPS
    built |= variables(options, params.address_family, nic_mtus)
    private = [registry.as_registry() for registry in params.private_registries]
    if own := options.node_registry:
        services = params.service_cidr or network_plugins.network(
            network_plugins.SERVICES[params.address_family]
        )
        built[registries.ADDRESS_VARIABLE] = str(own.service_address(services))
        private.append(own.as_registry(services))
    built |= registries.engine_variables(
        [*options.registries, *private], params.container_engine
    )
    if webhook := options.authentication.webhook:
        built |= webhook.authorization_variables()
    if openstack and storage.cinder:
        built |= openstack.login("cinder")
    if openstack and openstack.cloud_controller:
        built |= openstack.login("external_openstack")
    if storage.cinder and storage.local_path:
        # There must be only one default StorageClass.
        built[LOCAL_PATH_IS_DEFAULT] = "false"
    return built


def _showing_downloads(variables: dict[str, Any]) -> dict[str, Any]:
    """Show errors of downloads, unless that could reveal credentials.

    kubespray hides the results of all tasks that may have credentials, including
    downloads (``roles/download/tasks/download_file.yml``), which alone have a variable
    ``download``. The other tasks, with private keys, stay hidden.
    """
    if _SHOW_LOGS in variables or _has_credential(json.dumps(variables)):
        return variables
    return variables | {_SHOW_LOGS: "{{ download is defined }}"}


def _has_credential(text: str) -> bool:
    """Whether the URL of files_repo or of a single file has user and password, or a
    query, which may have a signature.
    """
    for word in _BETWEEN_URLS.split(text):
        _, *rest = word.split("://")
        if any("?" in part or "@" in part.partition("/")[0] for part in rest):
            return True
    return False


def _proxy(proxy: Proxy, own: Iterable[str]) -> dict[str, Any]:
    """Variables for the proxy; kubespray adds the nodes' addresses and names.

    :param own: the cluster's networks and its load balancer.
    """
    variables: dict[str, Any] = {}
    if proxy.http_proxy:
        variables["http_proxy"] = proxy.http_proxy.get_secret_value()
    if proxy.https_proxy:
        variables["https_proxy"] = proxy.https_proxy.get_secret_value()
    if not variables:
        return {}
    variables["additional_no_proxy"] = ",".join(_unique([*proxy.no_proxy, *own]))
    if proxy.node_cidr:
        # The list is in the configuration of every node's container engine: with all
        # workers in it, each scaling would restart the engine everywhere.
        variables["no_proxy_exclude_workers"] = True
    return variables


def _unique(items: Iterable[str]) -> list[str]:
    return list(dict.fromkeys(items))


def give_workers_etcd(extra_vars: Mapping[str, Any]) -> bool:
    """Whether kubespray gives workers client certificates of etcd.

    Source: kubespray's ``playbooks/install_etcd.yml``.
    """
    plugin = extra_vars.get("kube_network_plugin", network_plugins.DEFAULT)
    return (
        plugin in ("flannel", "canal", "cilium")
        or bool(extra_vars.get("cilium_deploy_additionally"))
        or (plugin == "calico" and extra_vars.get("calico_datastore") == "etcd")
    )
