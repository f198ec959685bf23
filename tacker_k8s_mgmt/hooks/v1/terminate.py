# SPDX-License-Identifier: Apache-2.0
"""The v1 API's hooks of terminate, which do not fit the table: the VMs go anyway.

So wrong parameters only stop what cannot be removed without them.
"""

from contextlib import nullcontext

from oslo_log import log as logging

from tacker_k8s_mgmt import errors
from tacker_k8s_mgmt.hooks import hints
from tacker_k8s_mgmt.hooks.context import SERVER_ONLY
from tacker_k8s_mgmt.hooks.v1 import openstack, profile, requests, vim
from tacker_k8s_mgmt.hooks.v1.context import V1Hook
from tacker_k8s_mgmt.lifecycle.terminate import (
    delete_volumes,
    refuse_exposed,
    terminate_end,
    terminate_start,
)
from tacker_k8s_mgmt.request import params as parameters
from tacker_k8s_mgmt.request.params import InstallParams
from tacker_k8s_mgmt.request.secret_references import SECRET_REF

LOG = logging.getLogger(__name__)

_FORCEFUL = "FORCEFUL"
_DIRECTORY_STAYS = (
    "Nothing was changed. Send `fail` for this operation, then a terminate request "
    "with other secrets in its additionalParams, or a FORCEFUL one, which leaves the "
    "inventory directory on the Ansible server."
)


def start(hook: V1Hook) -> None:
    """Refuse while other VNFs run on the cluster, or if a part of it would stay."""
    if not requests.is_cluster(hook.instance):
        return
    params = _refuse_leftovers(hook)
    if params:
        params = hook.with_logins(params, lambda: hook.merged(_DIRECTORY_STAYS))
    hook.begin()
    steps = terminate_start(vim.VimRegistry(hook.context, hook.instance))
    secrets = params.secrets() if params else ()
    with hook.site(params) if params else nullcontext() as site:
        if params and site:
            host = params.ansible.host
            exposed = refuse_exposed(hook.instance.id, site, host)
            volumes = delete_volumes(hook.dependencies(params, site))
            steps = (*steps, exposed, *volumes)
        hook.run(steps, secrets, hints.CHECK, followed_by="terminate_end")
    _keep_vim(hook)


def end(hook: V1Hook) -> None:
    """Remove what the driver has created; also the rollback of an instantiation."""
    if not requests.is_cluster(hook.instance):
        return
    hook.begin()
    vims = vim.VimRegistry(hook.context, hook.instance)
    params = _server_login_if_any(hook)
    secrets = params.secrets() if params else ()
    with hook.site(params) if params else nullcontext() as site:
        steps = terminate_end(hook.instance.id, vims, site)
        hook.run(steps, secrets, advice(params, hook.request is None))
    openstack.forget_vim(hook.instance)
    profile.keep(hook.instance, None)


def _refuse_leftovers(hook: V1Hook) -> InstallParams | None:
    """Refuse to terminate if the directory, which holds logins, could not be deleted.

    Returns the parameters of a termination that is refused while CNFs are exposed.
    A rollback, which has no request, and the deletion of a VNF with wrong parameters go
    on: these parameters may be why nothing was created.
    """
    if getattr(hook.request, "termination_type", _FORCEFUL) == _FORCEFUL:
        return None
    try:
        find_profile = hook.find_profile(SERVER_ONLY)
        parameters.parse(
            requests.stored(hook.instance),
            find_profile=find_profile,
            find_server=hook.find_server,
        )
    except errors.ParamError:
        return None
    return hook.merged(_DIRECTORY_STAYS, SERVER_ONLY)


def _keep_vim(hook: V1Hook) -> None:
    """Keep the VIM for ``terminate_end``, if the Ansible server's login is in Barbican.

    Wrong parameters do not matter here: they do not resolve later either.
    """
    try:
        read = hook.merged(_DIRECTORY_STAYS, SERVER_ONLY, lambda _: None)
    except errors.ParamError:
        return
    if read is not None and any(
        use.reference.kind == SECRET_REF and use.location[0] in SERVER_ONLY
        for use in read.references
    ):
        openstack.keep_vim(hook.instance)


def _server_login_if_any(hook: V1Hook) -> InstallParams | None:
    """The parameters with the Ansible server's login, or None without it.

    They were refused before anything was created, or an older release accepted them;
    what does not depend on them must still be removed.
    """
    try:
        return hook.merged(_DIRECTORY_STAYS, SERVER_ONLY)
    except errors.ParamError as error:
        LOG.warning(
            "VNF instance %s: an inventory directory, if there is any, stays on the "
            "Ansible server, since its place or the login is not known: %s",
            hook.instance.id,
            "; ".join(error.problems),
        )
        return None


def advice(params: InstallParams | None, is_rollback: bool) -> hints.Advice:
    """What to send when ``terminate_end`` has failed: `fail` would leave the rest.

    :param is_rollback: of an instantiation.
    """
    verb = "rollback" if is_rollback else "retry"
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
