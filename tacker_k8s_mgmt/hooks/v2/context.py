"""One call of a hook of Tacker's v2 API: its parameters, and its site."""

import logging
from collections.abc import Collection
from functools import partial

from oslo_config import cfg
from oslo_log import log

from tacker_k8s_mgmt import errors
from tacker_k8s_mgmt.hooks import hints
from tacker_k8s_mgmt.hooks.context import Hook
from tacker_k8s_mgmt.hooks.secrets import Secrets
from tacker_k8s_mgmt.hooks.v2.heat import login_of
from tacker_k8s_mgmt.hooks.v2.request import Call
from tacker_k8s_mgmt.hooks.v2.site import PROJECT, V2Site
from tacker_k8s_mgmt.request import params as parameters
from tacker_k8s_mgmt.request.params import InstallParams
from tacker_k8s_mgmt.request.secret_references import Resolver

LOG: logging.LoggerAdapter[logging.Logger] = log.getLogger(__name__)


class V2Hook(Hook[V2Site]):
    """One call of a hook, with what Tacker's v2 API passes."""

    def __init__(self, call: Call, conf: cfg.ConfigOpts) -> None:
        super().__init__(call.operation, call.vnf_id, conf, api="v2")
        self.call = call

    def given(
        self, way_out: str, needed: Collection[str] | None = None
    ) -> InstallParams | None:
        """The parameters of an instantiation's own request.

        :param way_out: what the operator does about wrong ones at this moment.
        :param needed: the structures whose secrets are needed, None for all.
        :raises ParamError: with every problem.
        """
        with hints.told(way_out):
            read = parameters.parse(self.call.given, self._resolver(), needed=needed)
        return self._warned(read)

    def merged(
        self, way_out: str, needed: Collection[str] | None = None, upgrade: bool = False
    ) -> InstallParams:
        """What is kept of the parameters, with what this request gives in its place.

        :param way_out: as above, and so is *needed*.
        :param upgrade: the Kubernetes version may change, too.
        :raises ParamError: with every problem.
        """
        with hints.told(way_out):
            read = parameters.merged(
                self.call.stored,
                self.call.given,
                self._resolver(),
                needed=needed,
                upgrade=upgrade,
            )
        if read is None:
            raise errors.TackerError(
                detail=f"The VNF instance {self.call.vnf_id} is no cluster."
            )
        return self._warned(read) or read

    def site(self, params: InstallParams) -> V2Site:
        """What an operation on this VNF instance may touch."""
        return V2Site(self.call, params, self.options, self.state_path, self.name)

    def _warned(self, read: InstallParams | None) -> InstallParams | None:
        for warning in read.warnings if read else ():
            LOG.warning("VNF instance %s: %s", self.call.vnf_id, warning)
        return read

    def _resolver(self) -> Resolver:
        login = partial(login_of, self.call.vim)
        return Secrets(login, self.options, project_id=PROJECT)
