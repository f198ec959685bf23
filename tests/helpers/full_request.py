# SPDX-License-Identifier: Apache-2.0
"""A request that uses every option, for each release of kubespray as it can have it."""

from dataclasses import replace
from typing import Any

from tacker_k8s_mgmt.kubespray import releases
from tacker_k8s_mgmt.model.nodes import Machine, Role, name_nodes
from tests.helpers.samples import REMOVED, machine

CERTIFICATE = (
    "-----BEGIN CERTIFICATE-----\n"
    "MIIBszCCAVmgAwIBAgIUbm90YXJlYWxjZXJ0aWZpY2F0ZQ==\n"
    "-----END CERTIFICATE-----\n"
)
#: The second worker is of an aspect with labels of its own.
NODES = name_nodes(
    [
        *(
            replace(machine(Role.CONTROL_PLANE, number), compute_host=f"compute-{host}")
            for host, number in enumerate((5, 6, 7), 1)
        ),
        replace(machine(Role.WORKER, 11), compute_host="compute-1"),
        replace(machine(Role.WORKER, 12), compute_host="compute-2", aspect_id="gpu"),
    ]
)
BALANCER = Machine(Role.LOAD_BALANCER, "lb", "10.99.0.19", "10.10.0.9")
#: Bytes, of the nodes' network interfaces.
NIC_MTUS = (1500, 1450, 8950)

#: By release, a Kubernetes version that it can install.
KUBERNETES = {
    (2, 24): "1.28.14",
    (2, 25): "1.29.10",
    (2, 26): "1.30.6",
    (2, 27): "1.31.9",
    (2, 28): "1.32.8",
    (2, 29): "1.33.7",
    (2, 30): "1.34.3",
    (2, 31): "1.35.4",
    (2, 32): "1.36.4",
}
SECRETS = {
    "cluster.offline.files_repo": "https://reader:files-s3cret@files.example.org/k8s",
    "cluster.openstack.application_credential_secret": "credential-s3cret",
}
REGISTRY_PASSWORD = "registry-s3cret"
RBD_KEYS = ("rbd-admin-s3cret", "rbd-user-s3cret")
CEPHFS_KEY = "cephfs-s3cret"
OPENSTACK = {
    "cluster.openstack.auth_url": "https://cloud.example.org:5000/v3",
    "cluster.openstack.region": "RegionOne",
    "cluster.openstack.application_credential_id": "0a1b2c",
    "cluster.openstack.application_credential_name": "cluster",
    "cluster.openstack.cloud_controller": True,
    "cluster.openstack.load_balancer_subnet_id": "5d1c",
    "cluster.openstack.load_balancer_floating_network_id": "9e2f",
}
AUTHENTICATION = {
    "cluster.authentication.oidc": {
        "issuer_url": "https://id.example.org/realms/k8s",
        "client_id": "kubernetes",
        "username_claim": "email",
        "username_prefix": "oidc:",
        "groups_claim": "groups",
        "groups_prefix": "oidc:",
        "ca_certificate": CERTIFICATE,
    },
    "cluster.authentication.webhook": {
        "url": "https://10.99.0.2:8443/webhook",
        "ca_certificate": CERTIFICATE,
        "authorization": True,
    },
}
ASPECT = {
    "aspect_id": "gpu",
    "node_labels": ["example.org/kind=training", "gpu=yes"],
    "node_taints": ["gpu=yes:NoSchedule"],
}
NODE_REGISTRY = {
    "name": "images.local:5000",
    "address": "10.233.0.12",
    "storage_class": "fast",
    "size": "20Gi",
}


def rich(release: tuple[int, int]) -> dict[str, Any]:
    """Changes to the simple request."""
    changes = {
        "master_node.node_labels": ["example.org/rack=r1", "empty="],
        "master_node.node_taints": ["node-role.kubernetes.io/control-plane:NoSchedule"],
        "master_node.compute_host_label": "CIS-node",
        "worker_node.node_labels": ["example.org/kind=video"],
        "worker_node.node_taints": ["dedicated=video:NoSchedule", "slow:NoExecute"],
        "worker_node.compute_host_label": "CIS-node",
        "worker_node.aspects": [ASPECT],
        "cluster.kubernetes_version": KUBERNETES[release],
        "cluster.container_manager": "containerd",
        "cluster.network": {
            "plugin": "calico",
            "encapsulation": "ipip",
            "mtu": "nodes",
        },
        "cluster.registries": [
            _registry(release),
            {"prefix": "docker.io", "mirrors": ["https://mirror.example.org"]},
        ],
        "private_registry_connection_info": [
            {"connection_type": "0", "server": "10.99.0.4:5000"}
        ],
        **SECRETS,
        "cluster.offline.registry_host": "images.example.org:5000/k8s",
        **OPENSTACK,
        "cluster.storage.cinder": True,
        "cluster.storage.local_path": True,
        "cluster.storage.local_volumes": True,
        **AUTHENTICATION,
        "cluster.helm": True,
        "cluster.local_registry": True,
        "cluster.node_registry": NODE_REGISTRY,
        "cluster.metrics_server": True,
        "cluster.audit_log": True,
        "cluster.encrypt_secrets": True,
        "cluster.renew_certificates": True,
        "kubespray_vars": {"retry_stagger": 60},
    }
    if release < releases.BASE_URLS_SINCE:
        changes["cluster.offline.files_repo"] = REMOVED
    if release < (2, 28):
        changes |= {
            "cluster.storage.ceph_rbd": {
                "monitors": ["10.99.0.21:6789", "10.99.0.22:6789"],
                "admin_key": RBD_KEYS[0],
                "user_key": RBD_KEYS[1],
            },
            "cluster.storage.cephfs": {
                "monitors": ["10.99.0.21:6789"],
                "admin_key": CEPHFS_KEY,
            },
        }
    return changes


def _registry(release: tuple[int, int]) -> dict[str, Any]:
    registry = {
        "prefix": "registry.example.org:5000",
        "mirrors": ["https://registry.example.org:5000", "http://10.99.0.3:5000"],
        "username": "puller",
        "password": REGISTRY_PASSWORD,
        "skip_tls_verify": True,
    }
    if release >= releases.REGISTRY_CA_SINCE:
        registry |= {"ca_file": "/etc/ssl/registry.pem", "skip_tls_verify": False}
    return registry
