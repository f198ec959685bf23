# SPDX-License-Identifier: Apache-2.0
"""One call of a hook: its request, its cluster, and how its steps are run and recorded.

The hooks themselves are the methods of the drivers, in ``v1/driver.py`` and
``v2/driver.py``. The request is read once in a call.
"""

import abc
import functools
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

from oslo_config import cfg
from oslo_log import log as logging

from tacker_k8s_mgmt import config, errors, journal
from tacker_k8s_mgmt.features.table import FEATURES
from tacker_k8s_mgmt.hooks.advice import RESUME, Advice, AdviceFor, attached
from tacker_k8s_mgmt.model import playbooks
from tacker_k8s_mgmt.model.playbooks import Progress
from tacker_k8s_mgmt.operations.state import OperationContext
from tacker_k8s_mgmt.operations.step import Operation, Runner
from tacker_k8s_mgmt.remote import operator_server
from tacker_k8s_mgmt.remote.local_files import ProfileFiles
from tacker_k8s_mgmt.remote.site import Site
from tacker_k8s_mgmt.remote.timing import Clock
from tacker_k8s_mgmt.request import profiles
from tacker_k8s_mgmt.request.operator_server import OperatorServer
from tacker_k8s_mgmt.request.profile_document import ResolvedProfile, Source
from tacker_k8s_mgmt.request.reader import ClusterRequest, RequestReader
from tacker_k8s_mgmt.request.secrets import Resolver
from tacker_k8s_mgmt.text import Redactor, in_line, short

LOG = logging.getLogger(__name__)

#: The structures that lead to the Ansible server.
SERVER_STRUCTURES = ("ansible", "bastion")
# The request cannot be corrected in an operation; what it refers to can.
_FIX = "If the request is right, fix what it refers to and send `retry`. If not:"
#: Entries of the metadata in the title of a modification, and characters of each.
_ENTRIES, _LONGEST = 3, 120
_LOG_SECONDS = 60.0  # between two lines about one play


