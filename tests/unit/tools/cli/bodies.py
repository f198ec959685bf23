# SPDX-License-Identifier: Apache-2.0
"""Requests for tests, with a mark in every place where a secret may stand."""

import copy
import json

from tacker_k8s_mgmt.request.reader import ATTRIBUTE
from tacker_k8s_mgmt.tools.csar import parts

MARK = "MaRk3d"
KEY = (
    "-----BEGIN OPENSSH PRIVATE KEY-----\n"
    f"b3BlbnNzaC1rZXktdjEAAAAA{MARK}\n"
    f"c2Vjb25kLWxpbmUtb2YtdGhlLWtleQ{MARK}\n"
    "-----END OPENSSH PRIVATE KEY-----\n"
)


def simple():
    """The sample request, with passwords in place of its references."""
    path = parts.samples() / "requests" / "instantiate-simple.json"
    body = json.loads(path.read_text())
    given = installation(body)
    given["ansible"]["password"] = "ansible"
    for name, prefix in (
        ("master_node", ""),
        ("worker_node", ""),
        ("external_lb_param", "ssh_"),
    ):
        del given[name][f"{prefix}private_key"]
        given[name][f"{prefix}password"] = "ubuntu"
    return body


def installation(body):
    return body["additionalParams"][ATTRIBUTE]


def secretive():
    """The sample request with marked secrets wherever one may be given."""
    body = simple()
    given = installation(body)
    given["ansible"]["password"] = f"{MARK}-ansible"
    given["master_node"] |= {
        "password": f"{MARK} 'master\" node\\",
        "private_key": KEY,
        "private_key_passphrase": f"{MARK}-phrase",
    }
    given["worker_node"]["password"] = f"http://{MARK}-worker"
    given["external_lb_param"]["ssh_password"] = f"/{MARK}/balancer"
    given["proxy"] = {
        "http_proxy": f"http://user:{MARK}%40p@proxy.example:3128",
        "https_proxy": f"http://{MARK}:{MARK}@proxy.example:3128",
        "no_proxy": "192.0.2.9",
    }
    given["kubespray_vars"] = {
        "registry_password": f"{MARK}-registry",
        "kube_encrypt_token": f"{MARK}-token",
        "vault_passphrase": f"{MARK}-vault",
        "files_repo": f"https://user:{MARK}/x@files.example/repo",
        "containerd_registry_auth": [
            {"registry": "192.0.2.8:5000", "username": "me", "password": f"{MARK}-reg"}
        ],
        "some_pem": KEY,
        "mirrors": {"one": {"client_secret": {"deep": [f"{MARK}-deep"]}}},
        "kube_version": "1.33.1",
    }
    return body


def leaves(value, place=()):
    """The place and the value of every leaf of a document."""
    if isinstance(value, dict):
        for name, inner in value.items():
            yield from leaves(inner, (*place, name))
    elif isinstance(value, list):
        for number, inner in enumerate(value):
            yield from leaves(inner, (*place, number))
    else:
        yield place, value


def changed(document, place, new):
    """A copy with one leaf changed."""
    copied = copy.deepcopy(document)
    holder = copied
    for step in place[:-1]:
        holder = holder[step]
    holder[place[-1]] = new
    return copied


SECRET_REF = {
    "secret_ref": "https://barbican.example.org/v1/secrets/"
    "11111111-2222-3333-4444-555555555555"
}
FILE = {"file": "/etc/tacker/k8s-mgmt/secrets/server"}


def named():
    """The sample request with references in the place of secrets."""
    body = simple()
    given = installation(body)
    given["ansible"]["password"] = FILE
    given["worker_node"]["password"] = SECRET_REF
    given["kubespray_vars"] = {"registry_password": SECRET_REF}
    return body
