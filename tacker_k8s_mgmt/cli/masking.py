"""Parameters without their secrets, for the screen.

Log lines are cleaned of secret texts wherever they stand (``cluster/redact.py``). Here
the secrets are taken out of the values instead, so that nothing else is changed and
none is too short to be found. Of free-form variables rather too much is hidden.
"""

import re
from collections.abc import Mapping
from typing import Any, TypeVar

from pydantic import BaseModel, SecretStr

from tacker_k8s_mgmt.cluster import redact
from tacker_k8s_mgmt.cluster.params import Proxy

STARS = redact.STARS
_CREDENTIALS = re.compile(r"(?<=://)\S*@")
_SECRET_NAME = re.compile(r"pass|secret|token|credential|auth|_?key$", re.IGNORECASE)
_PRIVATE_KEY = "PRIVATE KEY-----"

M = TypeVar("M", bound=BaseModel)


def masked(model: M) -> M:
    """A copy with stars in place of every secret.

    A proxy keeps its host, and a private key that is a path stays one.
    """
    found = {name: _masked(model, name, value) for name, value in model}
    changes = {name: new for name, new in found.items() if new != getattr(model, name)}
    # Without changes that are none, the model still knows which values are defaults.
    return model.model_copy(update=changes) if changes else model


def _masked(owner: BaseModel, name: str, value: Any) -> Any:
    if isinstance(value, BaseModel):
        return masked(value)
    if isinstance(value, Mapping):
        return _variables(value)
    if not isinstance(value, SecretStr):
        return value
    text = value.get_secret_value()
    if isinstance(owner, Proxy):
        return SecretStr(_without_credentials(text))
    is_path = name == "private_key" and text.startswith("/")
    return value if is_path else SecretStr(STARS)


def _without_credentials(url: str) -> str:
    return _CREDENTIALS.sub(f"{STARS}@", url)


def _variables(value: Any, *, secret: bool = False) -> Any:
    """Variables of any shape; *secret*: they stand below the name of a secret."""
    if isinstance(value, Mapping):
        return {
            name: _variables(inner, secret=secret or _is_secret(str(name)))
            for name, inner in value.items()
        }
    if isinstance(value, list):
        return [_variables(inner, secret=secret) for inner in value]
    if value is None or isinstance(value, bool):
        return value
    if secret or _PRIVATE_KEY in str(value):
        return STARS
    return _without_credentials(value) if isinstance(value, str) else value


def _is_secret(name: str) -> bool:
    known = any(redact.in_variables({name: STARS}))
    return known or _SECRET_NAME.search(name) is not None
