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
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

from oslo_config import cfg
from oslo_log import log

from tacker_k8s_mgmt import config, errors
from tacker_k8s_mgmt.hooks.advice import UNCHANGED_SEND_ROLLBACK, Advice
from tacker_k8s_mgmt.hooks.hook import Hook
from tacker_k8s_mgmt.hooks.secret_sources import Secrets
from tacker_k8s_mgmt.hooks.v2 import stack
from tacker_k8s_mgmt.hooks.v2.call import HookCall
from tacker_k8s_mgmt.hooks.v2.connections import VimEntry
from tacker_k8s_mgmt.hooks.v2.program import Streams
from tacker_k8s_mgmt.remote.site import Site
from tacker_k8s_mgmt.request import reader
from tacker_k8s_mgmt.request.profile_document import ResolvedProfile
from tacker_k8s_mgmt.request.reader import ClusterRequest
from tacker_k8s_mgmt.request.secrets import Resolver
from tacker_k8s_mgmt.topology.stack_resources import StackResource

# In vnfConfigurableProperties, by the operation that each has Tacker start.
_PROPERTIES = {"heal": "isAutohealEnabled", "scale": "isAutoscaleEnabled"}
_PROPERTY = "vnfConfigurableProperties"


def see_possible(call: HookCall) -> None:
    """Refuse to enable what later has no password.

    :raises ParamError: with every literal secret.
    """
    enabled = [name for name in _PROPERTIES.values() if _is_set(call, name)]
    literal = reader.not_kept(_kept(call)) if enabled else ()
    if literal:
        reason = (
            f"is text, which is not stored, and {' and '.join(enabled)} has Tacker "
            "start operations that cannot repeat it; give a reference"
        )
        error = errors.ParamError([f"{name}: {reason}" for name in literal])
        error.hint = UNCHANGED_SEND_ROLLBACK.text
        raise error


def _with_automatic(call: HookCall, otherwise: Advice) -> Advice:
    """What to send when a hook lacks parameters.

    :param otherwise: what an operator sends whose own request it was.
    """
    operation = call.operation.partition("_")[0]
    name = _PROPERTIES.get(operation, "")
    if call.names_parameters or not _is_set(call, name):
        return otherwise
    if not reader.not_kept(call.stored):
        return otherwise
    text = (
        f"{otherwise.text} If Tacker has started this operation after an alert, set "
        f"{name} to false until all secrets are references: its {operation}s cannot "
        "repeat any, and each blocks the VNF instance until `fail` is sent."
    )
    return replace(otherwise, text=text)


def _kept(call: HookCall) -> Mapping[str, Any]:
    """The parameters that later operations find; at an instantiation, its own."""
    if call.names_parameters:
        return reader.without_secrets(call.additional_params)
    return call.stored


def _is_set(call: HookCall, name: str) -> bool:
    places = (call.request, call.instance)
    properties = (place.get(_PROPERTY) or {} for place in places)
    # Tacker takes any value that Python takes for true.
    return bool(next((one[name] for one in properties if name in one), False))


# The v2 API does not pass the project of a request.
_PROJECT = ""


