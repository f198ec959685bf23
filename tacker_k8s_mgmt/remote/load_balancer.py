"""The external load balancer, configured through the script of the VNF package.

Each operation copies the script to a temporary directory of the VM, as the
specification requires, runs it with sudo, and removes the directory at its end. A
script that fails keeps the earlier configuration and prints a one-line reason.
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
_CHANGE_LIMIT = 420.0  # seconds; the script may wait 300 for a concurrent call
_HINT = "Its earlier configuration is still in place; mend the cause."


class Balancer:
    """The load balancer's VM behind one SSH session.

    Each method that runs the script raises ``LoadBalancerError`` if the script fails
    (the earlier configuration stays), and ``RemoteError`` if the VM cannot be reached
    or a time limit is exceeded.

    :param script: content of the package's ``script_path``.
    :param install_limit: seconds for ``install``, which may install packages.
    """

    def __init__(
        self, session: Session, script: bytes, *, install_limit: float = 900
    ) -> None:
        self.session = session
        self._script = script
        self._install_limit = install_limit
        self._path = ""
        self._scratch = ExitStack()

    def close(self) -> None:
        """Remove the script from the VM."""
        self._path = ""
        self._scratch.close()

    def install(self, spec: BalancerSpec) -> None:
        """Install HAProxy if it is absent, and set control planes and workers.

        Idempotent. Specification, "Instantiate Kubernetes cluster VNF", last step.
        """
        self._call(
            "install",
            load_balancer.install_arguments(spec),
            limit=self._install_limit,
            stdin=load_balancer.install_input(spec) or None,
        )

    def add_workers(self, workers: Sequence[tuple[str, str]]) -> None:
        """Add routes to these workers; existing routes stay.

        Specification, "Scale-out Worker nodes", the new routes.

        :param workers: name and address of each.
        """
        if workers:
            self._call("add-worker", [f"{name}={address}" for name, address in workers])

    def remove_workers(self, names: Sequence[str]) -> None:
        """Remove the routes to these workers, if there are any.

        Specification, "Scale-in Worker nodes", first step.
        """
        if names:
            self._call("remove-worker", names)

    def expose(self, services: Sequence[ExposedService]) -> None:
        """Forward the port of each service to its node port on every worker.

        If one fails, the services before it stay exposed.
        """
        for service in services:
            self._call("expose", load_balancer.expose_arguments(service))

    def status(self) -> BalancerStatus:
        """Return the configuration and the state of its backends.

        :raises LoadBalancerError: also if the script prints no status report.
        """
        report = self._call("status", limit=_STATUS_LIMIT)
        try:
            return load_balancer.parse_status(report)
        except ValueError as error:
            reason = f"the script printed no status report ({error})."
            raise self._error("status", reason) from error

    def _call(
        self,
        verb: str,
        arguments: Sequence[str] = (),
        *,
        limit: float = _CHANGE_LIMIT,
        stdin: str | None = None,
    ) -> str:
        """Run one verb of the script; returns its standard output."""
        why = load_balancer.unusable(self._script)
        if why:
            raise self._error(verb, f"the package's script was not run: {why}.")
        if not self._path:
            directory = self._scratch.enter_context(self.session.scratch())
            path = f"{directory}/load-balancer.sh"
            self.session.copy(self._script, path, 0o700)
            self._path = path
        argv = ["bash", self._path, verb, *arguments]
        result = self.session.run(
            argv, stdin=stdin, timeout=limit, sudo=True, check=False
        )
        if result.rc != 0:
            raise self._error(verb, self.session.redact(_reason(result)), _HINT)
        return result.stdout

    def _error(
        self, verb: str, reason: str, hint: str | None = None
    ) -> errors.LoadBalancerError:
        return errors.LoadBalancerError(
            host=self.session.host, verb=verb, reason=reason, hint=hint
        )


def _reason(result: Result) -> str:
    """The script's last line; sudo may print warnings before it."""
    lines = [line.strip() for line in result.stderr.splitlines() if line.strip()]
    reason = lines[-1] if lines else f"exit code {result.rc} and no message"
    return f"{reason.rstrip('.')}."
