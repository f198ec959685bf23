# SPDX-License-Identifier: Apache-2.0
"""CNFs and their Services."""

from typing import Any

from tacker_k8s_mgmt.model.services import Service

CNF = "0c000000-9c0d-4f4e-8f7a-3b1c5d7e9f01"


def written(
    name: str, *ports: tuple[int, str, int | None], type: str = "NodePort", **spec: Any
) -> dict[str, Any]:
    """A Service as the API has it, with a status without an address.

    :param ports: each one's number, protocol and node port.
    """
    listed = [
        {"port": port, "protocol": protocol, **({"nodePort": node} if node else {})}
        for port, protocol, node in ports
    ]
    labels = {"tacker_vnf_instance_id": CNF}
    return {
        "kind": "Service",
        "metadata": {"name": name, "namespace": "default", "labels": labels},
        "spec": {"type": type, "ports": listed, **spec},
        "status": {"loadBalancer": {}},
    }


def service(
    name: str, *ports: tuple[int, str, int | None], type: str = "NodePort", **spec: Any
) -> Service:
    """The same, as the driver reads it."""
    return Service.read(written(name, *ports, type=type, **spec))
