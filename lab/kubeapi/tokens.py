# SPDX-License-Identifier: Apache-2.0
"""Bearer tokens of service accounts: JSON Web Tokens, signed with RS256.

Those of Secrets have no end and are good as long as the Secret is there; those that are
requested (``kubectl create token``) expire.
"""

import base64
import functools
import hashlib
import json
import time
import uuid
from typing import Any

from . import rsa
from .objects import Obj, dig, name_of, namespace_of
from .resources import SECRETS, SERVICE_ACCOUNTS
from .store import Store

_ISSUER = "https://kubernetes.default.svc.cluster.local"
_SECRETS_ISSUER = "kubernetes/serviceaccount"


def _url_encode(data: bytes) -> str:
    return base64.urlsafe_b64encode(data).decode().rstrip("=")


def _url_decode(text: str) -> bytes:
    return base64.urlsafe_b64decode(text + "===")


class Tokens:
    """Issues and checks the tokens of one cluster.

    :param signing_key: the cluster's secret; tokens of other clusters do not pass. ""
        has one made when the first token is issued.
    """

    def __init__(self, store: Store, signing_key: str = "") -> None:
        self._store = store
        self.signing_key = signing_key

    @functools.cached_property
    def _key(self) -> rsa.Key:
        if self.signing_key:
            return rsa.Key(*json.loads(self.signing_key))
        key = rsa.generate()
        self.signing_key = json.dumps([key.modulus, key.private])
        return key

    def _signed(self, claims: Obj) -> str:
        public = str(self._key.modulus).encode()
        key_id = _url_encode(hashlib.sha256(public).digest())
        parts = ({"alg": "RS256", "kid": key_id}, claims)
        encoded = [json.dumps(p, separators=(",", ":")).encode() for p in parts]
        text = ".".join(map(_url_encode, encoded))
        return f"{text}.{_url_encode(self._key.sign(text.encode()))}"

    def issue(self, account: Obj, seconds: int) -> str:
        """A token for a ServiceAccount that is good for that time."""
        now = int(time.time())
        reference = {"name": name_of(account), "uid": account["metadata"]["uid"]}
        about = {"namespace": namespace_of(account), "serviceaccount": reference}
        return self._signed(
            {
                "aud": [_ISSUER],
                "exp": now + seconds,
                "iat": now,
                "iss": _ISSUER,
                "jti": str(uuid.uuid4()),
                "kubernetes.io": about,
                "nbf": now,
                "sub": _user(account),
            }
        )

    def of_secret(self, account: Obj, secret: Obj) -> str:
        """The token that a Secret holds."""
        about = {
            "namespace": namespace_of(account),
            "secret.name": name_of(secret),
            "service-account.name": name_of(account),
            "service-account.uid": account["metadata"]["uid"],
        }
        claims = {f"kubernetes.io/serviceaccount/{k}": v for k, v in about.items()}
        return self._signed({"iss": _SECRETS_ISSUER, **claims, "sub": _user(account)})

    def user_of(self, token: str) -> str | None:
        """The user that the token speaks for; None if it is not a good one.

        :raises ValueError, KeyError: it is no token of ours at all.
        """
        text, _, signature = token.rpartition(".")
        if not self.signing_key or not self._key.has_signed(
            text.encode(), _url_decode(signature)
        ):
            return None
        claims = json.loads(_url_decode(text.partition(".")[2]))
        _, _, namespace, name = claims["sub"].split(":")
        account = self._store.find(SERVICE_ACCOUNTS, namespace, name)
        if account is None:
            return None
        if claims["iss"] == _SECRETS_ISSUER:
            good = self._is_kept(claims, account, token)
        else:
            uid = claims["kubernetes.io"]["serviceaccount"]["uid"]
            good = uid == account["metadata"]["uid"] and claims["exp"] > time.time()
        return str(claims["sub"]) if good else None

    def _is_kept(self, claims: Obj, account: Obj, token: str) -> bool:
        about: Any = {k.rpartition("/")[2]: v for k, v in claims.items()}
        where = namespace_of(account)
        secret = self._store.find(SECRETS, where, about["secret.name"])
        kept = base64.b64decode(dig(secret, "data.token")).decode()
        uid = account["metadata"]["uid"]
        return kept == token and about["service-account.uid"] == uid


def _user(account: Obj) -> str:
    return f"system:serviceaccount:{namespace_of(account)}:{name_of(account)}"
