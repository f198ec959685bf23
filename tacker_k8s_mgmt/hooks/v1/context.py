"""One call of a hook of Tacker's v1 API: its parameters, and its site."""

from collections.abc import Collection
from typing import Any

from oslo_config import cfg

from tacker_k8s_mgmt.hooks.context import Hook
from tacker_k8s_mgmt.hooks.v1 import checkpoint, database, requests
from tacker_k8s_mgmt.hooks.v1.keystone import secrets_of
from tacker_k8s_mgmt.hooks.v1.site import V1Site
from tacker_k8s_mgmt.request.params import InstallParams


class V1Hook(Hook[V1Site]):
    """One call of a hook, with what Tacker's v1 API passes.

    :param request: None for the rollback of an instantiation.
    :param stacks: ids of the stacks of the group's members that a scaling is about.
    :param vnf: what ``instantiate_end`` gets under this name.
    """

    def __init__(
        self,
        name: str,
        context: Any,
        vnf_instance: Any,
        request: Any = None,
        stacks: Collection[str] = (),
        vnf: Any = None,
    ) -> None:
        super().__init__(name, vnf_instance.id, cfg.CONF)
        self.context = context
        self.instance = vnf_instance
        self.request = request
        self.stacks = stacks
        self._vnf = vnf

    def parsed(self, wrong: str) -> InstallParams | None:
        """The parameters of an instantiation; see :func:`.requests.parse`."""
        secrets = secrets_of(self.context, self.instance)
        return requests.parse(self.instance, self.request, wrong, secrets)

    def merged(self, wrong: str) -> InstallParams | None:
        """The parameters of a later operation; see :func:`.requests.merged`."""
        secrets = secrets_of(self.context, self.instance)
        # Tacker ends a retry of a scale-out without calling the hook.
        again = self.name != "scale_end"
        return requests.merged(
            self.instance, self.request, wrong, secrets, retried=again
        )

    def begin(self, point: int | None) -> None:
        """Store how far the operation is, and give Tacker's database back."""
        if point is not None:
            checkpoint.save(self.context, self.instance, point, self._vnf)
        database.release(self.context)

    def site(self, params: InstallParams) -> V1Site:
        """What an operation on this VNF instance may touch."""
        return V1Site(
            self.context,
            self.instance,
            params,
            self.options,
            self.state_path,
            self.name,
        )
