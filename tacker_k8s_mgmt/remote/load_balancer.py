"""The external load balancer's VM, worked on through the script of the VNF package.

Each operation sends the script again, as the specification asks for, into a directory
of its own, runs it with sudo and removes the directory at its end. The script keeps the
earlier configuration when it fails, and says why in one line.
"""

from collections.abc import Sequence
from contextlib import ExitStack

from tacker_k8s_mgmt import errors
from tacker_k8s_mgmt.model import load_balancer
from tacker_k8s_mgmt.model.load_balancer import (
    BalancerSpec,
    BalancerStatus,
    ExposedService,
)
from tacker_k8s_mgmt.remote.ssh.channel import Result
from tacker_k8s_mgmt.remote.ssh.session import Session

_STATUS_LIMIT = 60.0  # seconds
_CHANGE_LIMIT = 420.0  # seconds; the script may wait 300 for another call to end
_HINT = "Its earlier configuration is still in place; mend the cause."


class Balancer:
    """The load balancer behind one SSH session.

    :param script: content of the package's ``script_path``.
    :param install_limit: seconds that ``install`` may take; it may install packages.
    """

    def __init__(
        self, session: Session, script: bytes, *, install_limit: float = 900
    ) -> None:
        self.session = session
        self._script = script
        self._install_limit = install_limit
        self._sent = ""
        self._scratch = ExitStack()

    def close(self) -> None:
        """Remove the script from the VM."""
        self._sent = ""
        self._scratch.close()

    def install(self, spec: BalancerSpec) -> None:
        """Install HAProxy where it is absent, and set control planes and workers.

        Specification, "Instantiate Kubernetes cluster VNF", last step. Done again
        with the same spec it changes nothing.

        :raises LoadBalancerError: the script failed; the earlier configuration stays.
        :raises RemoteError: the VM cannot be reached or the limit has passed.
        """
        self._call(
            "install",
            load_balancer.install_arguments(spec),
            limit=self._install_limit,
            stdin=load_balancer.install_input(spec) or None,
        )

    def add_workers(self, workers: Sequence[tuple[str, str]]) -> None:
        """Route to these workers, too; those that are routed to already stay.

        Specification, "Scale-out Worker nodes", the new routes.

        :param workers: name and address of each.
        :raises LoadBalancerError: the script failed; the earlier configuration stays.
        :raises RemoteError: the VM cannot be reached or the limit has passed.
        """
        if workers:
            arguments = [f"{name}={address}" for name, address in workers]
            self._call("add-worker", arguments, limit=_CHANGE_LIMIT)

    def remove_workers(self, names: Sequence[str]) -> None:
        """Route to these workers no longer; it does not matter whether it does now.

        Specification, "Scale-in Worker nodes", first step.

        :raises LoadBalancerError: the script failed; the earlier configuration stays.
        :raises RemoteError: the VM cannot be reached or the limit has passed.
        """
        if names:
            self._call("remove-worker", names, limit=_CHANGE_LIMIT)

    def expose(self, services: Sequence[ExposedService]) -> None:
        """Forward the port of each service to its node port on every worker.

        :raises LoadBalancerError: the script failed; the services before it stay.
        :raises RemoteError: the VM cannot be reached or the limit has passed.
        """
        for service in services:
            arguments = load_balancer.expose_arguments(service)
            self._call("expose", arguments, limit=_CHANGE_LIMIT)

    def status(self) -> BalancerStatus:
        """What is configured and how it is doing.

        :raises LoadBalancerError: the script failed or printed no status report.
        :raises RemoteError: the VM cannot be reached or the limit has passed.
        """
        report = self._call("status", limit=_STATUS_LIMIT)
        try:
            return load_balancer.parse_status(report)
        except ValueError as error:
            raise errors.LoadBalancerError(
                host=self.session.host,
                verb="status",
                reason=f"the script printed no status report ({error}).",
            ) from error

    def _call(
        self,
        verb: str,
        arguments: Sequence[str] = (),
        *,
        limit: float,
        stdin: str | None = None,
    ) -> str:
        """Run one verb of the script; returns its standard output."""
        why = load_balancer.unusable(self._script)
        if why:
            raise errors.LoadBalancerError(
                host=self.session.host,
                verb=verb,
                reason=f"the package's script was not run: {why}.",
            )
        argv = ["bash", self._path(), verb, *arguments]
        result = self.session.run(
            argv, stdin=stdin, timeout=limit, sudo=True, check=False
        )
        if result.rc != 0:
            reason = self.session.redact(_reason(result))
            raise errors.LoadBalancerError(
                host=self.session.host, verb=verb, reason=reason, hint=_HINT
            )
        return result.stdout

    def _path(self) -> str:
        """Where the script is on the VM; the first time it is sent there."""
        if not self._sent:
            directory = self._scratch.enter_context(self.session.scratch())
            path = f"{directory}/load-balancer.sh"
            self.session.copy(self._script, path, 0o700)
            self._sent = path
        return self._sent


def _reason(result: Result) -> str:
    """The script's one line: sudo may have put warnings of its own before it."""
    lines = [line.strip() for line in result.stderr.splitlines() if line.strip()]
    reason = lines[-1] if lines else f"exit code {result.rc} and no word why"
    return f"{reason.rstrip('.')}."
