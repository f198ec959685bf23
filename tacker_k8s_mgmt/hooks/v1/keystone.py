"""The v1 API's OpenStack VIM of a VNF instance, with Tacker's own settings for it."""

from functools import partial
from typing import Any

from keystoneauth1.session import Session
from oslo_config import cfg
from tacker import objects
from tacker.vnflcm import utils as vnflcm_utils
from tacker.vnfm import keystone

from tacker_k8s_mgmt import config
from tacker_k8s_mgmt.hooks.secrets import Secrets
from tacker_k8s_mgmt.hooks.v1 import database

_VIM_KEY = "k8s_mgmt_login_vim"
_REGION_KEY = "k8s_mgmt_login_region"


def secrets_of(context: Any, vnf_instance: Any) -> Secrets:
    """Tells the secrets that requests for a VNF instance give by reference."""
    config.register(cfg.CONF)
    options = cfg.CONF[config.GROUP]
    login = partial(_login, context, vnf_instance)
    return Secrets(login, options, vnf_instance.tenant_id)


def keep_vim(vnf_instance: Any) -> None:
    """Keep, in the VNF instance's metadata, as which VIM secrets are asked for.

    Tacker takes the VIM out of the instance before ``terminate_end``
    (``VnfLcmDriver.terminate_vnf``), which would then be told of the default VIM.
    """
    infos = vnf_instance.vim_connection_info
    if not infos or not infos[0].vim_id:
        return
    kept = {_VIM_KEY: infos[0].vim_id}
    if region := (infos[0].access_info or {}).get("region"):
        kept[_REGION_KEY] = region
    _save(vnf_instance, kept)


def forget_vim(vnf_instance: Any) -> None:
    """Take what :func:`keep_vim` keeps out of the metadata."""
    _save(vnf_instance, {})


def _save(vnf_instance: Any, kept: dict[str, str]) -> None:
    before = vnf_instance.vnf_metadata or {}
    others = {
        key: value
        for key, value in before.items()
        if key not in (_VIM_KEY, _REGION_KEY)
    }
    # A new dict: Tacker does not see a change inside the old one.
    if before != (after := {**others, **kept}):
        vnf_instance.vnf_metadata = after
        vnf_instance.save()


def _login(context: Any, vnf_instance: Any) -> tuple[Session, str]:
    infos = vnf_instance.vim_connection_info or _kept(vnf_instance)
    vim = database.ask(context, lambda own: vnflcm_utils._get_vim(own, infos))
    access = dict(vim["access_info"])
    region = access.pop("region", None)
    # It says whether certificates are verified.
    session = keystone.Keystone().initialize_client(**access).session
    return session, region or ""


def _kept(vnf_instance: Any) -> list[Any]:
    metadata = vnf_instance.vnf_metadata or {}
    if _VIM_KEY not in metadata:
        return []
    region = metadata.get(_REGION_KEY)
    access = {"region": region} if region else {}
    return [objects.VimConnectionInfo(vim_id=metadata[_VIM_KEY], access_info=access)]
