# SPDX-License-Identifier: Apache-2.0
"""Nodes, as the driver and operators use them; kubectl's TLS and version."""

from typing import Any

from tests.real.differential.kubelets import SILENT
from tests.real.differential.rows import do, http, kubectl
from tests.real.differential.site import Site

_NODE_FIELDS = (
    r'jsonpath={{.kind}}{{"\n"}}{{range .items[*]}}{{.metadata.name}}{{"\t"}}'
    r'{{.spec.taints}}{{"\n"}}{{end}}'
)


def _settled(site: Site) -> None:
    site.wait(lambda: all(_taints(site, n) == [] for n in ("w1", "w2")))


def _taints(site: Site, node: str) -> Any:
    return site.get(f"/api/v1/nodes/{node}")["spec"].get("taints", [])


_LABELS = "metadata.labels"
ROWS = (
    do("nodes: all are Ready", _settled),
    kubectl("nodes: columns", f"get nodes -l kubernetes.io/hostname!={SILENT}"),
    http(
        "nodes: an object",
        "GET",
        "/api/v1/nodes/w1",
        None,
        f"# metadata.# {_LABELS} spec status.# status.conditions.*.type "
        "status.conditions.*.status status.conditions.*.reason",
    ),
    kubectl(
        "nodes: wide",
        "get nodes -o wide -l 'kubernetes.io/hostname in (m1,w1)'",
    ),
    kubectl(
        "nodes: fields that the driver reads",
        f"get nodes -l 'kubernetes.io/hostname in (m1,w1)' -o '{_NODE_FIELDS}'",
    ),
    kubectl(
        "nodes: a list of two kinds",
        "get nodes,volumeattachments -l none -o 'jsonpath={{.kind}} {{.items}}'",
    ),
    kubectl("nodes: no volumes", "get volumeattachments"),
    kubectl("nodes: one that is not there", "get node none"),
    kubectl("nodes: label", "label node w1 zone=a"),
    kubectl("nodes: label again", "label node w1 zone=a"),
    kubectl("nodes: label, another value", "label node w1 zone=b"),
    kubectl("nodes: annotate several", "annotate node w1 w2 note=x"),
    kubectl("nodes: taint", "taint node w1 k=v:NoSchedule"),
    kubectl("nodes: taint again", "taint node w1 k=v:NoSchedule"),
    kubectl(
        "nodes: taint, overwritten",
        "taint node w1 k=w:NoSchedule --overwrite",
    ),
    kubectl("nodes: taint taken away", "taint node w1 k-"),
    kubectl("nodes: taint that is not there", "taint node w1 k-"),
    kubectl("nodes: taint of none", "taint node none k=v:NoSchedule"),
    kubectl(
        "nodes: the driver's cordon",
        'patch node w1 w2 --type=merge -p \'{{"spec":{{"unschedulable":true}}}}\'',
    ),
    do("nodes: cordoned", lambda site: site.wait(lambda: _taints(site, "w1"))),
    http(
        "nodes: a cordon's taint",
        "GET",
        "/api/v1/nodes/w1",
        None,
        "spec.unschedulable spec.taints.*.key spec.taints.*.effect",
    ),
    kubectl("nodes: columns of one that is cordoned", "get node w1"),
    kubectl("nodes: cordon of one that is", "cordon w1"),
    kubectl(
        "nodes: the driver's uncordon",
        'patch node w1 w2 --type=merge -p \'{{"spec":{{"unschedulable":null}}}}\'',
    ),
    kubectl(
        "nodes: patch that changes nothing",
        'patch node w1 --type=merge -p \'{{"spec":{{"unschedulable":null}}}}\'',
    ),
    kubectl("nodes: uncordon of one that is not", "uncordon w1"),
    do("nodes: uncordoned", _settled),
    kubectl(
        "nodes: patch of one that is not there",
        "patch node none --type=merge -p {{}}",
    ),
    kubectl("nodes: wait", "wait node w1 --for=condition=Ready --timeout=20s"),
    kubectl(
        "nodes: wait for what does not come",
        "wait node w1 --for=condition=Ready=False --timeout=1s",
    ),
    kubectl("version: of kubectl and server", "version"),
    kubectl(
        "tls: a name in the certificate",
        "get --raw=/readyz --tls-server-name localhost",
    ),
    kubectl(
        "tls: a name that is not",
        "get --raw=/version --tls-server-name elsewhere",
    ),
    kubectl(
        "tls: an address that is not",
        "get --raw=/version --tls-server-name 10.0.0.9",
    ),
)
