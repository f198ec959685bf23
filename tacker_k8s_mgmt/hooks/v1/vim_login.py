# SPDX-License-Identifier: Apache-2.0
"""The login in a VIM of Tacker's registry, of which Tacker keeps the key in Barbican.

Tacker reads it anew for each operation of a CNF, and can change it while it is in use.
"""

from typing import Any

from oslo_log import log as logging
from tacker.vnfm import vim_client

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