class Hook(abc.ABC):
    """One call of a hook for one VNF instance.

    :param conf: Tacker's configuration.
    :param api: ``v1`` or ``v2``.
    :ivar patch: ``metadata`` of a request that modifies the VNF instance.
    """

    def __init__(
        self, name: str, vnf_id: str, conf: cfg.ConfigOpts, api: str = "v1"
    ) -> None:
        config.register(conf)
        self.options = conf[config.GROUP]
        self.state_path = config.state_path(conf)
        self.name = name
        self.vnf_id = vnf_id
        self.api = api
        self.clock = Clock()
        self.patch: Mapping[str, Any] = {}
        self._advice: AdviceFor = RESUME
        self._redact = Redactor(())
        self._play = 0
        self._logged = 0.0
        self._noted: set[str] = set()

    @functools.cached_property
    def _journal(self) -> journal.Journal:
        # Created on first use: most VNFs are not ours.
        keep, place = self.options.journal_keep, (self.state_path, self.vnf_id)
        return journal.Journal(*place, self.name, LOG.warning, api=self.api, keep=keep)

    @property
    def instantiates(self) -> bool:
        """Whether the request is that of an instantiation."""
        return self.name.startswith("instantiate_")

    # What Tacker has, by its API

    @abc.abstractmethod
    def parameters(self) -> tuple[Any, Any]:
        """``additionalParams`` of the instantiation, and those of a later request."""

    @property
    @abc.abstractmethod
    def metadata(self) -> Mapping[str, Any]:
        """Those of the VNF instance, as the operation leaves them."""

    @property
    @abc.abstractmethod
    def vnfcs(self) -> Mapping[str, str]:
        """The server of each VNFC, by the VNFC's id."""

    @abc.abstractmethod
    def kept_profile(self) -> Any:
        """What is kept of the cluster's profile; None if nothing is."""

    @abc.abstractmethod
    def keep_profile(self, profile: ResolvedProfile | None) -> None:
        """Keep what the profile stands for, for the cluster's life."""

    @abc.abstractmethod
    def forget(self) -> None:
        """Remove what the VNF instance keeps of the cluster for later operations."""

    @abc.abstractmethod
    def package(self) -> str:
        """The directory of the VNF package."""

    @abc.abstractmethod
    def resolver(self) -> Resolver:
        """Resolves references to secrets."""

    @abc.abstractmethod
    def site(self, request: ClusterRequest) -> Site:
        """What an operation on this VNF instance may touch."""

    @property
    @abc.abstractmethod
    def vnf_name(self) -> str:
        """The name of the VNF instance, if it has one."""

    @property
    @abc.abstractmethod
    def occurrence(self) -> str:
        """The id of Tacker's LCM operation occurrence; "" if it is not known."""

    @abc.abstractmethod
    def scale(self) -> tuple[str, str, int | None] | None:
        """Type, aspect and number of steps of the request's scale; None for others."""

    @abc.abstractmethod
    def healed_vdus(self) -> Sequence[str]:
        """The VDU of each VNFC that the request of a heal names."""

    @abc.abstractmethod
    def begin(self) -> None:
        """Prepare for work; called before the first step."""

    # The request

    def request(
        self,
        *,
        wrong: Advice,
        server_only: bool = False,
        resolve: bool = True,
        retried: bool = True,
        upgrade: bool = False,
    ) -> ClusterRequest | None:
        """The stored parameters, updated by those of this request.

        :param wrong: what the operator sends when they are wrong.
        :param server_only: whether nothing is used but the Ansible server, as at the
            end of a cluster, whose VMs go anyway: secrets that do not lead to it may be
            missing, and so may the profile.
        :param resolve: whether references are resolved, and not only checked.
        :param retried: whether Tacker calls the hook again at a retry.
        :param upgrade: whether the Kubernetes version may change, too.
        :returns: None if the VNF is not a cluster.
        :raises ParamError: with every problem.
        """
        reader = self.reader(server_only=server_only, resolve=resolve)
        with _advised(wrong, retried=retried):
            request = reader.update(*self.parameters(), upgrade=upgrade)
        if request:
            self._warn(request)
            if self.instantiates:
                self.keep_profile(request.expansion)
        return request

    def with_former_secrets(
        self, requests: Callable[[], Any], wrong: Advice
    ) -> ClusterRequest:
        """The stored parameters, with the secrets of former requests.

        :param requests: returns their ``additionalParams``, latest first.
        :param wrong: as above.
        :raises ParamError: with every problem.
        """
        reader = self.reader()
        with _advised(wrong, retried=False):
            request = reader.with_former_secrets(self.parameters()[0], requests())
        self._warn(request)
        return request

    def _warn(self, request: ClusterRequest) -> None:
        for warning in request.warnings:
            LOG.warning("VNF instance %s: %s", self.vnf_id, warning)

    def reader(
        self, *, server_only: bool = False, resolve: bool = True
    ) -> RequestReader:
        """Reads the parameters.

        :param server_only: as in :meth:`request`, and *resolve*.
        """
        return RequestReader(
            self.resolver() if resolve else None,
            SERVER_STRUCTURES if server_only else None,
            self.profile_source(server_only=server_only),
            self.operators_server,
            self.metadata,
        )

    def profile_source(self, *, server_only: bool) -> Source:
        """Finds the profile that a request or the stored parameters name.

        What it stood for at instantiation is kept, and holds for the cluster's life.

        :param server_only: as in :meth:`request`: a profile gives nothing that leads to
            the Ansible server.
        """
        files = ProfileFiles(self.state_path, self.package)
        if self.name == "instantiate_start":
            return files
        if self.instantiates:
            return profiles.kept_or(self.kept_profile(), files)
        without = profiles.nothing if server_only else profiles.lost
        return profiles.kept_or(self.kept_profile(), without)

    def operators_server(self) -> OperatorServer | None:
        """Finds the operator's Ansible server, for parameters without one.

        :raises TackerConfigError: ``tacker.conf`` is wrong.
        """
        return operator_server.find(self.options, self.vnf_id)

    def with_logins(self, request: ClusterRequest, wrong: Advice) -> ClusterRequest:
        """The request with the logins of the VMs, if a feature's end needs them.

        :param request: without them. If they cannot be had, that work is left out.
        """
        if not any(feature.terminates_on_nodes(request) for feature in FEATURES):
            return request
        try:
            return self.request(wrong=wrong) or request
        except errors.ParamError as error:
            LOG.warning("VNF instance %s: %s", self.vnf_id, error)
            return request

    # The work

    @contextmanager
    def cluster(
        self, *, wrong: Advice, advice: AdviceFor = RESUME, **how: Any
    ) -> Iterator[OperationContext | None]:
        """The cluster of this VNF instance, or None if the VNF is not ours.

        The request is read and the site is opened; an error says what to send.

        :param wrong: what to send when the request is wrong.
        :param advice: what to send when the hook fails otherwise.
        :param how: see :meth:`request`.
        """
        with attached(advice):
            request = self.request(wrong=wrong, **how)
            if request is None:
                yield None
                return
            with self.open_cluster(request, advice) as cluster:
                yield cluster

    @contextmanager
    def open_cluster(
        self, request: ClusterRequest, advice: AdviceFor = RESUME
    ) -> Iterator[OperationContext]:
        """The cluster of a request that was read.

        :param advice: what to send when a step fails.
        """
        self._advice = advice
        self._redact = Redactor(request.secrets())
        with self.site(request) as site:
            yield self._context(request, site)

    def _context(self, request: ClusterRequest, site: Site) -> OperationContext:
        return OperationContext(
            request,
            self.vnf_id,
            site,
            self.clock,
            config.Limits.of(self.options),
            self.progress,
            metadata=self.metadata,
            patch=self.patch,
            vnfcs=self.vnfcs,
            features=FEATURES,
        )

    def run(
        self,
        operation: Operation,
        *,
        advice: AdviceFor | None = None,
        followed_by: str = "",
        details: Mapping[str, str] | None = None,
    ) -> None:
        """Take the steps of an operation on the cluster that was opened.

        :param advice: what to send when a step fails, in place of the cluster's.
        :param followed_by: the hook of the same operation whose work is recorded next;
            "" if there is none.
        :param details: what the journal records besides; empty ones are left out.
        :raises StepFailed: at the first step that fails.
        """
        self.begin()
        found = advice or self._advice

        def advised(error: Exception) -> tuple[str, tuple[str, ...]]:
            sent = found(error)
            return sent.text, tuple(verb.value for verb in sent.verbs)

        runner = Runner(
            self.name,
            self._journal,
            self.clock,
            self._redact,
            operation.left,
            advised,
            followed_by,
            self._details(details or {}),
        )
        try:
            runner.run(operation.steps())
        finally:
            self._write_metrics()

    def terminated(self) -> None:
        """Do what comes last in a termination, in either API, when the VMs are gone."""
        self.forget()
        LOG.info("The cluster of VNF instance %s is terminated", self.vnf_id)

    def _details(self, more: Mapping[str, str]) -> dict[str, Any]:
        """What the journal records of the operation at its start, as far as known."""
        known = {"vnf_name": self.vnf_name, "lcm_op_occ_id": self.occurrence, **more}
        known["subject"] = self._subject()
        details: dict[str, Any] = {name: text for name, text in known.items() if text}
        # Work for a CNF that is scaled has no request of the cluster.
        scale = self.scale() if self.name.startswith("scale_") else None
        if scale:
            kind, aspect, steps = scale
            direction = "out" if kind == "SCALE_OUT" else "in"
            # Without their number, one, as in Tacker's API.
            size = {"direction": direction, "aspect": aspect, "steps": steps or 1}
            details["scale"] = size
        return details

    def _subject(self) -> str:
        """What a heal or a modification is about; "" for others."""
        if self.name in ("heal_start", "heal_end"):
            counted = Counter(self.healed_vdus()).items()
            vdus = [
                vdu if number == 1 else f"{number} {vdu}" for vdu, number in counted
            ]
            return ", ".join(sorted(vdus)) or "the whole VNF"
        if self.name in ("modify_information_start", "modify_information_end"):
            entries = sorted(map(str, self.patch))
            more = len(entries) - _ENTRIES
            shown = ", ".join(short(entry, _LONGEST) for entry in entries[:_ENTRIES])
            return f"{shown} and {more} more" if more > 0 else shown
        return ""

    def _write_metrics(self) -> None:
        """Add the operation to the metrics; it does not fail because of them."""
        directory = self.options.metrics_directory
        if not directory:
            return
        try:
            # Imported late: most sites have no use for it.
            from tacker_k8s_mgmt import metrics

            metrics.write(self.state_path, directory)
        except Exception as error:
            # Whatever there may be in a file.
            LOG.warning("The metrics of %s are not up to date: %s", directory, error)

    def progress(self, progress: Progress) -> None:
        """Record a playbook's progress: each change in the journal, each play, and each
        minute of a long one, in the log.
        """
        now = self.clock.now()
        if progress.play_number != self._play or now - self._logged >= _LOG_SECONDS:
            self._play, self._logged = progress.play_number, now
            texts = filter(None, (progress.where(), progress.estimate()))
            LOG.info("%s: %s", self.name, "; ".join(texts))
        for text in progress.notes:
            if text not in self._noted:
                self._noted.add(text)
                LOG.info("%s: %s", self.name, text)
                self._journal.record("note", text=text)
        self._journal.record("progress", **playbooks.progress_fields(progress))

    def note(self, text: str) -> None:
        """Record what delays the operation, in the journal and in the log."""
        LOG.warning("%s: %s", self.name, in_line(text))
        self._journal.record("note", text=text)


@contextmanager
def _advised(wrong: Advice, *, retried: bool) -> Iterator[None]:
    """Say what to send when the parameters are wrong; see :meth:`Hook.request`."""
    try:
        yield
    except errors.ParamError as exc:
        exc.hint = wrong.text or exc.hint
        if exc.retryable and retried:
            exc.hint = f"{_FIX} {exc.hint}"
        raise
