# SPDX-License-Identifier: Apache-2.0
"""The specification's sample body, section "Request parameters for operation"."""

import copy
from typing import Any

from tests.helpers.param_samples import SPECIFICATION

EXTERNAL_NETWORK = "b0b84da3-3259-4855-b4cd-5711ba5e5de1"


def instantiate() -> dict[str, Any]:
    """The body of the specification."""
    connected = {
        "net0_master": "masterNode_CP1",
        "net0_worker": "workerNode_CP2",
        "net0_externalLB": "externalLB_CP1",
    }
    ethernet = {"cpProtocolData": [{"layerProtocol": "IP_OVER_ETHERNET"}]}
    return {
        "flavourId": "simple",
        "additionalParams": {
            "k8s_cluster_installation_param": copy.deepcopy(SPECIFICATION),
            "lcm-operation-user-data": "./UserData/k8s_cluster_user_data.py",
            "lcm-operation-user-data-class": "KubernetesClusterUserData",
        },
        "extVirtualLinks": [
            {
                "id": link,
                "resourceId": EXTERNAL_NETWORK,
                "extCps": [{"cpdId": cp, "cpConfig": [copy.deepcopy(ethernet)]}],
            }
            for link, cp in connected.items()
        ],
        "vimConnectionInfo": [
            {
                "id": "3cc2c4ff-525c-48b4-94c9-29247223322f",
                "vimId": "05ef7ca5-7e32-4a6b-a03d-52f811f04496",
                "vimType": "openstack",
            }
        ],
    }
