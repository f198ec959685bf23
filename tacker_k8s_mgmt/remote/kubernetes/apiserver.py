"""One API server: whether it is well, and where kubeadm's newcomers look for one."""

import json
import re
from typing import Any
from urllib.parse import urlsplit

import yaml

from tacker_k8s_mgmt import errors
from tacker_k8s_mgmt.remote.kubernetes.kubectl import KubeClient

_PLACE = ("configmap", "cluster-info", "--namespace=kube-public")
# kubectl quotes the report of all checks, 2 kB of it on one line with literal "\n".
_FAILED_CHECK = re.compile(r"\[-\][^\s\\]+ failed")


def problem(client: KubeClient) -> str:
    """Why the API server is not ready; "" if it is.

    Names the checks that failed; where there is no such report, kubectl's words.

    :raises RemoteError: the node cannot be reached.
    """
    try:
        client.run("get", "--raw", "/readyz", patience=0)
    except errors.CommandFailed as error:
        failed = _FAILED_CHECK.findall(error.fields.get("output", ""))
        return f"not ready: {', '.join(failed)}" if failed else error.fields["tail"]
    except errors.CommandTimeout as error:
        return str(error)
    return ""


def move_cluster_info(client: KubeClient, address: str, server: str) -> bool:
    """Have kubeadm's ``cluster-info`` name another API server than that at an address.

    kubespray's docs/operations/nodes.md, "Edit cluster-info configmap".

    :param address: of the control plane that goes.
    :param server: URL of the API server that is named then.
    :returns: whether it named the one that goes.
    :raises RemoteError: kubectl failed or the node cannot be reached.
    :raises ClusterError: its answer could not be understood.
    """
    text = client.get(*_PLACE, "--ignore-not-found", read=_kubeconfig)
    config = yaml.safe_load(text) if text else {}
    named = [one["cluster"] for one in config.get("clusters", ())]
    ours = [one for one in named if urlsplit(one["server"]).hostname == address]
    if not ours:
        return False
    for one in ours:
        one["server"] = server
    data = {"data": {"kubeconfig": yaml.safe_dump(config, sort_keys=False)}}
    client.run("patch", *_PLACE, "--type=merge", "-p", json.dumps(data))
    return True


def _kubeconfig(configmap: dict[str, Any]) -> str:
    return str(configmap.get("data", {}).get("kubeconfig", ""))
