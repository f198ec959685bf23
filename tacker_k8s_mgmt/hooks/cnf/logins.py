# SPDX-License-Identifier: Apache-2.0
"""The token with which Tacker uses the Kubernetes VIM of a CNF."""

import tempfile
from collections.abc import Mapping
from typing import Any

from tacker.common import oidc_utils

from tacker_k8s_mgmt import errors


def token(access: Mapping[str, Any], ca_certificate: Any) -> str:
    """Return a VIM's token, or get one from its OpenID provider as Tacker does.

    :param access: the VIM's access information.
    :param ca_certificate: PEM, by which Tacker verifies the provider, too.
    :raises VimError: the provider gives none.
    """
    if "oidc_token_url" not in access:
        return str(access.get("bearer_token") or "")
    login = [
        access.get(name)
        for name in ("oidc_token_url", "username", "password", "client_id")
    ]
    try:
        with tempfile.NamedTemporaryFile("w", suffix=".pem") as file:
            file.write(str(ca_certificate or ""))
            file.flush()
            return str(
                oidc_utils.get_id_token_with_password_grant(
                    *login,
                    client_secret=access.get("client_secret"),
                    ssl_ca_cert=file.name if ca_certificate else None,
                )
            )
    except Exception as error:
        # Tacker's text has the provider's answer.
        raise errors.VimError(
            detail="The OpenID provider of the CNF's VIM gives no token "
            f"({type(error).__name__}).",
        ) from None
