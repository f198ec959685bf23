# SPDX-License-Identifier: Apache-2.0
"""One call of a hook: its parameters, and how its steps are run and recorded.

An entry of the API's table says how a hook reads its parameters and what it does. There
is one way to run an entry. The tables are in ``v1/driver.py`` and ``v2/driver.py``,
where a hook that does not fit this pattern is a function.

What a request that modifies a VNF instance changes of its cluster is found here, too.
"""

import abc
import functools
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import KW_ONLY, dataclass
from typing import Any, Generic, Protocol, TypeVar

from oslo_config import cfg
from oslo_log import log as logging

from tacker_k8s_mgmt import config, errors, journal
from tacker_k8s_mgmt.features.table import FEATURES
from tacker_k8s_mgmt.hooks.advice import RESUME, attached
from tacker_k8s_mgmt.model import playbooks
from tacker_k8s_mgmt.model.playbooks import Progress
from tacker_k8s_mgmt.operations.state import OperationContext
from tacker_k8s_mgmt.operations.step import Runner, Step
from tacker_k8s_mgmt.remote import operator_server
from tacker_k8s_mgmt.remote.local_files import ProfileFiles
from tacker_k8s_mgmt.remote.site import Site
from tacker_k8s_mgmt.remote.timing import Clock
from tacker_k8s_mgmt.request import profiles
from tacker_k8s_mgmt.request.operator_server import OperatorServer
from tacker_k8s_mgmt.request.profile_document import Source
from tacker_k8s_mgmt.request.reader import ClusterRequest, RequestReader
from tacker_k8s_mgmt.request.secrets import Resolver
from tacker_k8s_mgmt.text import Redactor, in_line

LOG = logging.getLogger(__name__)

S = TypeVar("S", bound=Site)
P = TypeVar("P", ClusterRequest, ClusterRequest | None)

#: The structures with the secrets that the end of a cluster needs: its VMs go anyway.
SERVER_ONLY = ("ansible", "bastion")
# The request cannot be corrected in an operation; what it refers to can.
_MEND = "If the request is right, mend what it refers to and send `retry`. If not:"
_LOG_SECONDS = 60.0  # between two lines about one play


