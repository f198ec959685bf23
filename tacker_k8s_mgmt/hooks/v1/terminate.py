"""The v1 API's hooks of terminate, like no others: the VMs go anyway.

So wrong parameters stop nothing that can go without them.
"""

import logging
from typing import Any

from oslo_log import log

from tacker_k8s_mgmt import errors
from tacker_k8s_mgmt.hooks import hints
from tacker_k8s_mgmt.hooks.v1 import checkpoint, keystone, requests, vim
from tacker_k8s_mgmt.hooks.v1.context import V1Hook
from tacker_k8s_mgmt.lifecycle.terminate import TerminateEnd, TerminateStart
from tacker_k8s_mgmt.request.params import InstallParams
from tacker_k8s_mgmt.request.secret_references import SECRET_REF, Resolver

LOG: logging.LoggerAdapter[logging.Logger] = log.getLogger(__name__)

_FORCEFUL = "FORCEFUL"
_SERVER_ONLY = ("ansible", "bastion")
_DIRECTORY_STAYS = (
    "Nothing was changed. Send `fail` for this operation, then a terminate request "
    "with other secrets in its additionalParams, or a FORCEFUL one, which leaves the "
    "inventory directory on the Ansible server."
)


def start(hook: V1Hook) -> None:
    """Refuse while other VNFs run on the cluster, or when it could not go whole."""
    if not requests.is_cluster(hook.instance):
        return
    _refuse_leftovers(hook)
    hook.begin(checkpoint.START)
    work = TerminateStart(vim.VimRegistry(hook.context, hook.instance))
    hook.run(work.steps(), (), hints.MENDED)
    _keep_vim(hook)


def end(hook: V1Hook) -> None:
    """Take away what we made; also the rollback of an instantiation."""
    if not requests.is_cluster(hook.instance):
        return
    hook.begin(checkpoint.END)
    vims = vim.VimRegistry(hook.context, hook.instance)
    params = _servers_login_if_any(hook)
    to_send = advice(params, hook.request)
    if params is None:
        hook.run(TerminateEnd(hook.instance.id, vims, None).steps(), (), to_send)
    else:
        with hook.site(params) as site:
            work = TerminateEnd(hook.instance.id, vims, site)
            hook.run(work.steps(), params.secrets(), to_send)
    keystone.forget_vim(hook.instance)


def _refuse_leftovers(hook: V1Hook) -> None:
    """Refuse to terminate when the directory, with logins in it, could not be deleted.

    A rollback, which has no request, and the deletion of a VNF with wrong parameters go
    on: it may be for these that nothing was made.

    :raises ParamError: the Ansible server's login cannot be had.
    """
    if getattr(hook.request, "termination_type", _FORCEFUL) == _FORCEFUL:
        return
    try:
        requests.parse(hook.instance, None)
    except errors.ParamError:
        return
    _servers_login(hook)


def _keep_vim(hook: V1Hook) -> None:
    """Keep the VIM for ``terminate_end``, if the Ansible server's login is in Barbican.

    Wrong parameters are no problem here: nothing can be looked up by them later.
    """
    try:
        read = _servers_login(hook, lambda _: None)
    except errors.ParamError:
        return
    if read is not None and any(
        use.reference.kind == SECRET_REF and use.location[0] in _SERVER_ONLY
        for use in read.references
    ):
        keystone.keep_vim(hook.instance)


def _servers_login_if_any(hook: V1Hook) -> InstallParams | None:
    """The parameters with the Ansible server's login, or None without it.

    They were refused before anything was made, or an older release took them; what does
    not depend on them must still go.
    """
    try:
        return _servers_login(hook)
    except errors.ParamError as error:
        LOG.warning(
            "VNF instance %s: an inventory directory, if there is any, stays on the "
            "Ansible server, since its place or the login is not known: %s",
            hook.instance.id,
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
    hook: V1Hook, resolver: Resolver | None = None
) -> InstallParams | None:
    secrets = resolver or keystone.secrets_of(hook.context, hook.instance)
    return requests.merged(
        hook.instance, hook.request, _DIRECTORY_STAYS, secrets, _SERVER_ONLY
    )