class V2Hook(Hook):
    """One call of a hook, with what Tacker's v2 API passes."""

    def __init__(self, call: HookCall, conf: cfg.ConfigOpts) -> None:
        super().__init__(call.operation, call.vnf_id, conf, api="v2")
        self.call = call
        self.patch = call.patch

    def request(
        self, *, wrong: Advice, former: Callable[[], Any] | None = None, **how: Any
    ) -> ClusterRequest | None:
        """See :meth:`Hook.request`.

        :param former: returns the requests that have the secrets which this one lacks.
        """
        call = self.call
        if former and call.state is not None and reader.not_kept(call.stored):
            return self.with_former_secrets(former, wrong)
        request = super().request(wrong=_with_automatic(call, wrong), **how)
        if request is None and not self.instantiates:
            raise errors.TackerError(
                detail=f"The VNF instance {self.vnf_id} is no cluster."
            )
        return request

    def parameters(self) -> tuple[Any, Any]:
        given = self.call.additional_params
        return (given, None) if self.instantiates else (self.call.stored, given)

    @property
    def metadata(self) -> Mapping[str, Any]:
        """See :attr:`Hook.metadata`; those of a request are not stored yet."""
        metadata = self.call.instance.get("metadata") or {}
        if self.name != "modify_information_start":
            return metadata
        return reader.merged_metadata(metadata, self.patch)

    @property
    def vnfcs(self) -> Mapping[str, str]:
        return {vnfc: server for vnfc, server, _ in self.call.vnfcs()}

    def kept_profile(self) -> Any:
        return self.call.profile

    def keep_profile(self, profile: ResolvedProfile | None) -> None:
        """See :meth:`Hook.keep_profile`; stored with the parameters."""
        if profile:
            self.call.note_profile(profile.kept())

    def forget(self) -> None:
        self.call.forget()

    def package(self) -> str:
        return self.call.package

    def resolver(self) -> Resolver:
        return Secrets(partial(stack.login_of, self.call.vim), self.options, _PROJECT)

    def begin(self) -> None:
        """Nothing: this process has no transaction open."""

    @property
    def vnf_name(self) -> str:
        return self.call.vnf_name

    @property
    def occurrence(self) -> str:
        return self.call.occurrence

    def scale(self) -> tuple[str, str, int | None] | None:
        scale = self.call.request
        if not scale:
            return None
        return scale["type"], scale["aspectId"], scale.get("numberOfSteps")

    def healed_vdus(self) -> Sequence[str]:
        # Those that were rebuilt are listed by other ids: Tacker makes one of the VDU
        # and the server (``_make_combination_id``).
        vdus = sorted({str(vnfc["vduId"]) for vnfc in self.call.resources()}, key=len)
        named = map(str, self.call.request.get("vnfcInstanceId") or ())
        return tuple(
            next((vdu for vdu in reversed(vdus) if vnfc.startswith(f"{vdu}-")), vnfc)
            for vnfc in named
        )

    def site(self, request: ClusterRequest) -> "V2Site":
        return V2Site(self, request)


class V2Site(Site):
    """Everything that an operation on one VNF instance may touch."""

    vims: VimEntry

    def __init__(self, hook: V2Hook, params: ClusterRequest) -> None:
        self._call = hook.call
        owner = self._call.vnf_id, _PROJECT
        super().__init__(*owner, params, hook.options, hook.state_path, hook.name)
        self.note = hook.note
        self.vims = VimEntry(self._call.instance, hook.state_path)

    def _list_stack(self) -> tuple[str, Sequence[StackResource]]:
        servers = self._params.wants_compute_hosts
        return self._call.stack, stack.resources_of(self._call, servers)

    def _package_root(self) -> str:
        return self._call.package


#: The script's log, below the driver's state directory.
LOG_FILE = "k8s-mgmt.log"


def read() -> cfg.ConfigOpts:
    """Tacker's configuration: our group, and the directory for state.

    The options of Tacker's own code, such as its Heat client, are read into oslo's
    global object, where that code looks for them.

    :raises TackerError: naming the file that cannot be read.
    """
    conf = cfg.ConfigOpts()
    config.register(conf)
    conf.register_opt(cfg.StrOpt("state_path", default="/var/lib/tacker"))
    log.register_options(conf)
    try:
        for options in (conf, cfg.CONF):
            config.read(options)
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
    source = f", which {config.VARIABLE} names" if config.files_of_environment() else ""
    raise errors.TackerError(
        detail=f"Tacker's configuration cannot be used: {reason}{source}.",
        hint="The conductor's user must be able to read it. It is looked for where "
        f"Tacker looks, or where {config.VARIABLE} says in the conductor's "
        "environment.",
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
    log.setup(conf, "tacker")
    logging.captureWarnings(True)
