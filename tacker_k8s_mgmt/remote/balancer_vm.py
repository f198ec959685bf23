# SPDX-License-Identifier: Apache-2.0
"""The external load balancer, configured through the script of the VNF package.

Each operation copies the script to a temporary directory of the VM, as the
specification requires, runs it with sudo, and removes the directory at its end. A
script that fails keeps the earlier configuration and prints a one-line reason.
"""

from contextlib import ExitStack

from oslo_log import log as logging

from tacker_k8s_mgmt import errors
from tacker_k8s_mgmt.model import load_balancer
from tacker_k8s_mgmt.model.load_balancer import BalancerStatus, ScriptCall
from tacker_k8s_mgmt.remote.ssh.channel import Result
from tacker_k8s_mgmt.remote.ssh.session import Session
from tacker_k8s_mgmt.text import in_line

LOG = logging.getLogger(__name__)

_HINT = "Its earlier configuration is still in place; fix the cause."
_WARNING = "warning: "  # the script's, on standard error


class Balancer:
    """The load balancer's VM behind one SSH session.

    Each method that runs the script raises ``LoadBalancerError`` if the script fails
    (the earlier configuration stays), and ``RemoteError`` if the VM cannot be reached
    or a time limit is exceeded.

    :param script: content of the package's ``script_path``.
    :param install_limit: seconds for a call that may install packages.
    """

    def __init__(
        self, session: Session, script: bytes, *, install_limit: float = 900
    ) -> None:
        self.session = session
        self._script = script
        self._install_limit = install_limit
        self._path = ""
        self._warnings: set[str] = set()
        self._scratch = ExitStack()

    def close(self) -> None:
        """Remove the script from the VM."""
        self._path = ""
        self._scratch.close()

    def status(self) -> BalancerStatus:
        """Return the configuration and the state of its backends.

        :raises LoadBalancerError: also if the script prints no status report.
        """
        report = self.call(load_balancer.STATUS)
        try:
            return load_balancer.parse_status(report)
        except ValueError as error:
            reason = f"the script printed no status report ({error})."
            raise self._error("status", reason) from error

    def call(self, call: ScriptCall) -> str:
        """Run one verb of the script; returns its standard output."""
        if why := call.problem(self._script):
            raise self._error(call.verb, f"the package's script was not run: {why}.")
        if not self._path:
            directory = self._scratch.enter_context(self.session.scratch())
            path = f"{directory}/load-balancer.sh"
            self.session.copy(self._script, path, 0o700)
            self._path = path
        result = self.session.run(
            ["bash", self._path, call.verb, *call.arguments],
            stdin=call.stdin or None,
            timeout=self._install_limit if call.limit is None else call.limit,
            sudo=True,
            check=False,
        )
        if result.rc != 0:
            raise self._error(call.verb, self.session.redact(_reason(result)), _HINT)
        self._warn(result.stderr)
        return result.stdout

    def _warn(self, stderr: str) -> None:
        """Log each of the script's warnings once."""
        for line in stderr.splitlines():
            if line.startswith(_WARNING) and line not in self._warnings:
                self._warnings.add(line)
                text = in_line(self.session.redact(line.removeprefix(_WARNING)))
                LOG.warning("Load balancer %s: %s", self.session.host, text)

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
