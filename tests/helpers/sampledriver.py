# SPDX-License-Identifier: Apache-2.0
"""A VNF package and a request as they are made for Tacker's sample driver.

Written for these tests. Names, keys and structure are those of the package in
``samples/mgmt_driver/kubernetes/kubespray`` of Tacker's tree and of the request in its
user guide: floating IPs before the only port of each VM, a scaling aspect for the
control plane, sizes that the Base HOT fixes, inputs without defaults, no security
groups, and requirements without occurrences.
"""

from pathlib import Path
from typing import Any

import yaml

from tacker_k8s_mgmt.tools.csar import parts
from tests.helpers import sampledriver_hot, sampledriver_vnfd
from tests.helpers.sampledriver_vnfd import VDUS

SCRIPT = "Scripts/install_external_lb.sh"


def body() -> dict[str, Any]:
    """The request that the guide has, with another site's values."""
    return {
        "flavourId": "simple",
        "vimConnectionInfo": [
            {
                "id": "daa80cf2-9b73-4806-8176-56cd6fab8cea",
                "vimId": "c3369b54-e376-4423-bb61-afd255900fea",
                "vimType": "openstack",
            }
        ],
        "additionalParams": {
            "k8s_cluster_installation_param": _installation(),
            "lcm-operation-user-data": "./UserData/lcm_user_data.py",
            "lcm-operation-user-data-class": "SampleUserData",
        },
        "extVirtualLinks": [
            {
                "id": f"link-{cp}",
                "resourceId": "1642ac54-642c-407c-9c7d-e94c55ba5d33",
                "extCps": [{"cpdId": cp, "cpConfig": [{"linkPortId": f"link-{cp}"}]}],
            }
            for cp, _, _ in VDUS.values()
        ],
    }


def _installation() -> dict[str, Any]:
    login = {"username": "ubuntu", "password": "ubuntu"}
    return {
        "vim_name": "kubernetes_vim",
        "master_node": {
            "aspect_id": "master_instance",
            "ssh_cp_name": "masterNode_FloatingIP",
            "nic_cp_name": "masterNode_CP1",
            **login,
            "pod_cidr": "192.168.0.0/16",
            "cluster_cidr": "10.199.187.0/24",
        },
        "worker_node": {
            "aspect_id": "worker_instance",
            "ssh_cp_name": "workerNode_FloatingIP",
            "nic_cp_name": "workerNode_CP2",
            **login,
        },
        "proxy": {
            "http_proxy": "http://user1:password1@192.0.2.1:3128",
            "https_proxy": "https://user2:password2@192.0.2.2:3128",
        },
        "ansible": {
            "ip_address": "10.10.0.50",
            **login,
            "kubespray_root_path": "/home/ubuntu/kubespray",
            "transferring_inventory_path": "/home/ubuntu/kubespray/inventory/one",
        },
        "external_lb_param": {
            "ssh_cp_name": "externalLB_FloatingIP",
            "ssh_username": "ubuntu",
            "ssh_password": "ubuntu",
            "script_path": SCRIPT,
        },
    }


def write(root: Path, occurrences: bool = True) -> Path:
    """Write the package's files as they are before they are zipped.

    :param occurrences: whether requirements state them, as the parser requires.
    """
    documents = sampledriver_vnfd.documents(occurrences) | sampledriver_hot.documents()
    texts = {
        "TOSCA-Metadata/TOSCA.meta": "TOSCA-Meta-File-Version: 1.0\n"
        "Created-by: someone\nCSAR-Version: 1.1\n"
        "Entry-Definitions: Definitions/sample_kubernetes_top.vnfd.yaml\n",
        SCRIPT: "#!/bin/bash\n# -m and -w: addresses of masters and workers\n",
        "Scripts/kubespray_mgmt.py": "class KubesprayMgmtDriver:\n    pass\n",
        "UserData/__init__.py": "",
        "UserData/lcm_user_data.py": _user_data(),
    }
    texts |= {name: yaml.safe_dump(content) for name, content in documents.items()}
    for name, text in texts.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return root


def _user_data() -> str:
    """As ours, under the sample's name and without the method ``scale``."""
    path = parts.samples() / "vnfd/simple/UserData/k8s_cluster_user_data.py"
    text = path.read_text().replace("KubernetesClusterUserData", "SampleUserData")
    begin, end = (
        text.index("    @staticmethod\n    def scale("),
        text.index("def _nfv_paths"),
    )
    return f"{text[:begin].rstrip()}\n\n\n{text[end:]}"
