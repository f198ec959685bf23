# SPDX-License-Identifier: Apache-2.0
"""Parameters of the sample request, and of one that changes it."""

from typing import Any

from tacker_k8s_mgmt.request.reader import ClusterRequest, RequestReader

VNF = "7b5e0f0a-5a0a-4f0e-9a55-3a1c1f1d2e3f"
BALANCER = {
    "ssh_cp_name": "lb_ssh",
    "nic_cp_name": "lb_nic",
    "ssh_username": "ubuntu",
    "ssh_password": "b4lancer-secret",
    "script_path": "Scripts/lb.sh",
}


def params(**changes: Any) -> ClusterRequest:
    """Parameters as the sample request has them."""
    parsed = RequestReader().read(additional_params(**changes))
    assert parsed is not None
    return parsed


def changed_params(**changes: Any) -> ClusterRequest:
    """Parameters of a later request that changes some of the sample request's."""
    later = RequestReader().update(
        additional_params(), {"k8s_cluster_installation_param": changes}
    )
    assert later is not None
    return later


def additional_params(**changes: Any) -> dict[str, Any]:
    """The sample request's ``additionalParams``."""
    node = {"username": "ubuntu", "password": "n0de-secret"}
    structure = {
        "ansible": {
            "ip_address": "192.0.2.5",
            "username": "ansible",
            "password": "serv3r-secret",
            "kubespray_root_path": "/opt/kubespray",
            "transferring_inventory_path": "/srv/clusters/one",
        },
        "master_node": {"ssh_cp_name": "m_ssh", "nic_cp_name": "m_nic", **node},
        "worker_node": {"ssh_cp_name": "w_ssh", "nic_cp_name": "w_nic", **node},
        "external_lb_param": {
            "ssh_cp_name": "lb_ssh",
            "ssh_username": "ubuntu",
            "ssh_password": "b4lancer-secret",
            "script_path": "Scripts/lb.sh",
        },
        **changes,
    }
    return {
        "k8s_cluster_installation_param": {
            key: value for key, value in structure.items() if value is not None
        }
    }


#: A bastion on the way to everything but the Ansible server.
BASTION: dict[str, Any] = {
    "ip_address": "203.0.113.9",
    "username": "jump",
    "password": "jump-s3cret",
    "used_for": ["vms", "playbooks"],
}
