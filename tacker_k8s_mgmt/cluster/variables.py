"""The extra variables of every playbook run, as one JSON object.

Real booleans and numbers: kubespray refuses strings in their place.
"""

from collections.abc import Iterable, Sequence
from typing import Any

from tacker_k8s_mgmt.cluster.nodes import Machine, Node, Role
from tacker_k8s_mgmt.cluster.params import InstallParams, Proxy


def build(
    params: InstallParams, nodes: Sequence[Node], load_balancer: Machine | None
) -> dict[str, Any]:
    """The kubespray variables of a cluster; may hold a proxy's credentials.

    With a load balancer, ``apiserver_loadbalancer_domain_name`` is left to kubespray:
    up to v2.29 it puts a name of its own into every node's /etc/hosts, from v2.30 on it
    takes the address; both get into the API's certificate. A user's own name for it may
    stand in ``kubespray_vars``.
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
    if params.pod_cidr:
        variables["kube_pods_subnet"] = str(params.pod_cidr)
    if params.service_cidr:
        variables["kube_service_addresses"] = str(params.service_cidr)
    if load_balancer and params.load_balancer:
        variables["loadbalancer_apiserver"] = {
            "address": load_balancer.address,
            "port": params.load_balancer.api_port,
        }
    if params.proxy:
        variables.update(_proxy(params.proxy, balancers))
    return variables | params.kubespray_vars


def _proxy(proxy: Proxy, balancers: Sequence[str]) -> dict[str, Any]:
    """Variables for the proxy; kubespray itself adds the control planes' addresses and
    names, the load balancer's cluster address, and the pods' and services' networks.
    """
    variables: dict[str, Any] = {}
    if proxy.http_proxy:
        variables["http_proxy"] = proxy.http_proxy.get_secret_value()
    if proxy.https_proxy:
        variables["https_proxy"] = proxy.https_proxy.get_secret_value()
    if not variables:
        return {}
    own = [str(proxy.node_cidr)] if proxy.node_cidr else []
    return variables | {
        "additional_no_proxy": ",".join(_unique([*proxy.no_proxy, *own, *balancers])),
        # The list is written into every node's container engine: with the workers in
        # it, each scaling would restart the engine everywhere.
        "no_proxy_exclude_workers": True,
    }


def _unique(items: Iterable[str]) -> list[str]:
    return list(dict.fromkeys(items))
