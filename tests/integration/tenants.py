# SPDX-License-Identifier: Apache-2.0
"""What a cluster and Tacker have of tenants, and what a tenant's token allows."""

import subprocess

from tests.integration.cluster import Cluster
from tests.integration.conftest import Lab


def vims(lab: Lab, cluster: Cluster) -> set[str]:
    """Names of the tenants that have a VIM in Tacker's v1 API."""
    prefix = f"{cluster.vim_name}_"
    names = {vim["name"] for vim in lab.tacker.vims()}
    return {name.removeprefix(prefix) for name in names if name.startswith(prefix)}


def with_token(cluster: Cluster, token: str, *words: str) -> "Said":
    """What kubectl says through the load balancer with a token.

    :param words: of the command.
    """
    url = f"https://{cluster.balancer_address()}:6443"
    access = ("--server", url, "--certificate-authority", str(cluster.ca()))
    return subprocess.run(
        ["kubectl", "--kubeconfig", "/dev/null", *access, "--token", token, *words],
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )


Said = subprocess.CompletedProcess[str]


def can(cluster: Cluster, token: str, verb: str, kind: str, namespace: str) -> bool:
    """What ``kubectl auth can-i`` says with a token."""
    words = ("auth", "can-i", verb, kind, "--namespace", namespace)
    done = with_token(cluster, token, *words)
    assert done.stdout.strip() in ("yes", "no"), done.stderr
    return done.stdout.strip() == "yes"


def namespaces(cluster: Cluster) -> set[str]:
    """Names of all namespaces."""
    found = cluster.kubectl("get", "namespaces", "-o", "name").split()
    return {name.rpartition("/")[2] for name in found}


def owned(cluster: Cluster, name: str) -> str:
    """What the cluster has for a tenant outside of its namespace."""
    kinds = "serviceaccounts,secrets,clusterroles,clusterrolebindings"
    owner = f"tacker-k8s-mgmt/owner=tenant.{name}"
    return cluster.kubectl("get", kinds, "-A", "-l", owner, "-o", "name")
