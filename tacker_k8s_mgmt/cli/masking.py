"""Parameters without their secrets, for the screen.

Log lines are cleaned of secret texts wherever they stand (``model/redaction.py``). Here
the secrets are taken out of the values instead, so that nothing else is changed and
none is too short to be found. Of free-form variables rather too much is hidden.
"""

from collections.abc import Mapping
from typing import Any

from tacker_k8s_mgmt.model import redaction
from tacker_k8s_mgmt.request import secret_fields
from tacker_k8s_mgmt.request.params import InstallParams
from tacker_k8s_mgmt.request.secret_fields import Place

STARS = redaction.STARS


def masked(params: InstallParams, *, but_keys: bool = False) -> InstallParams:
    """A copy with stars in place of every secret.

    A proxy keeps its host, and a private key that is a path stays one.

    :param but_keys: whether private keys stay as they are.
    """

    def shown(place: Place, secret: str) -> str:
        is_kept = but_keys and place.form.by_path
        return secret if is_kept else place.form.masked(secret)

    made: InstallParams = secret_fields.visited(
        InstallParams, params, shown, lambda value, _: _variables(value)
    )
    return made


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
        return (
            STARS if redaction.PRIVATE_KEY in value else redaction.without_login(value)
        )
    return value


def _hides(name: str, value: Any) -> bool:
    if value is None or isinstance(value, bool) or secret_fields.is_reference(value):
        return False
    return redaction.names_secret(name, value)
