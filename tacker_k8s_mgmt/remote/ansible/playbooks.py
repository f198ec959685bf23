"""Playbook runs with the time limits of Tacker's configuration."""

from collections.abc import Callable
from typing import Any

from tacker_k8s_mgmt.model.playbook_runs import PlaybookRequest, Progress
from tacker_k8s_mgmt.remote.ansible.runner import PlaybookRunner


class Playbooks:
    """Playbook runs of one cluster.

    :param options: the ``[k8s_mgmt]`` group of Tacker's configuration.
    :param prepare: called before each run.
    """

    def __init__(
        self, runner: PlaybookRunner, options: Any, prepare: Callable[[], None]
    ) -> None:
        self._runner = runner
        self._options = options
        self._prepare = prepare

    def done(self, request: PlaybookRequest) -> bool:
        """Return whether the latest run was this one, and succeeded."""
        last = self._runner.last()
        return last is not None and last.digest == request.digest and last.rc == 0

    def live(self, request: PlaybookRequest) -> bool:
        """Return whether this run is in progress."""
        last = self._runner.last()
        return last is not None and last.digest == request.digest and last.live

    def run(
        self,
        request: PlaybookRequest,
        nodes: int,
        on_progress: Callable[[Progress], None],
    ) -> None:
        """Run a playbook, or re-attach to the same run if it is in progress.

        :param nodes: their number, which decides the time limit.
        :raises K8sMgmtError: see :meth:`.runner.PlaybookRunner.run`.
        """
        options = self._options
        self._prepare()
        self._runner.run(
            request,
            total=options.playbook_base_timeout + nodes * options.playbook_node_timeout,
            idle=options.playbook_idle_timeout,
            poll=options.poll_interval,
            on_progress=on_progress,
        )

    def stop(self) -> bool:
        """End a run that is in progress; see :meth:`.runner.PlaybookRunner.stop`."""
        return self._runner.stop()
