"""The default ServiceAccount of every namespace, and the contents of token Secrets."""

from ..admission import encode
from ..objects import Obj, name_of, namespace_of, with_metadata
from ..resources import NAMESPACES, SECRETS, SERVICE_ACCOUNTS
from ..store import Store
from ..tokens import Tokens

TOKEN_SECRET = "kubernetes.io/service-account-token"
_ACCOUNT_NAME = "kubernetes.io/service-account.name"
_ACCOUNT_UID = "kubernetes.io/service-account.uid"
_FOR_EVER = 10**9  # seconds: the token of a Secret has no practical end


def step(store: Store, tokens: Tokens, ca_certificate: str) -> None:
    """One round over namespaces and token Secrets."""
    for namespace in store.all(NAMESPACES):
        name = name_of(namespace)
        if store.find(SERVICE_ACCOUNTS, name, "default") is None:
            store.create(SERVICE_ACCOUNTS, name, {"metadata": {"name": "default"}})
    for secret in store.all(SECRETS):
        is_token = secret["type"] == TOKEN_SECRET
        if is_token and "token" not in (secret.get("data") or {}):
            _fill(store, tokens, ca_certificate, secret)


def _fill(store: Store, tokens: Tokens, ca_certificate: str, secret: Obj) -> None:
    namespace = namespace_of(secret) or ""
    annotations = secret["metadata"].get("annotations") or {}
    name = annotations.get(_ACCOUNT_NAME, "")
    account = store.find(SERVICE_ACCOUNTS, namespace, name)
    if account is None:
        return
    texts = {
        "token": tokens.issue(account, _FOR_EVER),
        "ca.crt": ca_certificate,
        "namespace": namespace,
    }
    filled = {key: encode(text) for key, text in texts.items()}
    annotations = {**annotations, _ACCOUNT_UID: account["metadata"]["uid"]}
    metadata = with_metadata(secret, annotations=annotations)["metadata"]
    data = {**(secret.get("data") or {}), **filled}
    store.replace(SECRETS, secret, metadata=metadata, data=data)
