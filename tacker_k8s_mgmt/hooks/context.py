"""One call of a hook: what it is about, and how its steps are run and recorded."""

import abc
import functools
import logging
from collections.abc import Callable, Sequence
from typing import Any, Generic, TypeVar

from oslo_config import cfg
from oslo_log import log

from tacker_k8s_mgmt import config, journal
from tacker_k8s_mgmt.lifecycle import ports
from tacker_k8s_mgmt.lifecycle.runner import Runner, Step
from tacker_k8s_mgmt.lifecycle.state import Dependencies
from tacker_k8s_mgmt.model.playbook_runs import Progress
from tacker_k8s_mgmt.model.redaction import Redactor
from tacker_k8s_mgmt.remote.clock import SystemClock
from tacker_k8s_mgmt.remote.site import Site
from tacker_k8s_mgmt.request.params import InstallParams

LOG: logging.LoggerAdapter[logging.Logger] = log.getLogger(__name__)

S = TypeVar("S", bound=Site)
_LOG_SECONDS = 60.0  # between two lines about one play


class Hook(abc.ABC, Generic[S]):
    """One call of a hook for one VNF instance.

    :param conf: Tacker's configuration as it was read.
    :param api: Tacker's, ``v1`` or ``v2``.
    """

    def __init__(
        self, name: str, vnf_id: str, conf: cfg.ConfigOpts, api: str = "v1"
    ) -> None:
        config.register(conf)
        self.options = conf[config.GROUP]
        self.state_path = config.state_path(conf)
        self.name = name
        self.clock = SystemClock()
        self._vnf_id = vnf_id
        self._play = 0
        self._logged = 0.0
        self._api = api

    @functools.cached_property
    def _journal(self) -> journal.Journal:
        # Not before it is needed: most VNFs are none of ours.
        keep, place = self.options.journal_keep, (self.state_path, self._vnf_id)
        return journal.Journal(*place, self.name, LOG.warning, api=self._api, keep=keep)

    def begin(self, point: int | None) -> None:
        """Is called when there is something to do, before it is done."""

    @abc.abstractmethod
    def site(self, params: InstallParams) -> S:
        """What an operation on this VNF instance may touch."""

    def run(
        self,
        steps: Sequence[Step],
        secrets: Sequence[str],
        advice: Callable[[Exception], str],
        left: Callable[[], str] = lambda: "",
    ) -> None:
        """Take the steps.

        :param secrets: are kept out of every error text.
        :param advice: says what the operator sends after an error.
        :param left: says what stays behind then.
        """
        redact = Redactor(secrets)
        Runner(self.name, self._journal, self.clock, redact, left, advice).run(steps)

    def dependencies(self, params: InstallParams, site: ports.Site) -> Dependencies:
        """What an operation on the cluster's nodes works with."""
        return Dependencies(
            params,
            self._vnf_id,
            site,
            self.clock,
            ready_timeout=self.options.ready_timeout,
            poll_interval=self.options.poll_interval,
            on_progress=self.progress,
        )

    def progress(self, progress: Progress) -> None:
        """Record how far a playbook is: in the journal each change, in the log each
        play, and each minute of a long one.
        """
        now = self.clock.now()
        if progress.play_number != self._play or now - self._logged >= _LOG_SECONDS:
            self._play, self._logged = progress.play_number, now
            told = filter(None, (progress.where(), progress.estimate()))
            LOG.info("%s: %s", self.name, "; ".join(told))
        self._journal.record("progress", text=progress.where(), **_fields(progress))


def _fields(progress: Progress) -> dict[str, Any]:
    """What the journal has of a look at a playbook, besides its text."""
    fields: dict[str, Any] = {
        "play": progress.play_number,
        "plays": progress.plays,
        "play_name": progress.play,
        "task": progress.task,
        "tasks": progress.tasks,
        "results": progress.results,
    }
    left = progress.left
    if left is not None and progress.former is not None:
        fields |= {"left": round(left), "former_runs": progress.former.runs}
    if progress.recap is not None:
        # Only at the end: it holds for the whole run.
        fields["slowest"] = [
            {"task": one.task, "play": one.play, "seconds": round(one.seconds, 1)}
            for one in progress.slowest
        ]
    return fields
