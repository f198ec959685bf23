"""The extra variables of every playbook run, as one JSON object.

Booleans and numbers are no strings, which kubespray would refuse.
"""

import json
import re
from collections.abc import Collection, Iterable, Sequence
from typing import Any

from tacker_k8s_mgmt.kubespray import network
from tacker_k8s_mgmt.model import kubespray_releases
from tacker_k8s_mgmt.model.nodes import Machine, Node, Role, of_role
from tacker_k8s_mgmt.request import option_metadata, registries
from tacker_k8s_mgmt.request.models import Proxy
from tacker_k8s_mgmt.request.params import InstallParams
from tacker_k8s_mgmt.request.storage_options import LOCAL_PATH_IS_DEFAULT

_SHOW_LOGS = "unsafe_show_logs"
# In the URL of files_repo or of a single file: user and password, or a query, which may
# have a signature.
_CREDENTIAL = re.compile(r"://([^/\s\"]*@|[^\s\"]*\?)")


def build(
    params: InstallParams,
    nodes: Sequence[Node],
    load_balancer: Machine | None,
    *,
    nic_mtus: Collection[int] = (),
) -> dict[str, Any]:
    """The kubespray variables of a cluster; may hold credentials of many kinds.

    With a load balancer, kubespray has a default for
    ``apiserver_loadbalancer_domain_name``: up to v2.29 a name that it adds to each
    node's /etc/hosts, from v2.30 on the address. Both are in the API's certificate.
    ``kubespray_vars`` may have another name.

    :param nic_mtus: bytes, of each node's network interface in the cluster; needed if
        the request has the pods' MTU computed.
    :raises ClusterError: the pods' MTU cannot be computed.
    """
    balancers = (
        [load_balancer.ssh_address, load_balancer.address] if load_balancer else []
    )
    control_planes = of_role(nodes, Role.CONTROL_PLANE)
    variables: dict[str, Any] = {
        # Tacker and the VIM's users connect to these addresses.
        "supplementary_addresses_in_ssl_keys": _unique(
            [*balancers, *(node.ssh_address for node in control_planes)]
        )
    }
    networks = kubespray_releases.NETWORKS[params.address_family]
    if params.address_family == "ipv6":
        variables |= {"ipv4_stack": False, "ipv6_stack": True}
    if params.pod_cidr:
        variables[networks.pods_variable] = str(params.pod_cidr)
    if params.service_cidr:
        variables[networks.services_variable] = str(params.service_cidr)
    if load_balancer and params.load_balancer:
        variables["loadbalancer_apiserver"] = {
            "address": load_balancer.address,
            "port": params.load_balancer.api_port,
        }
    if params.proxy:
        own = (
            *([params.proxy.node_cidr] if params.proxy.node_cidr else []),
            params.pod_cidr or networks.pods,
            params.service_cidr or networks.services,
            *balancers,
        )
        variables.update(_proxy(params.proxy, map(str, own)))
    variables |= _options(params, nic_mtus)
    if params.kubespray_vars.get("kube_external_ca_mode"):
        # kubespray refuses both: nodes cannot renew certificates of an external CA.
        variables.pop("auto_renew_certificates", None)
    variables |= params.kubespray_vars
    variables |= network.own_interface(variables, nodes)
    return _showing_downloads(variables)


def _options(params: InstallParams, nic_mtus: Collection[int]) -> dict[str, Any]:
    """The variables of the options of ``cluster``.

    Most options declare theirs (:class:`.option_metadata.Becomes`); the others depend
    on several options.
    """
    options = params.cluster
    openstack, storage = options.openstack, options.storage
    built = option_metadata.variables(options)
    built |= network.variables(options, params.address_family, nic_mtus)
    private = (registry.as_registry() for registry in params.private_registries)
    built |= registries.variables(
        [*options.registries, *private], options.container_manager or "containerd"
    )
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
    if _SHOW_LOGS in variables or _CREDENTIAL.search(json.dumps(variables)):
        return variables
    return variables | {_SHOW_LOGS: "{{ download is defined }}"}


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
