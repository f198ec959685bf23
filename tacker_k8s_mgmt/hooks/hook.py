"""One call of a hook: what it is about, and how its steps are run and recorded."""

import logging
from collections.abc import Callable, Sequence
from typing import Any, TypeVar

from oslo_config import cfg
from oslo_log import log

from tacker_k8s_mgmt import config, journal
from tacker_k8s_mgmt.cluster.params import InstallParams
from tacker_k8s_mgmt.cluster.redact import Redactor
from tacker_k8s_mgmt.cluster.runs import Progress
from tacker_k8s_mgmt.lifecycle import ports
from tacker_k8s_mgmt.lifecycle.operation import Operation
from tacker_k8s_mgmt.lifecycle.step import Runner, Step, SystemClock

LOG: logging.LoggerAdapter[logging.Logger] = log.getLogger(__name__)

Work = TypeVar("Work", bound=Operation)


class Hook:
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
        self._journal = journal.Journal(
            self.state_path,
            vnf_id,
            name,
            LOG.warning,
            api=api,
            keep=self.options.journal_keep,
        )

    def run(
        self,
        steps: Sequence[Step],
        secrets: Sequence[str] = (),
        on_failure: Callable[[], str] = lambda: "",
    ) -> None:
        """Take *steps*; *secrets* are kept out of every error text."""
        redact = Redactor(secrets)
        runner = Runner(self.name, self._journal, self.clock, redact, on_failure)
        runner.run(steps)

    def operation(
        self,
        kind: Callable[..., Work],
        params: InstallParams,
        site: ports.Site,
        **arguments: Any,
    ) -> Work:
        """An operation on the cluster's nodes, with the limits of the options."""
        return kind(
            params,
            self._vnf_id,
            site,
            self.clock,
            ready_timeout=self.options.ready_timeout,
            poll_interval=self.options.poll_interval,
            on_progress=self.progress,
            **arguments,
        )

    def progress(self, progress: Progress) -> None:
        """Tell how far a playbook is: the log each play, the journal each change."""
        if progress.play_number != self._play:
            self._play = progress.play_number
            LOG.info("%s: %s", self.name, progress.where())
        self._journal.record(
            "progress",
            text=progress.where(),
            play=progress.play_number,
            plays=progress.plays,
            play_name=progress.play,
            task=progress.task,
            tasks=progress.tasks,
            results=progress.results,
        )
