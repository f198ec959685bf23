"""Parameters without their secrets, for the screen.

Log lines are cleaned of secret texts wherever they stand (``model/redaction.py``). Here
the secrets are taken out of the values instead, so that nothing else is changed and
none is too short to be found. Of free-form variables rather too much is hidden.
"""

import re
from collections.abc import Container, Mapping
from typing import Any, TypeVar

from pydantic import BaseModel, SecretStr

from tacker_k8s_mgmt.model import redaction
from tacker_k8s_mgmt.request import secret_fields
from tacker_k8s_mgmt.request.params import Proxy

STARS = redaction.STARS
_CREDENTIALS = re.compile(r"(?<=://)\S*@")

M = TypeVar("M", bound=BaseModel)


def masked(model: M, *, but: Container[str] = ()) -> M:
    """A copy with stars in place of every secret.

    A proxy keeps its host, and a private key that is a path stays one.

    :param but: names of fields that stay as they are.
    """
    found = {name: _masked(model, name, but) for name in type(model).model_fields}
    changes = {name: new for name, new in found.items() if new != getattr(model, name)}
    # Without changes that are none, the model still knows which values are defaults.
    return model.model_copy(update=changes) if changes else model


def _masked(owner: BaseModel, name: str, but: Container[str]) -> Any:
    value = getattr(owner, name)
    if isinstance(value, BaseModel):
        return masked(value, but=but)
    if isinstance(value, tuple):
        return tuple(
            masked(item, but=but) if isinstance(item, BaseModel) else item
            for item in value
        )
    if isinstance(value, Mapping):
        return _variables(value)
    if not isinstance(value, SecretStr) or name in but:
        return value
    text = value.get_secret_value()
    if isinstance(owner, Proxy):
        return SecretStr(_without_credentials(text))
    is_path = name == "private_key" and text.startswith("/")
    return value if is_path else SecretStr(STARS)


def _without_credentials(url: str) -> str:
    return _CREDENTIALS.sub(f"{STARS}@", url)


def _variables(value: Any) -> Any:
    """Variables of any shape, with nothing below the name of a secret."""
    if secret_fields.is_reference(value):
        return value
    if isinstance(value, Mapping):
        return {
            name: STARS if _hides(str(name), inner) else _variables(inner)
            for name, inner in value.items()
        }
    if isinstance(value, list):
        return [_variables(inner) for inner in value]
    if isinstance(value, str):
        return STARS if redaction.PRIVATE_KEY in value else _without_credentials(value)
    return value


def _hides(name: str, value: Any) -> bool:
    if value is None or isinstance(value, bool) or secret_fields.is_reference(value):
        return False
    return redaction.names_secret(name, value)
