# SPDX-License-Identifier: Apache-2.0
"""The OpenStack VIM of a VNF instance in the v1 API, with Tacker's settings for it."""

from collections.abc import Mapping
from typing import Any

from keystoneauth1.session import Session
from tacker.common import clients
from tacker.vnfm import keystone
from tacker.vnfm.infra_drivers.openstack import heat_client

from tacker_k8s_mgmt.hooks.v1.instance import V1Instance
from tacker_k8s_mgmt.remote import heat


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


def heat_of(instance: V1Instance) -> Heat:
    """A client of the Heat that has the VNF instance's stack."""
    access = instance.vim_access()
    return Heat(access, access.get("region"))


def login(instance: V1Instance) -> tuple[Session, str]:
    """A session as the VNF instance's VIM, and the region; "" for any."""
    access = dict(instance.login_access())
    region = access.pop("region", None)
    # The access information also says whether certificates are verified.
    session = keystone.Keystone().initialize_client(**access).session
    return session, region or ""
