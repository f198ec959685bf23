"""The site of an operation in the v2 API: what Tacker passes, joined with effects.

Heat is asked with Tacker's own client, so that what ``tacker.conf`` says about it, such
as certificates, holds here, too.
"""

import types
from collections.abc import Mapping, Sequence
from typing import Any
from urllib.parse import quote, urlencode

from keystoneauth1.session import Session
from tacker.sol_refactored import objects
from tacker.sol_refactored.infra_drivers.openstack import heat_utils

from tacker_k8s_mgmt.cluster.params import InstallParams
from tacker_k8s_mgmt.cluster.stack import StackResource
from tacker_k8s_mgmt.hooks.call import Call
from tacker_k8s_mgmt.hooks.connection import Connections
from tacker_k8s_mgmt.hooks.site import Site
from tacker_k8s_mgmt.remote import heat

# The v2 API does not say whose project a request is of.
PROJECT = ""
_LIMIT = 60  # seconds for an answer of Heat
_AGAIN = 2  # times, where nobody answers


class V2Site(Site):
    """Everything that an operation on one VNF instance may touch."""

    vims: Connections

    def __init__(
        self,
        call: Call,
        params: InstallParams,
        options: Any,
        state_path: str,
        operation: str,
    ) -> None:
        super().__init__(call.vnf_id, PROJECT, params, options, state_path, operation)
        self._call = call
        self.vims = Connections(call.instance)

    def _stack(self) -> tuple[str, Sequence[StackResource]]:
        servers = self._params.wants_compute_hosts
        return self._call.stack, resources_of(self._call, servers)

    def _package_root(self) -> str:
        return self._call.package


def login_of(vim: Mapping[str, Any]) -> tuple[Session, str]:
    """A session as the VNF's VIM, and the region; "" for any."""
    client = _client(vim)
    handle = client.auth_handle
    session = handle.get_session(handle.get_auth(), client.service_type).session
    return session, (vim.get("accessInfo") or {}).get("region") or ""


def resources_of(call: Call, servers: bool = False) -> tuple[StackResource, ...]:
    """Everything in the VNF's Heat stack.

    :param servers: tell the attributes of servers, too.
    :raises RemoteError: Heat did not answer as it should.
    """
    return heat.list_resources(_Resources(call.vim), call.stack, servers)


class _Resources:
    """Heat's resources, asked as heatclient's manager is."""

    def __init__(self, vim: Any) -> None:
        self._vim = vim
        self._client: Any = None

    def list(self, stack_id: str, **kwargs: Any) -> Sequence[Any]:
        found = self._get(f"stacks/{stack_id}/resources?{urlencode(kwargs)}")
        return [types.SimpleNamespace(**one) for one in found["resources"]]

    def get(self, stack_id: str, resource_name: str) -> Any:
        found = self._get(f"stacks/{stack_id}/resources/{quote(resource_name)}")
        return types.SimpleNamespace(**found["resource"])

    def _get(self, path: str) -> Any:
        if self._client is None:
            self._client = _client(self._vim)
        _, body = self._client.do_request(path, "GET", expected_status=[200])
        return body


def _client(vim: Mapping[str, Any]) -> Any:
    objects.register_all()
    info = objects.VimConnectionInfo.from_dict(dict(vim))
    client = heat_utils.HeatClient(info).client
    client.timeout, client.connect_retries = _LIMIT, _AGAIN
    return client
