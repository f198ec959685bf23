# SPDX-License-Identifier: Apache-2.0
"""Parameters without their secrets, for the screen.

``model/redaction.py`` replaces the texts of secrets in log lines. Here the values
themselves are masked, so short secrets are, too, and nothing else changes. Of free-form
variables rather too much is masked.
"""

from typing import Any

from tacker_k8s_mgmt.request import secret_fields
from tacker_k8s_mgmt.request.params import InstallParams
from tacker_k8s_mgmt.request.secret_fields import Place


def masked(params: InstallParams, *, but_keys: bool = False) -> InstallParams:
    """A copy with stars in place of every secret.

    A proxy keeps its host, and a private key that is a path stays one.

    :param but_keys: whether private keys stay unmasked.
    """

    def shown(place: Place, secret: Any) -> Any:
        is_key = but_keys and place.form.by_path
        is_named = place.is_variable and secret_fields.is_reference(secret)
        return secret if is_key or is_named else place.form.masked(secret)

    return secret_fields.changed(InstallParams, params, shown, whole=True)