class Hook(abc.ABC, Generic[S]):
    """One call of a hook for one VNF instance.

    :param conf: Tacker's configuration.
    :param api: ``v1`` or ``v2``.
    """

    def __init__(
        self, name: str, vnf_id: str, conf: cfg.ConfigOpts, api: str = "v1"
    ) -> None:
        config.register(conf)
        self.options = conf[config.GROUP]
        self.state_path = config.state_path(conf)
        self.name = name
        self.clock = Clock()
        #: ``metadata`` of a request that modifies the VNF instance.
        self.patch: Mapping[str, Any] = {}
        self._vnf_id = vnf_id
        self._play = 0
        self._logged = 0.0
        self._api = api

    @functools.cached_property
    def _journal(self) -> journal.Journal:
        # Created on first use: most VNFs are not ours.
        keep, place = self.options.journal_keep, (self.state_path, self._vnf_id)
        return journal.Journal(*place, self.name, LOG.warning, api=self._api, keep=keep)

    def _read(self, parse: Callable[[], P], advice: str, retried: bool = True) -> P:
        """Read parameters, and log their warnings.

        :param advice: what the operator sends when they are wrong.
        :param retried: whether Tacker calls the hook again at a retry.
        :raises ParamError: with every problem.
        """
        try:
            params = parse()
        except errors.ParamError as exc:
            exc.hint = advice or exc.hint
            if exc.retryable and retried:
                exc.hint = f"{_MEND} {exc.hint}"
            raise
        for warning in params.warnings if params else ():
            LOG.warning("VNF instance %s: %s", self._vnf_id, warning)
        return params

    def find_profile(self, needed: Collection[str] | None = None) -> Source:
        """Finds the profile that a request or the stored parameters name.

        What it stood for at instantiation is kept, and holds for the cluster's life.

        :param needed: see :class:`.RequestReader`; the end of a cluster needs no
            profile.
        """
        kept = self.kept_profile()
        files = ProfileFiles(self.state_path, self.package)
        if self.name == "instantiate_start":
            return files
        if self.name.startswith("instantiate_"):
            return profiles.kept_or(kept, files)
        without = profiles.nothing if needed == SERVER_ONLY else profiles.lost
        return profiles.kept_or(kept, without)

    def find_server(self) -> OperatorServer | None:
        """Finds the operator's Ansible server, for parameters without one.

        :raises TackerConfigError: ``tacker.conf`` is wrong.
        """
        return operator_server.find(self.options, self._vnf_id)

    def reader(
        self, resolver: Resolver, needed: Collection[str] | None = None
    ) -> RequestReader:
        """Reads the parameters; see :class:`.RequestReader`."""
        find = (self.find_profile(needed), self.find_server)
        return RequestReader(resolver, needed, *find, self.metadata)

    @abc.abstractmethod
    def kept_profile(self) -> Any:
        """What is kept of the cluster's profile; None if nothing is."""

    @abc.abstractmethod
    def package(self) -> str:
        """The directory of the VNF package."""

    def with_logins(self, params: ClusterRequest, read: Callable[[], P]) -> P:
        """Parameters with the logins of the VMs, if work on these is to be done.

        :param params: without them.
        :param read: reads all of them; without some, that work is left out.
        """
        if not params.deletes_volumes:
            return params
        try:
            return read()
        except errors.ParamError as error:
            LOG.warning("VNF instance %s: %s", self._vnf_id, error)
            return params

    def begin(self) -> None:
        """Prepare for work; called once the parameters are read."""

    @property
    def metadata(self) -> Mapping[str, Any]:
        """Those of the VNF instance, as the operation leaves them."""
        return {}

    def vnfcs(self) -> Mapping[str, str]:
        """The server of each VNFC, by the VNFC's id."""
        return {}

    @abc.abstractmethod
    def site(self, params: ClusterRequest) -> S:
        """What an operation on this VNF instance may touch."""

    def details(self) -> Mapping[str, Any]:
        """What the journal records of the operation at its start; see :func:`named`."""
        return {}

    def run(
        self,
        steps: Sequence[Step],
        secrets: Sequence[str],
        advice: Callable[[Exception], str],
        left: Callable[[], str] = lambda: "",
        followed_by: str = "",
    ) -> None:
        """Run the steps.

        :param secrets: redacted in every error text.
        :param advice: returns what the operator sends after an error.
        :param left: returns what a failure leaves behind.
        :param followed_by: the hook of the same operation that is recorded next.
        """
        redact, place = Redactor(secrets), (self._journal, self.clock)
        details = self.details()
        runner = Runner(self.name, *place, redact, left, advice, followed_by, details)
        try:
            runner.run(steps)
        finally:
            self._write_metrics()

    def _write_metrics(self) -> None:
        """Add the operation to the metrics; it does not fail because of them."""
        directory = self.options.metrics_directory
        if not directory:
            return
        try:
            # Imported late: most sites have no use for it.
            from tacker_k8s_mgmt.features import metrics

            metrics.write(self.state_path, directory)
        except Exception as error:
            # Whatever there may be in a file.
            LOG.warning("The metrics of %s are not up to date: %s", directory, error)

    def dependencies(self, params: ClusterRequest, site: Site) -> OperationContext:
        """The dependencies of an operation on the cluster."""
        return OperationContext(
            params,
            self._vnf_id,
            site,
            self.clock,
            ready_timeout=self.options.ready_timeout,
            poll_interval=self.options.poll_interval,
            on_progress=self.progress,
            metadata=self.metadata,
            patch=self.patch,
            vnfcs=self.vnfcs(),
            features=FEATURES,
        )

    def progress(self, progress: Progress) -> None:
        """Record a playbook's progress: each change in the journal, each play, and each
        minute of a long one, in the log.
        """
        now = self.clock.now()
        if progress.play_number != self._play or now - self._logged >= _LOG_SECONDS:
            self._play, self._logged = progress.play_number, now
            texts = filter(None, (progress.where(), progress.estimate()))
            LOG.info("%s: %s", self.name, "; ".join(texts))
        self._journal.record("progress", **playbooks.recorded(progress))

    def note(self, text: str) -> None:
        """Record what delays the operation, in the journal and in the log."""
        LOG.warning("%s: %s", self.name, in_line(text))
        self._journal.record("note", text=text)


