# SPDX-License-Identifier: Apache-2.0
"""Heat and Keystone, with the settings of Tacker's v2 API, such as certificates.

Tacker's own client (``sol_refactored/infra_drivers/openstack/heat_utils.py``) is only
used where tokens come by OAuth 2.0: its import, with the database and the message queue
that it pulls in, takes half of the time of a short hook.
"""

import functools
import types
from collections.abc import Mapping, Sequence
from typing import Any
from urllib.parse import quote, urlencode

# Registers the options.
import tacker.sol_refactored.common.config  # noqa: F401
from keystoneauth1.adapter import Adapter
from keystoneauth1.identity import v3
from keystoneauth1.session import Session
from oslo_config import cfg

from tacker_k8s_mgmt.hooks.v2.call import HookCall
from tacker_k8s_mgmt.remote import heat
from tacker_k8s_mgmt.topology.stack_resources import StackResource

_SERVICE = "orchestration"


def login_of(vim: Mapping[str, Any]) -> tuple[Session, str]:
    """A session as the VNF's VIM, and the region; "" for any."""
    region = (vim.get("accessInfo") or {}).get("region") or ""
    return _adapter(vim).session, region


def resources_of(call: HookCall, servers: bool = False) -> tuple[StackResource, ...]:
    """Everything in the VNF's Heat stack, asked once in a call of a hook.

    :param servers: include the attributes of servers.
    :raises RemoteError: Heat did not answer as it should.
    """
    if servers not in call.listed:
        asked = _Resources(call.vim), call.stack, servers
        call.listed[servers] = heat.list_resources(*asked)
    return call.listed[servers]


def servers_of(call: HookCall, failed: bool = True) -> list[StackResource]:
    """The servers in the VNF's Heat stack.

    :param failed: whether those count that have failed.
    """
    return [
        resource
        for resource in resources_of(call)
        if resource.type == "OS::Nova::Server"
        and resource.physical_id
        and resource.status != "DELETE_COMPLETE"
        and (failed or not resource.status.endswith("_FAILED"))
    ]


class _Resources:
    """Heat's resources, with the interface of heatclient's manager."""

    def __init__(self, vim: Mapping[str, Any]) -> None:
        self._vim = vim

    @functools.cached_property
    def _adapter(self) -> Adapter:
        return _adapter(self._vim)

    def list(self, stack_id: str, **kwargs: Any) -> Sequence[Any]:
        body = self._get(f"stacks/{stack_id}/resources?{urlencode(kwargs)}")
        return [types.SimpleNamespace(**resource) for resource in body["resources"]]

    def get(self, stack_id: str, resource_name: str) -> Any:
        body = self._get(f"stacks/{stack_id}/resources/{quote(resource_name)}")
        return types.SimpleNamespace(**body["resource"])

    def _get(self, path: str) -> Any:
        # The adapter is opened here, where the caller handles errors.
        return self._adapter.get(path).json()


def _adapter(vim: Mapping[str, Any]) -> Adapter:
    # Earlier releases of Tacker lack some of these options.
    by_oauth = getattr(cfg.CONF.v2_vnfm, "use_oauth2_mtls_for_heat", False)
    adapter = _tackers(vim) if by_oauth else _own(vim)
    heat.set_limits(adapter)
    return adapter


def _own(vim: Mapping[str, Any]) -> Adapter:
    options = cfg.CONF.v2_vnfm
    verify = getattr(options, "heat_verify_cert", False)
    if verify and options.heat_ca_cert_file:
        verify = options.heat_ca_cert_file
    access = vim["accessInfo"]
    password = v3.Password(
        auth_url=vim["interfaceInfo"]["endpoint"],
        username=access["username"],
        password=access["password"],
        project_name=access["project"],
        user_domain_name=access["userDomain"],
        project_domain_name=access["projectDomain"],
    )
    return Adapter(Session(auth=password, verify=verify), service_type=_SERVICE)


def _tackers(vim: Mapping[str, Any]) -> Adapter:
    from tacker.sol_refactored import objects
    from tacker.sol_refactored.infra_drivers.openstack import heat_utils

    objects.register_all()
    info = objects.VimConnectionInfo.from_dict(dict(vim))
    client = heat_utils.HeatClient(info).client
    handle = client.auth_handle
    adapter: Adapter = handle.get_session(handle.get_auth(), _SERVICE)
    adapter.endpoint_override = client.base_url
    return adapter
