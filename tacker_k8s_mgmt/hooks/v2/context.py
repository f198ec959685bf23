# SPDX-License-Identifier: Apache-2.0
"""One call of a hook of Tacker's v2 API: its parameters, and its site."""

from collections.abc import Collection, Iterable, Mapping, Sequence
from functools import partial
from typing import Any

from oslo_config import cfg

from tacker_k8s_mgmt import errors
from tacker_k8s_mgmt.hooks.context import Hook, named, scale_details
from tacker_k8s_mgmt.hooks.secrets import Secrets
from tacker_k8s_mgmt.hooks.v2 import automatic
from tacker_k8s_mgmt.hooks.v2.heat import login_of, resources_of
from tacker_k8s_mgmt.hooks.v2.request import Call
from tacker_k8s_mgmt.hooks.v2.vim import Connections
from tacker_k8s_mgmt.model import node_settings
from tacker_k8s_mgmt.remote.site import Site
from tacker_k8s_mgmt.request import params as parameters
from tacker_k8s_mgmt.request.params import InstallParams
from tacker_k8s_mgmt.topology.heat_stack import StackResource
from tacker_k8s_mgmt.topology.node_settings import Settings

# The v2 API does not pass the project of a request.
_PROJECT = ""


class V2Hook(Hook["V2Site"]):
    """One call of a hook, with what Tacker's v2 API passes."""

    def __init__(self, call: Call, conf: cfg.ConfigOpts) -> None:
        super().__init__(call.operation, call.vnf_id, conf, api="v2")
        self.call = call

    def parsed(
        self, advice: str, needed: Collection[str] | None = None
    ) -> InstallParams | None:
        """The parameters of an instantiation's own request.

        :param advice: what the operator sends when they are wrong.
        :param needed: the structures whose secrets are needed, None for all.
        :raises ParamError: with every problem.
        """
        given, secrets = self.call.additional_params, self._secrets()
        find_profile = self.find_profile(needed)
        parse = partial(
            parameters.parse,
            given,
            secrets,
            needed=needed,
            find_profile=find_profile,
            find_server=self.find_server,
            metadata=self.metadata,
        )
        params = self._read(parse, advice)
        if params and params.expansion:
            self.call.note_profile(params.expansion.kept())
        return params

    def merged(
        self, advice: str, needed: Collection[str] | None = None, upgrade: bool = False
    ) -> InstallParams:
        """The stored parameters, updated by those of this request.

        :param advice: as above, and so is *needed*.
        :param upgrade: the Kubernetes version may change, too.
        :raises ParamError: with every problem.
        """
        parse = partial(
            parameters.merged,
            self.call.stored,
            self.call.additional_params,
            self._secrets(),
            needed=needed,
            upgrade=upgrade,
            find_profile=self.find_profile(needed),
            find_server=self.find_server,
            metadata=self.metadata,
        )
        params = self._read(parse, automatic.advice(self.call, advice))
        if params is None:
            raise errors.TackerError(
                detail=f"The VNF instance {self.call.vnf_id} is no cluster."
            )
        return params

    def completed(
        self, advice: str, requests: Iterable[Mapping[str, Any]]
    ) -> InstallParams:
        """The stored parameters, with the secrets of former requests.

        :param advice: as above.
        :param requests: their ``additionalParams``, latest first.
        :raises ParamError: with every problem.
        """
        stored, secrets = self.call.stored, self._secrets()
        find_profile = self.find_profile()
        parse = partial(
            parameters.completed,
            stored,
            requests,
            secrets,
            find_profile=find_profile,
            find_server=self.find_server,
            metadata=self.metadata,
        )
        return self._read(parse, advice, retried=False)

    def kept_profile(self) -> Any:
        """See :meth:`Hook.kept_profile`."""
        return self.call.profile

    def package(self) -> str:
        """See :meth:`Hook.package`."""
        return self.call.package

    def details(self) -> Mapping[str, Any]:
        """See :meth:`Hook.details`."""
        name = self.call.instance.get("vnfInstanceName")
        # Of a rollback Tacker may have kept no grant request.
        details = named(name, self.call.grant_request.get("vnfLcmOpOccId"))
        scale = self.call.request
        # Work for a CNF that is scaled has no request of the cluster.
        if not scale or not self.name.startswith("scale_"):
            return details
        size = (scale["type"], scale["aspectId"], scale.get("numberOfSteps"))
        return {**details, **scale_details(*size)}

    @property
    def metadata(self) -> Mapping[str, Any]:
        """See :attr:`Hook.metadata`; those of a request are not stored yet."""
        metadata = self.call.instance.get("metadata") or {}
        if self.name != "modify_information_start":
            return metadata
        return node_settings.merged(metadata, self.call.patch)

    def settings(self) -> Settings:
        """The settings of nodes."""
        vnfcs = {vnfc: server for vnfc, server, _ in self.call.vnfcs()}
        return Settings.read(self.metadata, vnfcs, self.call.patch)

    def site(self, params: InstallParams) -> "V2Site":
        """What an operation on this VNF instance may touch."""
        return V2Site(self, params)

    def _secrets(self) -> Secrets:
        return Secrets(partial(login_of, self.call.vim), self.options, _PROJECT)


class V2Site(Site):
    """Everything that an operation on one VNF instance may touch."""

    vims: Connections

    def __init__(self, hook: V2Hook, params: InstallParams) -> None:
        self._call = hook.call
        owner = self._call.vnf_id, _PROJECT
        super().__init__(*owner, params, hook.options, hook.state_path, hook.name)
        self.note = hook.note
        self.vims = Connections(self._call.instance, hook.state_path)

    def _stack(self) -> tuple[str, Sequence[StackResource]]:
        servers = self._params.wants_compute_hosts
        return self._call.stack, resources_of(self._call, servers)

    def _package_root(self) -> str:
        return self._call.package
