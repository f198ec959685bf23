"""One call of a hook of Tacker's v1 API, and its site."""

from typing import Any

from oslo_config import cfg

from tacker_k8s_mgmt.hooks.context import Hook
from tacker_k8s_mgmt.hooks.v1 import database
from tacker_k8s_mgmt.hooks.v1.site import V1Site
from tacker_k8s_mgmt.request.params import InstallParams


class V1Hook(Hook):
    """One call of a hook, with what Tacker's v1 API passes."""

    def __init__(self, name: str, context: Any, vnf_instance: Any) -> None:
        super().__init__(name, vnf_instance.id, cfg.CONF)
        database.release(context)
        self._context = context
        self._instance = vnf_instance

    def site(self, params: InstallParams) -> V1Site:
        """What an operation on this VNF instance may touch."""
        return V1Site(
            self._context,
            self._instance,
            params,
            self.options,
            self.state_path,
            self.name,
        )