def named(vnf_name: Any, occurrence: Any) -> dict[str, str]:
    """What the journal records of each operation, as far as it is known.

    :param vnf_name: of the VNF instance.
    :param occurrence: id of Tacker's LCM operation occurrence.
    """
    known = {"vnf_name": vnf_name, "lcm_op_occ_id": occurrence}
    return {name: str(value) for name, value in known.items() if value}


def scale_details(kind: str, aspect: str, steps: int | None) -> dict[str, Any]:
    """What the journal records of a scale.

    :param kind: ``SCALE_OUT`` or ``SCALE_IN``.
    :param steps: their number; None: one, as in Tacker's API.
    """
    direction = "out" if kind == "SCALE_OUT" else "in"
    scale = {"direction": direction, "aspect": aspect, "steps": steps or 1}
    return {"scale": scale}


AdviceFor = Callable[[Exception], str]
H = TypeVar("H", bound=Hook[Any])
Entered = TypeVar("Entered")


class Operation(Protocol):
    """An operation of the lifecycle."""

    def steps(self) -> Sequence[Step]: ...

    def left(self) -> str: ...


@dataclass(frozen=True)
class Plan:
    """What one call of a hook does.

    :param left: returns what a failed step leaves behind.
    :param advice: what to send then, in place of the hook's own advice.
    :param after: is called when all steps have succeeded.
    :param is_last: whether the hook that usually follows has nothing to do this time.
    """

    steps: Sequence[Step]
    left: Callable[[], str] = lambda: ""
    advice: AdviceFor | None = None
    after: Callable[[], object] = lambda: None
    is_last: bool = False

    @classmethod
    def of(
        cls,
        operation: Operation,
        advice: AdviceFor | None = None,
        after: Callable[[], object] = lambda: None,
    ) -> "Plan":
        """The plan of an operation, whose list of steps may grow while it runs."""
        return cls(operation.steps(), operation.left, advice, after)


@dataclass(frozen=True)
class Entry(Generic[H, Entered]):
    """One hook of an API.

    :param read: reads the parameters, given *param_advice*; returns None when there is
        nothing to do.
    :param plan: returns what this call does.
    :param param_advice: what to send when the parameters are wrong.
    :param advice: what to send when the hook fails otherwise.
    :param followed_by: the hook of the same operation whose work comes next; "" if
        there is none, or none with an entry.
    """

    read: Callable[[H, str], ClusterRequest | None]
    plan: Callable[[H, OperationContext, Entered], Plan]
    _: KW_ONLY
    param_advice: str
    advice: AdviceFor = RESUME
    followed_by: str = ""

    def __call__(self, hook: H) -> None:
        """Run the hook.

        :raises K8sMgmtError: with what to correct and what to send.
        """
        with attached(self.advice):
            params = self.read(hook, self.param_advice)
            if params is None:
                return
            hook.begin()
            with hook.site(params) as site:
                plan = self.plan(hook, hook.dependencies(params, site), site)
                advice = plan.advice or self.advice
                followed_by = "" if plan.is_last else self.followed_by
                secrets = params.secrets()
                hook.run(plan.steps, secrets, advice, plan.left, followed_by)
                plan.after()
