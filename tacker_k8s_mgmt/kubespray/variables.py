"""The extra variables of every playbook run, as one JSON object.

Real booleans and numbers: kubespray refuses strings in their place.
"""

import json
import re
from collections.abc import Collection, Iterable, Sequence
from typing import Any

from tacker_k8s_mgmt.kubespray import network
from tacker_k8s_mgmt.model import kubespray_releases
from tacker_k8s_mgmt.model.nodes import Machine, Node, Role
from tacker_k8s_mgmt.request import option_metadata, registries
from tacker_k8s_mgmt.request.models import Proxy
from tacker_k8s_mgmt.request.params import InstallParams
from tacker_k8s_mgmt.request.storage_options import LOCAL_PATH_IS_DEFAULT

_SHOW_LOGS = "unsafe_show_logs"
# In a URL, as files_repo or a single file's URL may have them: user and password, or
# a query, where storages have their signatures.
_CREDENTIAL = re.compile(r"://([^/\s\"]*@|[^\s\"]*\?)")


def build(
    params: InstallParams,
    nodes: Sequence[Node],
    load_balancer: Machine | None,
    *,
    nic_mtus: Collection[int] = (),
) -> dict[str, Any]:
    """The kubespray variables of a cluster; may hold credentials of many kinds.

    With a load balancer, ``apiserver_loadbalancer_domain_name`` is left to kubespray:
    up to v2.29 it puts a name of its own into every node's /etc/hosts, from v2.30 on it
    takes the address; both get into the API's certificate. A user's own name for it may
    stand in ``kubespray_vars``.

    :param nic_mtus: bytes, of every node's network interface in the cluster; needed
        where the request has the pods' MTU computed.
    :raises ClusterError: an MTU was to be computed and cannot be.
    """
    balancers = (
        [load_balancer.ssh_address, load_balancer.address] if load_balancer else []
    )
    control_planes = [node for node in nodes if node.role is Role.CONTROL_PLANE]
    variables: dict[str, Any] = {
        # Tacker and the VIM's users come in from outside, by these addresses.
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
        # kubespray refuses both: there is nobody on the nodes who could renew them.
        variables.pop("auto_renew_certificates", None)
    variables |= params.kubespray_vars
    variables |= network.own_interface(variables, nodes)
    return _showing_downloads(variables)


def _options(params: InstallParams, nic_mtus: Collection[int]) -> dict[str, Any]:
    """The variables of all options of ``cluster`` that are not kubespray's defaults.

    Most of them each option declares itself (:class:`.option_metadata.Becomes`); the
    others follow from several.
    """
    options = params.cluster
    openstack, storage = options.openstack, options.storage
    built = option_metadata.variables(options)
    built |= network.variables(options, params.address_family, nic_mtus)
    private = (one.as_registry() for one in params.private_registries)
    built |= registries.variables(
        [*options.registries, *private], options.container_manager or "containerd"
    )
    if openstack and storage.cinder:
        built |= openstack.login("cinder")
    if openstack and openstack.cloud_controller:
        built |= openstack.login("external_openstack")
    if storage.cinder and storage.local_path:
        # Its class would be a second default one.
        built[LOCAL_PATH_IS_DEFAULT] = "false"
    return built


def _showing_downloads(variables: dict[str, Any]) -> dict[str, Any]:
    """Have kubespray say why a download failed, where that gives no credential away.

    It hides the result of every task that may show one, a download's as well
    (``roles/download/tasks/download_file.yml``); only there a variable ``download`` is
    defined. The other tasks stay hidden: private keys pass through them.
    """
    if _SHOW_LOGS in variables or _CREDENTIAL.search(json.dumps(variables)):
        return variables
    return variables | {_SHOW_LOGS: "{{ download is defined }}"}


def _proxy(proxy: Proxy, own: Iterable[str]) -> dict[str, Any]:
    """Variables for the proxy; kubespray itself adds nodes, by address and name.

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
        # The list is written into every node's container engine: with the workers one
        # by one in it, each scaling would restart the engine everywhere.
        variables["no_proxy_exclude_workers"] = True
    return variables


def _unique(items: Iterable[str]) -> list[str]:
    return list(dict.fromkeys(items))
