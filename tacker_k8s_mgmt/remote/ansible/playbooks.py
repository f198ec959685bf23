"""Playbook runs with the limits that Tacker's configuration gives them."""

from collections.abc import Callable
from typing import Any

from tacker_k8s_mgmt.model.playbook_runs import PlaybookRequest, Progress
from tacker_k8s_mgmt.remote.ansible.runner import PlaybookRunner


class Playbooks:
    """Playbook runs with the limits that the options give them."""

    def __init__(
        self, runner: PlaybookRunner, options: Any, prepare: Callable[[], None]
    ) -> None:
        self._runner = runner
        self._options = options
        self._prepare = prepare

    def done(self, request: PlaybookRequest) -> bool:
        """Whether the newest run was this one, and went well."""
        last = self._runner.last()
        return last is not None and last.digest == request.digest and last.rc == 0

    def live(self, request: PlaybookRequest) -> bool:
        """Whether this run is under way."""
        last = self._runner.last()
        return last is not None and last.digest == request.digest and last.live

    def run(
        self,
        request: PlaybookRequest,
        nodes: int,
        on_progress: Callable[[Progress], None],
    ) -> None:
        """Run it, or re-attach to the run that is under way."""
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
        """End a run that is under way."""
        return self._runner.stop()
