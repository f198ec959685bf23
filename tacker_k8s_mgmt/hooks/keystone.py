"""The v1 API's OpenStack VIM of a VNF instance, with Tacker's own settings for it."""

from functools import partial
from typing import Any

from keystoneauth1.session import Session
from oslo_config import cfg
from tacker.vnflcm import utils as vnflcm_utils
from tacker.vnfm import keystone

from tacker_k8s_mgmt import config
from tacker_k8s_mgmt.hooks.secrets import Secrets


def secrets_of(context: Any, vnf_instance: Any) -> Secrets:
    """Tells the secrets that requests for a VNF instance give by reference."""
    config.register(cfg.CONF)
    options = cfg.CONF[config.GROUP]
    login = partial(_login, context, vnf_instance)
    return Secrets(login, options, vnf_instance.tenant_id)


def _login(context: Any, vnf_instance: Any) -> tuple[Session, str]:
    vim = vnflcm_utils._get_vim(context, vnf_instance.vim_connection_info)
    access = dict(vim["access_info"])
    region = access.pop("region", None)
    # It says whether certificates are verified.
    session = keystone.Keystone().initialize_client(**access).session
    return session, region or ""
