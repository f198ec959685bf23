"""What the v1 API's hooks of terminate need of the parameters: the VMs go anyway."""

import logging
from typing import Any

from oslo_log import log

from tacker_k8s_mgmt import errors
from tacker_k8s_mgmt.hooks import hints
from tacker_k8s_mgmt.hooks.v1 import keystone, requests
from tacker_k8s_mgmt.request.params import InstallParams
from tacker_k8s_mgmt.request.secret_references import SECRET_REF

LOG: logging.LoggerAdapter[logging.Logger] = log.getLogger(__name__)

_FORCEFUL = "FORCEFUL"
_SERVER_ONLY = ("ansible", "bastion")
_DIRECTORY_STAYS = (
    "Nothing was changed. Send `fail` for this operation, then a terminate request "
    "with other secrets in its additionalParams, or a FORCEFUL one, which leaves the "
    "inventory directory on the Ansible server."
)


def refuse_leftovers(
    context: Any, vnf_instance: Any, terminate_vnf_request: Any
) -> None:
    """Refuse to terminate when the directory, with logins in it, could not be deleted.

    A rollback, which has no request, and the deletion of a VNF with wrong parameters go
    on: it may be for these that nothing was made.

    :raises ParamError: the Ansible server's login cannot be had.
    """
    if getattr(terminate_vnf_request, "termination_type", _FORCEFUL) == _FORCEFUL:
        return
    try:
        requests.parse(vnf_instance, None)
    except errors.ParamError:
        return
    _servers_login(context, vnf_instance, terminate_vnf_request)


def keep_vim(vnf_instance: Any, terminate_vnf_request: Any) -> None:
    """Keep the VIM for ``terminate_end``, if the Ansible server's login is in Barbican.

    Wrong parameters are no problem here: nothing can be looked up by them later.
    """
    try:
        read = requests.merged(
            vnf_instance, terminate_vnf_request, None, lambda _: None, _SERVER_ONLY
        )
    except errors.ParamError:
        return
    if read is not None and any(
        use.reference.kind == SECRET_REF and use.location[0] in _SERVER_ONLY
        for use in read.references
    ):
        keystone.keep_vim(vnf_instance)


def servers_login(
    context: Any, vnf_instance: Any, terminate_vnf_request: Any
) -> InstallParams | None:
    """The parameters with the Ansible server's login, or None without it.

    They were refused before anything was made, or an older release took them; what does
    not depend on them must still go.
    """
    try:
        return _servers_login(context, vnf_instance, terminate_vnf_request)
    except errors.ParamError as error:
        LOG.warning(
            "VNF instance %s: an inventory directory, if there is any, stays on the "
            "Ansible server, since its place or the login is not known: %s",
            vnf_instance.id,
            "; ".join(error.problems),
        )
        return None


def advice(params: InstallParams | None, terminate_vnf_request: Any) -> hints.Advice:
    """What to do when ``terminate_end`` has failed: after `fail` nobody would go on.

    :param terminate_vnf_request: None for the rollback of an instantiation.
    """
    verb = "rollback" if terminate_vnf_request is None else "retry"
    directory = (
        f" and the directory {params.ansible.directory} on {params.ansible.host}"
        if params
        else ""
    )
    text = (
        f"`{verb}` goes on from here. Do not send `fail`: Tacker would not call the "
        f"driver again, and the VIM{directory} would stay."
    )
    return hints.Advice(text, refused=text)


def _servers_login(
    context: Any, vnf_instance: Any, terminate_vnf_request: Any
) -> InstallParams | None:
    secrets = keystone.secrets_of(context, vnf_instance)
    return requests.merged(
        vnf_instance, terminate_vnf_request, _DIRECTORY_STAYS, secrets, _SERVER_ONLY
    )
