"""Parameters without their secrets, for the screen.

Log lines are cleaned of secret texts wherever they stand (``cluster/redact.py``). Here
the secrets are taken out of the values instead, so that nothing else is changed and
none is too short to be found.
"""

import re
from collections.abc import Mapping
from typing import Any, TypeVar
from urllib.parse import urlsplit

from pydantic import BaseModel, SecretStr

from tacker_k8s_mgmt.cluster import redact

STARS = redact.STARS
_CREDENTIALS = re.compile(r"(?<=://)[^/\s]*@")
_ANYTHING = "x"

M = TypeVar("M", bound=BaseModel)


def masked(model: M) -> M:
    """A copy with stars in place of every secret.

    URLs keep their host, and a private key that is a path stays one.
    """
    changes = {name: _masked(value) for name, value in model}
    return model.model_copy(update=changes)


def _masked(value: Any) -> Any:
    if isinstance(value, BaseModel):
        return masked(value)
    if isinstance(value, SecretStr):
        return SecretStr(_shown(value.get_secret_value()))
    if isinstance(value, Mapping):
        return _variables(value)
    return value


def _shown(secret: str) -> str:
    """What of a secret may be seen."""
    if re.match(r"https?://", secret):
        return _without_credentials(secret)
    return STARS


def _without_credentials(url: str) -> str:
    return _CREDENTIALS.sub(f"{STARS}@", url)


def _variables(value: Any) -> Any:
    """Variables of any shape, as ``cluster/redact.py`` tells which are secret."""
    if isinstance(value, Mapping):
        return {
            name: STARS if _stands_for_secret(name) else _variables(inner)
            for name, inner in value.items()
        }
    if isinstance(value, list):
        return [_variables(inner) for inner in value]
    if isinstance(value, str):
        return STARS if "PRIVATE KEY-----" in value else _without_credentials(value)
    return value


def _stands_for_secret(name: str) -> bool:
    return any(redact.in_variables({name: _ANYTHING}))
