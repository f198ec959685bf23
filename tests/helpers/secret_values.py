# SPDX-License-Identifier: Apache-2.0
"""Every secret of a request, and requests that hold it or a reference to it."""

from collections.abc import Callable, Mapping
from typing import Any, NoReturn

from tacker_k8s_mgmt.request import reader
from tacker_k8s_mgmt.request.reader import ClusterRequest
from tacker_k8s_mgmt.request.secrets import Reference, Unresolved
from tests.helpers.param_strategies import LISTED_SECRETS, OPTION_SECRETS, with_option
from tests.helpers.samples import KEY, changed, request

SECRET_ID = "11111111-2222-3333-4444-555555555555"
SECRET_URL = f"https://barbican.example.org:9311/v1/secrets/{SECRET_ID}"
BY_URL = {"secret_ref": SECRET_URL}
BY_FILE = {"file": "/etc/tacker/k8s-mgmt/secrets/worker"}
NOT_KEPT = {"not_kept": True}

# For the tests: the attribute, and a secret that it may have.
VALUES: dict[str, str | None] = {
    **dict.fromkeys(
        f"{structure}.{prefix}{name}"
        for structure, prefix in (
            ("ansible", ""),
            ("master_node", ""),
            ("worker_node", ""),
            ("external_lb_param", "ssh_"),
            ("bastion", ""),
        )
        for name in ("password", "private_key", "private_key_passphrase")
    ),
    "proxy.http_proxy": "http://user:s3cret@proxy:3128",
    "proxy.https_proxy": "http://user:s3cret@proxy:3128",
    "cluster.offline.files_repo": "https://user:s3cret@files.example.org",
    **dict.fromkeys(OPTION_SECRETS),
    **{f"{name}.*.password": None for name in LISTED_SECRETS},
}


def value_of(name: str) -> str:
    if name.endswith("private_key"):
        return KEY
    return VALUES[name] or f"s3cret of {name}"


def with_secret(name: str, value: Any) -> dict[str, Any]:
    """A whole request with this secret in it."""
    structure, _, attribute = name.rpartition(".")
    if structure.endswith(".*"):
        listed = structure.removesuffix(".*")
        return changed({listed: [{**LISTED_SECRETS[listed], attribute: value}]})
    if name in OPTION_SECRETS:
        return changed(with_option(name, value))
    changes = {name: value}
    if structure == "bastion":
        changes |= {"bastion.ip_address": "10.99.0.1", "bastion.username": "jump"}
    if attribute.endswith("_passphrase"):
        changes[name.removesuffix("_passphrase")] = KEY
    return changed(changes)


def written(name: str) -> str:
    """The attribute as messages name it."""
    return name.replace("*", "0")


def compared(made: ClusterRequest) -> ClusterRequest:
    """Without how the parameters came about."""
    own = {"references": (), "resolved": (), "changed_logins": frozenset()}
    return made.model_copy(update=own | {"warnings": ()})


def never(reference: Reference) -> NoReturn:
    raise AssertionError(f"{reference} was resolved")


def dictionary(secrets: Mapping[str, str]) -> Callable[[Reference], str]:
    """A resolver that knows these, by what a reference names."""

    def resolve(reference: Reference) -> str:
        if reference.target not in secrets:
            raise Unresolved("leads nowhere")
        return secrets[reference.target]

    return resolve


def without(body: dict[str, Any]) -> Any:
    """What is kept of a request."""
    return reader.without_secrets(request(body))["k8s_cluster_installation_param"]
