# SPDX-License-Identifier: Apache-2.0
"""The login in a VIM of Tacker's registry, of which Tacker keeps the key in Barbican.

Tacker reads it for each operation of a CNF. Its plugin refuses to change a VIM that a
VNF uses (``NfvoPlugin._get_vim``). The CNFs on a cluster need the login that it has
now, so :func:`update` leaves that check out.
"""

from collections.abc import Mapping
from typing import Any

from oslo_log import log as logging
from pydantic import SecretStr
from tacker.vnfm import vim_client

from tacker_k8s_mgmt import errors
from tacker_k8s_mgmt.model.cluster import ClusterAccess

LOG = logging.getLogger(__name__)

_TOKEN, _CA = "bearer_token", "ssl_ca_cert"


def of(access: ClusterAccess) -> dict[str, Any]:
    """The attribute ``auth_cred`` of a VIM; a change of it has to name both."""
    return {_TOKEN: access.token.get_secret_value(), _CA: access.ca_certificate}


def is_current(context: Any, vim_id: str, access: ClusterAccess) -> bool:
    """Whether a VIM has this login; False also where its own cannot be read."""
    try:
        found = vim_client.VimClient().get_vim(context, vim_id)["vim_auth"]
    except Exception as error:
        # Barbican, its client and Tacker raise many kinds; a text may have the login.
        name = type(error).__name__
        LOG.warning("The login of VIM %s cannot be read: %s", vim_id, name)
        return False
    return {name: found.get(name) for name in (_TOKEN, _CA)} == of(access)


def read(context: Any, vim_id: str) -> ClusterAccess:
    """The login of a VIM.

    :raises VimError: it cannot be read.
    """
    try:
        found = vim_client.VimClient().get_vim(context, vim_id)["vim_auth"]
        return ClusterAccess(SecretStr(str(found[_TOKEN])), str(found[_CA]))
    except Exception as error:
        # As above.
        raise errors.VimError(
            detail=f"The login of VIM {vim_id} cannot be read from Tacker "
            f"({type(error).__name__})."
        ) from None


def update(plugin: Any, context: Any, vim_id: str, change: Mapping[str, Any]) -> None:
    """Change a VIM with Tacker's plugin, also while VNFs use it.

    :param plugin: Tacker's ``NfvoPlugin``.
    :param change: attributes of the VIM, merged into those that it has.
    """

    class Updater(type(plugin)):  # type: ignore[misc]
        """The plugin, for which no VIM is in use."""

        def is_vim_still_in_use(self, context: Any, vim_id: str) -> None:
            """None: it is not asked for."""

    updater = object.__new__(Updater)
    updater.__dict__.update(vars(plugin))
    updater.update_vim(context, vim_id, {"vim": dict(change)})
