# SPDX-License-Identifier: Apache-2.0
"""One call of a hook of Tacker's v2 API: its parameters, site and configuration.

The script is a process of its own, to which Tacker passes no configuration. So the part
that is needed is read here.

Tacker starts heals and scales by itself, after an alert. Their requests have no
``additionalParams`` (``prometheus_plugin_driver.py`` in ``sol_refactored/conductor``),
so they need a cluster whose secrets are all references. One that fails stays
``FAILED_TEMP`` and blocks the VNF instance, so what cannot work is refused when it is
enabled.
"""

import logging
import os
from collections.abc import Collection, Iterable, Mapping, Sequence
from functools import partial
from typing import Any

from oslo_config import cfg
from oslo_log import log

from tacker_k8s_mgmt import config, errors
from tacker_k8s_mgmt.hooks.advice import UNCHANGED_SEND_ROLLBACK
from tacker_k8s_mgmt.hooks.hook import Hook, named, scale_details
from tacker_k8s_mgmt.hooks.secret_sources import Secrets
from tacker_k8s_mgmt.hooks.v2.call import HookCall
from tacker_k8s_mgmt.hooks.v2.connections import VimEntry
from tacker_k8s_mgmt.hooks.v2.program import Streams
from tacker_k8s_mgmt.hooks.v2.stack import login_of, resources_of
from tacker_k8s_mgmt.remote.site import Site
from tacker_k8s_mgmt.request import reader as parameters
from tacker_k8s_mgmt.request.reader import ClusterRequest
from tacker_k8s_mgmt.topology.heat_stack import StackResource

# In vnfConfigurableProperties, by the operation that each has Tacker start.
_PROPERTIES = {"heal": "isAutohealEnabled", "scale": "isAutoscaleEnabled"}
_PROPERTY = "vnfConfigurableProperties"


def see_possible(call: HookCall) -> None:
    """Refuse to enable what later has no password.

    :raises ParamError: with every literal secret.
    """
    enabled = [name for name in _PROPERTIES.values() if _is_set(call, name)]
    literal = parameters.not_kept(_kept(call)) if enabled else ()
    if literal:
        reason = (
            f"is text, which is not kept, and {' and '.join(enabled)} has Tacker start "
            "operations that cannot repeat it; give a reference"
        )
        error = errors.ParamError([f"{name}: {reason}" for name in literal])
        error.hint = UNCHANGED_SEND_ROLLBACK
        raise error


def with_automatic(call: HookCall, otherwise: str) -> str:
    """What to send when a hook lacks parameters.

    :param otherwise: what an operator sends whose own request it was.
    """
    operation = call.operation.partition("_")[0]
    name = _PROPERTIES.get(operation, "")
    if call.names_parameters or not _is_set(call, name):
        return otherwise
    if not parameters.not_kept(call.stored):
        return otherwise
    return (
        f"{otherwise} If Tacker has started this operation after an alert, set {name} "
        f"to false until all secrets are references: its {operation}s cannot repeat "
        "any, and each blocks the VNF instance until `fail` is sent."
    )


def _kept(call: HookCall) -> Mapping[str, Any]:
    """The parameters that later operations find; at an instantiation, its own."""
    if call.names_parameters:
        return parameters.without_secrets(call.additional_params)
    return call.stored


def _is_set(call: HookCall, name: str) -> bool:
    places = (call.request, call.instance)
    properties = (place.get(_PROPERTY) or {} for place in places)
    # Tacker takes any value that Python takes for true.
    return bool(next((one[name] for one in properties if name in one), False))


# The v2 API does not pass the project of a request.
_PROJECT = ""


class V2Hook(Hook["V2Site"]):
    """One call of a hook, with what Tacker's v2 API passes."""

    def __init__(self, call: HookCall, conf: cfg.ConfigOpts) -> None:
        super().__init__(call.operation, call.vnf_id, conf, api="v2")
        self.call = call
        self.patch = call.patch

    def parsed(
        self, advice: str, needed: Collection[str] | None = None
    ) -> ClusterRequest | None:
        """The parameters of an instantiation's own request.

        :param advice: what the operator sends when they are wrong.
        :param needed: the structures whose secrets are needed, None for all.
        :raises ParamError: with every problem.
        """
        reader = self.reader(self._secrets(), needed)
        parse = partial(reader.read, self.call.additional_params)
        params = self._read(parse, advice)
        if params and params.expansion:
            self.call.note_profile(params.expansion.kept())
        return params

    def merged(
        self, advice: str, needed: Collection[str] | None = None, upgrade: bool = False
    ) -> ClusterRequest:
        """The stored parameters, updated by those of this request.

        :param advice: as above, and so is *needed*.
        :param upgrade: the Kubernetes version may change, too.
        :raises ParamError: with every problem.
        """
        update = self.reader(self._secrets(), needed).update
        given = (self.call.stored, self.call.additional_params)
        parse = partial(update, *given, upgrade=upgrade)
        params = self._read(parse, with_automatic(self.call, advice))
        if params is None:
            raise errors.TackerError(
                detail=f"The VNF instance {self.call.vnf_id} is no cluster."
            )
        return params

    def completed(
        self, advice: str, requests: Iterable[Mapping[str, Any]]
    ) -> ClusterRequest:
        """The stored parameters, with the secrets of former requests.

        :param advice: as above.
        :param requests: their ``additionalParams``, latest first.
        :raises ParamError: with every problem.
        """
        reader = self.reader(self._secrets())
        parse = partial(reader.with_former_secrets, self.call.stored, requests)
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
        return parameters.merged_metadata(metadata, self.call.patch)

    def vnfcs(self) -> Mapping[str, str]:
        """See :meth:`Hook.vnfcs`."""
        return {vnfc: server for vnfc, server, _ in self.call.vnfcs()}

    def site(self, params: ClusterRequest) -> "V2Site":
        """What an operation on this VNF instance may touch."""
        return V2Site(self, params)

    def _secrets(self) -> Secrets:
        return Secrets(partial(login_of, self.call.vim), self.options, _PROJECT)


