# SPDX-License-Identifier: Apache-2.0
"""The OpenStack VIM of a VNF instance in the v1 API, with Tacker's settings for it."""

from collections.abc import Mapping
from typing import Any

from keystoneauth1.session import Session
from tacker import objects
from tacker.common import clients
from tacker.vnflcm import utils as vnflcm_utils
from tacker.vnfm import keystone
from tacker.vnfm.infra_drivers.openstack import heat_client

from tacker_k8s_mgmt.hooks.v1 import database
from tacker_k8s_mgmt.remote import heat

_VIM_KEY = "k8s_mgmt_login_vim"
_REGION_KEY = "k8s_mgmt_login_region"


class Heat(heat_client.HeatClient):  # type: ignore[misc]
    """Tacker's client with a time limit for each answer.

    A request that gets no answer, or an error that may pass, is sent again. So this
    client is for reads, deletions, and an update that Heat refuses while another one is
    in progress.
    """

    def __init__(self, access: Mapping[str, Any], region: str | None) -> None:
        opened = clients.OpenstackClients(access, region_name=region)
        heat.set_limits(opened.keystone)
        self.heat = opened.heat
        self.stacks = self.heat.stacks
        self.resources = self.heat.resources


def heat_of(context: Any, vnf_instance: Any) -> Heat:
    """A client of the Heat that has the VNF instance's stack."""
    vim = find_vim(context, vnf_instance.vim_connection_info)
    info = objects.VimConnectionInfo.obj_from_primitive(vim, context)
    return Heat(info.access_info, info.access_info.get("region"))


def login(context: Any, vnf_instance: Any) -> tuple[Session, str]:
    """A session as the VNF instance's VIM, and the region; "" for any."""
    infos = vnf_instance.vim_connection_info or _kept(vnf_instance)
    access = dict(find_vim(context, infos)["access_info"])
    region = access.pop("region", None)
    # The access information also says whether certificates are verified.
    session = keystone.Keystone().initialize_client(**access).session
    return session, region or ""


def keep_vim(vnf_instance: Any) -> None:
    """Keep the VIM whose Barbican has the secrets, in the VNF instance's metadata.

    Tacker removes the VIM from the instance before ``terminate_end``
    (``VnfLcmDriver.terminate_vnf``); without this, the default VIM would be used there.
    """
    infos = vnf_instance.vim_connection_info
    if not infos or not infos[0].vim_id:
        return
    kept = {_VIM_KEY: infos[0].vim_id}
    if region := (infos[0].access_info or {}).get("region"):
        kept[_REGION_KEY] = region
    _save(vnf_instance, kept)


def forget_vim(vnf_instance: Any) -> None:
    """Remove what :func:`keep_vim` keeps."""
    _save(vnf_instance, {})


def _save(vnf_instance: Any, kept: dict[str, str]) -> None:
    before = vnf_instance.vnf_metadata or {}
    # A new dict: Tacker does not notice a change inside the old one.
    after = {k: v for k, v in before.items() if k not in (_VIM_KEY, _REGION_KEY)} | kept
    if before != after:
        vnf_instance.vnf_metadata = after
        database.save(vnf_instance)


def _kept(vnf_instance: Any) -> list[Any]:
    metadata = vnf_instance.vnf_metadata or {}
    if _VIM_KEY not in metadata:
        return []
    region = metadata.get(_REGION_KEY)
    access = {"region": region} if region else {}
    return [objects.VimConnectionInfo(vim_id=metadata[_VIM_KEY], access_info=access)]


def find_vim(context: Any, infos: Any) -> Any:
    """The first of these VIMs, as registered; the default one if there are none."""
    return database.ask(context, lambda own: vnflcm_utils._get_vim(own, infos))
