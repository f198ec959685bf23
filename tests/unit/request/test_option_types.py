# SPDX-License-Identifier: Apache-2.0
"""Each option's value: what is refused, and in which words."""

import pytest

from tests.helpers.samples import changed, parsed, problems

BRACES = "must not contain {{, {% or {#, which Ansible takes apart"
URL = "must be an http:// or https:// URL with a host"
ISSUED = "cluster.authentication.oidc"
HTTPS = "must be an https:// URL with a host"
MTU = "must be a whole number from 576 to 9216, or nodes"
VERSION = "must be a whole version such as 1.31.9"
REGISTRY = "must be a registry's host, with its port if it has one"
LABEL = "must be a label such as example.org/kind=fast"
LINE = "must be one line of 1 to 4096 characters"
RBD = {"monitors": ["10.0.0.1:6789"], "admin_key": "kkkk", "user_key": "kkkk"}
OIDC = {"issuer_url": "https://id", "client_id": "k8s"}

WRONG = [
    *(
        ("cluster.kubernetes_version", value, VERSION)
        for value in ("1.31", "latest", "2.0.0", "1.31.9-rc1", "1.31.9 ; id")
    ),
    ("cluster.kubernetes_version", 1.31, "must be text"),
    ("cluster.container_manager", "podman", "must be 'containerd', 'crio' or 'docker'"),
    *(("cluster.network.mtu", value, MTU) for value in (0, 575, 9217, "1500", True)),
    ("cluster.network.mtu", 1400.5, MTU),
    ("cluster.network.plugin", 7, "must be text"),
    ("cluster.registries", {"prefix": "r"}, "must be a list"),
    ("cluster.helm", "true", "must be true or false"),
    ("cluster.offline.files_repo", "files.example.org", URL),
    ("cluster.offline.files_repo", "ftp://files.example.org", URL),
    ("cluster.offline.files_repo", "https://u:{{ p }}@files", BRACES),
    (
        "cluster.offline.registry_host",
        "https://registry",
        "must be a registry's host, with port and path if need be",
    ),
    ("master_node.node_labels", "a=b", "must be a list"),
]
ITEMS = [
    ("cluster.registries", {}, "prefix", "is missing"),
    ("cluster.registries", {"prefix": "https://r"}, "prefix", REGISTRY),
    ("cluster.registries", {"prefix": "r/p"}, "prefix", REGISTRY),
    (
        "cluster.registries",
        {"prefix": "r", "mirrors": ["https://u:p@r"]},
        "mirrors.0",
        "must not contain a user name or password",
    ),
    (
        "cluster.registries",
        {"prefix": "r", "username": "u", "password": "{{ x }}"},
        "password",
        BRACES,
    ),
    (
        "cluster.registries",
        {"prefix": "r", "username": "a\nb", "password": "pppp"},
        "username",
        LINE,
    ),
    (
        "private_registry_connection_info",
        {"connection_type": "2", "server": "r"},
        "connection_type",
        "must be 0 or 1",
    ),
    (
        "private_registry_connection_info",
        {"server": "r"},
        "connection_type",
        "is missing",
    ),
    *(
        ("worker_node.node_labels", value, "", LABEL)
        for value in ("a", "=b", "a=b c", "A/B/c=d", "a={{ b }}", "x" * 64 + "=b")
    ),
    *(
        (
            "worker_node.node_taints",
            value,
            "",
            "must be a taint such as dedicated=video:NoSchedule, with the effect "
            "NoSchedule, PreferNoSchedule or NoExecute",
        )
        for value in ("a", "a:Never", "a=b", ":NoSchedule")
    ),
]
STRUCTURES = [
    ("cluster.storage.ceph_rbd", {**RBD, "monitors": []}, "monitors", "not be empty"),
    ("cluster.storage.ceph_rbd", {"monitors": ["m"]}, "admin_key", "is missing"),
    *(
        (
            ISSUED,
            {**OIDC, "issuer_url": url},
            "issuer_url",
            HTTPS,
        )
        for url in ("x", "http://id.example.org", "//id")
    ),
    (
        ISSUED,
        {**OIDC, "issuer_url": "https://u:p@id"},
        "issuer_url",
        "must not contain a user name or password",
    ),
    (
        ISSUED,
        {**OIDC, "ca_certificate": "/etc/ca.pem"},
        "ca_certificate",
        "must be a certificate (-----BEGIN CERTIFICATE-----)",
    ),
    (
        "cluster.openstack",
        {"auth_url": "https://c", "region": "r", "ca_file": "ca.pem"},
        "ca_file",
        "must be an absolute path (it starts with /)",
    ),
]


@pytest.mark.parametrize(("name", "value", "expected"), WRONG)
def test_a_wrong_value_is_one_problem(name, value, expected):
    found = problems(changed({name: value}))
    (found,) = {text for text in found if text.startswith(f"{name}: ")}
    assert found == f"{name}: {expected}"


@pytest.mark.parametrize(("name", "item", "inner", "expected"), ITEMS)
def test_a_wrong_item_is_named_by_its_place(name, item, inner, expected):
    place = f"{name}.0.{inner}".rstrip(".")
    assert f"{place}: {expected}" in problems(changed({name: [item]}))


@pytest.mark.parametrize(("name", "value", "inner", "expected"), STRUCTURES)
def test_a_wrong_value_in_a_structure_is_named(name, value, inner, expected):
    found = problems(changed({name: value}))
    (found,) = (text for text in found if f"{name}.{inner}: " in text)
    assert expected in found


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("cluster.kubernetes_version", " "),
        ("cluster.network.mtu", ""),
        ("cluster.network.plugin", ""),
        ("cluster.offline.files_repo", ""),
        ("cluster.offline.registry_host", "registry.example.org:5000/a/b-c"),
        ("cluster.registries", [{"prefix": "[fd00::1]:5000", "mirrors": []}]),
        ("worker_node.node_labels", ["a=", "node-role.kubernetes.io/worker=x_y.z-1"]),
        (
            "worker_node.node_taints",
            ["a:NoExecute", "a=:NoSchedule", "x.y/z=1:NoSchedule"],
        ),
        ("cluster.storage.ceph_rbd", RBD),
        (ISSUED, OIDC),
    ],
)
def test_what_is_left_empty_or_is_right_is_taken(name, value):
    assert parsed({name: value}).warnings == ()


@pytest.mark.parametrize("url", ["https://id.example.org/", "https://id/realms/k8s"])
def test_an_issuer_is_as_its_tokens_name_it(url):
    """The API server compares the text, where some providers end with a slash."""
    request = parsed({ISSUED: {**OIDC, "issuer_url": url}})
    assert request.cluster.authentication.oidc.issuer_url == url
