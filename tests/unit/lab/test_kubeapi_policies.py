# SPDX-License-Identifier: Apache-2.0
"""The stand-in's admission policies, with the values that CEL's definition has."""

import pytest

from lab.kubeapi import admission
from tacker_k8s_mgmt.features.tenants import tenant_objects

SERVICE = {"spec": {"type": "ClusterIP", "externalIPs": ["192.0.2.1"]}}
VALUES = {"object": SERVICE, "oldObject": None}


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("true && !false", True),
        ("object.spec.type == 'ClusterIP' || object.nothing == 1", True),
        # What decides, decides on either side of an error.
        ("object.nothing == 1 || true", True),
        ("object.nothing == 1 && false", False),
        ("oldObject != null && oldObject.spec.type == 'x'", False),
        ("has(object.spec.externalIPs) && !has(object.spec.externalName)", True),
        ("object.spec.externalIPs.all(ip, ip in object.spec.externalIPs)", True),
        ("object.spec.externalIPs.all(ip, ip == '192.0.2.2')", False),
        ("true || false && false", True),
        ("(true || false) && false", False),
    ],
)
def test_values(text, expected):
    assert admission.evaluate(text, VALUES) is expected


@pytest.mark.parametrize(
    "text", ["object.nothing", "true true", "(true", "object.spec.all(x", "1 + 1", ""]
)
def test_what_has_no_value(text):
    with pytest.raises(admission.CelError):
        admission.evaluate(text, VALUES)


OLD_IP = {"type": "ClusterIP", "externalIPs": ["192.0.2.1"]}
OLD_NAME = {"type": "ExternalName", "externalName": "a.example.org"}


@pytest.mark.parametrize(
    ("new", "old", "allowed"),
    [
        ({"type": "ClusterIP"}, None, True),
        ({"type": "ClusterIP", "externalIPs": []}, None, True),
        ({"type": "ClusterIP", "externalIPs": None}, None, True),
        (OLD_IP, None, False),
        (OLD_IP, {"type": "ClusterIP"}, False),
        (OLD_IP, OLD_IP, True),
        ({**OLD_IP, "externalIPs": ["192.0.2.1", "192.0.2.2"]}, OLD_IP, False),
        ({"type": "ClusterIP"}, OLD_IP, True),
        (OLD_NAME, None, False),
        (OLD_NAME, {"type": "ClusterIP"}, False),
        (OLD_NAME, OLD_NAME, True),
        ({**OLD_NAME, "externalName": "b.example.org"}, OLD_NAME, False),
        ({"type": "LoadBalancer"}, OLD_NAME, True),
    ],
)
def test_services_of_a_tenant(new, old, allowed):
    values = {"object": {"spec": new}, "oldObject": {"spec": old} if old else None}
    checks = [admission.evaluate(c, values) for c, _ in tenant_objects._FOR_SERVICES]
    assert all(checks) is allowed
