"""Bearer tokens of service accounts: signed, with an expiry, as JSON Web Tokens."""

import base64
import hashlib
import hmac
import json
import time

from .objects import Obj, name_of, namespace_of, random_suffix
from .resources import SERVICE_ACCOUNTS
from .store import Store

_ISSUER = "kubeapi"


def _url_encode(data: bytes) -> str:
    return base64.urlsafe_b64encode(data).decode().rstrip("=")


class Tokens:
    """Issues and checks the tokens of one cluster.

    :param signing_key: the cluster's secret; tokens of other clusters do not pass.
    """

    def __init__(self, store: Store, signing_key: str) -> None:
        self._store = store
        self.signing_key = signing_key

    def _sign(self, text: str) -> str:
        key = self.signing_key.encode()
        return _url_encode(hmac.new(key, text.encode(), hashlib.sha256).digest())

    def issue(self, account: Obj, seconds: float) -> str:
        """A token for a ServiceAccount that is good for that time."""
        subject = f"system:serviceaccount:{namespace_of(account)}:{name_of(account)}"
        claims = {
            "iss": _ISSUER,
            "sub": subject,
            "uid": account["metadata"]["uid"],
            "exp": int(time.time() + seconds),
            "jti": random_suffix(8),
        }
        header = {"alg": "HS256", "typ": "JWT"}
        text = ".".join(_url_encode(json.dumps(p).encode()) for p in (header, claims))
        return f"{text}.{self._sign(text)}"

    def user_of(self, token: str) -> str | None:
        """The user that the token speaks for; None if it is not a good one."""
        text, _, signature = token.rpartition(".")
        if not hmac.compare_digest(signature.encode(), self._sign(text).encode()):
            return None
        payload = text.partition(".")[2]
        claims = json.loads(base64.urlsafe_b64decode(payload + "==="))
        _, _, namespace, name = claims["sub"].split(":")
        account = self._store.find(SERVICE_ACCOUNTS, namespace, name)
        known = account is not None and account["metadata"]["uid"] == claims["uid"]
        return claims["sub"] if known and claims["exp"] > time.time() else None
