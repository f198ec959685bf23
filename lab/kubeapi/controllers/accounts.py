# SPDX-License-Identifier: Apache-2.0
"""The default ServiceAccount of every namespace, and the contents of token Secrets."""

from ..admission import encode
from ..objects import Obj, is_terminating, name_of, namespace_of, with_metadata
from ..resources import NAMESPACES, SECRETS, SERVICE_ACCOUNTS
from ..store import Store
from ..tokens import Tokens

TOKEN_SECRET = "kubernetes.io/service-account-token"
_ACCOUNT_NAME = "kubernetes.io/service-account.name"
_ACCOUNT_UID = "kubernetes.io/service-account.uid"


def step(store: Store, tokens: Tokens, ca_certificate: str) -> None:
    """One round over namespaces and token Secrets."""
    for namespace in store.all(NAMESPACES):
        name = name_of(namespace)
        if is_terminating(namespace):
            continue
        if store.find(SERVICE_ACCOUNTS, name, "default") is None:
            store.create(SERVICE_ACCOUNTS, name, {"metadata": {"name": "default"}})
    for secret in store.all(SECRETS):
        if secret["type"] == TOKEN_SECRET:
            _keep(store, tokens, ca_certificate, secret)


def _keep(store: Store, tokens: Tokens, ca_certificate: str, secret: Obj) -> None:
    """Fill the Secret of an account, delete one whose account is not there."""
    namespace = namespace_of(secret) or ""
    annotations = secret["metadata"].get("annotations") or {}
    name = annotations.get(_ACCOUNT_NAME, "")
    account = store.find(SERVICE_ACCOUNTS, namespace, name)
    if account is None:
        store.delete(SECRETS, secret)
        return
    if "token" in (secret.get("data") or {}):
        return
    texts = {
        "token": tokens.of_secret(account, secret),
        "ca.crt": ca_certificate,
        "namespace": namespace,
    }
    filled = {key: encode(text) for key, text in texts.items()}
    annotations = {**annotations, _ACCOUNT_UID: account["metadata"]["uid"]}
    metadata = with_metadata(secret, annotations=annotations)["metadata"]
    data = {**(secret.get("data") or {}), **filled}
    store.replace(SECRETS, secret, metadata=metadata, data=data)