class V2Site(Site):
    """Everything that an operation on one VNF instance may touch."""

    vims: VimEntry

    def __init__(self, hook: V2Hook, params: ClusterRequest) -> None:
        self._call = hook.call
        owner = self._call.vnf_id, _PROJECT
        super().__init__(*owner, params, hook.options, hook.state_path, hook.name)
        self.note = hook.note
        self.vims = VimEntry(self._call.instance, hook.state_path)

    def _stack(self) -> tuple[str, Sequence[StackResource]]:
        servers = self._params.wants_compute_hosts
        return self._call.stack, resources_of(self._call, servers)

    def _package_root(self) -> str:
        return self._call.package


#: Environment variable with the paths of configuration files, joined with ``:``.
VARIABLE = "TACKER_K8S_MGMT_CONFIG"
#: The script's log, below the driver's state directory.
LOG_FILE = "k8s-mgmt.log"
_LOG_PROJECT = "tacker"


def read() -> cfg.ConfigOpts:
    """Tacker's configuration: our group, and the directory for state.

    The options of Tacker's own code, such as its Heat client, are read into oslo's
    global object, where that code looks for them.

    :raises TackerError: naming the file that cannot be read.
    """
    paths = [path for path in os.environ.get(VARIABLE, "").split(":") if path]
    conf = cfg.ConfigOpts()
    config.register(conf)
    conf.register_opt(cfg.StrOpt("state_path", default="/var/lib/tacker"))
    log.register_options(conf)
    try:
        for options in (conf, cfg.CONF):
            options(
                args=[],
                project=_LOG_PROJECT,
                prog="tacker-conductor",
                default_config_files=paths or None,
                default_config_dirs=[] if paths else None,
            )
        for name in conf[config.GROUP]:
            # oslo checks a value on access.
            conf[config.GROUP][name]
        return conf
    except cfg.ConfigFilesNotFoundError as error:
        reason = f"there is no {', '.join(error.config_files)}"
    except cfg.ConfigFilesPermissionDeniedError as error:
        reason = f"{', '.join(error.config_files)} may not be read"
    except cfg.ConfigFileParseError as error:
        # Its text quotes the line.
        reason = f"{error.config_file} cannot be understood"
    except (cfg.Error, ValueError) as error:
        reason = str(error).rstrip(".")
    source = f", which {VARIABLE} names" if paths else ""
    raise errors.TackerError(
        detail=f"Tacker's configuration cannot be used: {reason}{source}.",
        hint="The conductor's user must be able to read it. It is looked for where "
        f"Tacker looks, or where {VARIABLE} says in the conductor's environment.",
    )


def begin(streams: Streams) -> cfg.ConfigOpts:
    """Read the configuration, and log as it says.

    :raises TackerError: it cannot be read, or the log not be written.
    """
    conf = read()
    path = f"{config.state_path(conf)}/{LOG_FILE}"
    try:
        streams.divert(path)
    except OSError as error:
        raise errors.TackerError(
            detail=f"The log {path} cannot be written: {error.strerror}.",
            hint="The conductor's user must be able to write there; see "
            "[k8s_mgmt] state_path in tacker.conf.",
        ) from None
    log_to(conf, path)
    return conf


def log_to(conf: cfg.ConfigOpts, path: str) -> None:
    """Write everything that this process logs to a file."""
    # After a rotation, the next process to log creates the file.
    os.umask(0o077)
    for name, value in (
        ("log_file", path),
        ("log_dir", None),
        ("log_config_append", None),
        ("use_stderr", False),
    ):
        conf.set_override(name, value)
    log.setup(conf, _LOG_PROJECT)
    logging.captureWarnings(True)
