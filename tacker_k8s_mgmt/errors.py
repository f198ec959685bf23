"""The one tree of exceptions.

Tacker shows an operator exactly one string of a failed operation: ``str(exception)``
in the v1 API, standard error in v2. So every leaf here has a message template, and a
hint that says what to do next. Fields are plain values; none may carry a secret (the
edges that build messages from remote output redact it first).
"""

from collections.abc import Sequence
from typing import Any, ClassVar


class K8sMgmtError(Exception):
    """Base of everything this package raises on purpose.

    :param hint: what the operator should do next; overrides the class's own hint.
    :param fields: values for the class's message template, kept in :attr:`fields`.
    """

    message: ClassVar[str] = "{detail}"
    default_hint: ClassVar[str] = ""

    def __init__(self, *, hint: str | None = None, **fields: Any) -> None:
        self.fields = fields
        self.hint = self.default_hint if hint is None else hint
        super().__init__(self.message.format(**fields))

    def __str__(self) -> str:
        text = super().__str__()
        return f"{text} {self.hint}".rstrip() if self.hint else text


def _listed(lines: Sequence[str]) -> str:
    return "; ".join(f"({n}) {line}" for n, line in enumerate(lines, 1))


class ParamError(K8sMgmtError):
    """The request's parameters are wrong; nothing has been touched.

    :param problems: one sentence per problem, each naming the attribute.
    :param elsewhere: whether all of them are with what the request refers to.
    """

    message = "k8s_cluster_installation_param has {count} problem(s): {listed}."
    default_hint = "Correct the request and send it again; nothing was changed."

    def __init__(self, problems: Sequence[str], *, elsewhere: bool = False) -> None:
        self.problems = tuple(problems)
        self.elsewhere = elsewhere
        super().__init__(count=len(self.problems), listed=_listed(self.problems))


class PreflightError(K8sMgmtError):
    """Something that the operation needs is not as it must be; nothing was changed.

    :param findings: one sentence per finding, each with its fix.
    """

    message = "The preflight checks found {count} problem(s): {listed}."
    default_hint = "Nothing was changed. Mend them."

    def __init__(self, findings: Sequence[str]) -> None:
        self.findings = tuple(findings)
        super().__init__(count=len(self.findings), listed=_listed(self.findings))


class OwnershipError(K8sMgmtError):
    """The inventory directory belongs to somebody else."""

    message = "The directory {path} on the Ansible server {host} {reason}."
    default_hint = (
        "Give this VNF a transferring_inventory_path of its own; "
        "the directory was not touched."
    )


class DiscoveryError(K8sMgmtError):
    """The Heat stack does not hold the VMs that the parameters describe."""

    message = "The VMs were not found in the Heat stack {stack}: {listed}."
    default_hint = "Compare the *_cp_name and aspect_id parameters with the Base HOT."

    def __init__(self, stack: str, problems: Sequence[str]) -> None:
        self.problems = tuple(problems)
        super().__init__(stack=stack, listed=_listed(self.problems))


class RemoteError(K8sMgmtError):
    """Talking to another host failed."""


class ConnectError(RemoteError):
    """No SSH session could be had within the time limit."""

    message = (
        "No SSH connection to {user}@{host}:{port} within {seconds:g} s: {reason}."
    )
    default_hint = "Check address, network and security groups."


class ConnectionLost(ConnectError):
    """An SSH session that was there broke, or the host no longer answered on it."""

    message = "The SSH connection to {host} was lost during `{command}`: {reason}."


class AuthError(RemoteError):
    """The host answered and refused the credentials."""

    message = "{host}:{port} refused the SSH login of user {user}."
    default_hint = "Correct the user name, password or key in the parameters."


class PrivateKeyError(RemoteError):
    """A private key of the parameters cannot be used to log in."""

    message = "{attribute} {reason}."


class HostKeyError(RemoteError):
    """The host shows another key than before."""

    message = (
        "The SSH host key of {host} is not the one that was recorded ({recorded})."
    )
    default_hint = (
        "If the host was rebuilt on purpose, remove its line from the file; "
        "if not, somebody may be in between."
    )


class UnknownHostError(HostKeyError):
    """No key of the host is recorded, and this is no moment to trust a first one."""

    message = "No SSH host key of {host} is recorded in {recorded}, so it is not asked."
    default_hint = "The operations record it when they first see the host."


class GivenKeyError(HostKeyError):
    """The host shows none of the keys that the request gives."""

    message = (
        "The SSH host key of {host}, {kind} {fingerprint}, is none of those that the "
        "request gives, so nothing was sent to it."
    )
    default_hint = (
        "Compare it with what `ssh-keygen -l` says of the host's own files "
        "/etc/ssh/ssh_host_*_key.pub. If they differ, somebody is in between; else "
        "correct the request."
    )


class CommandFailed(RemoteError):
    """A command on a remote host ended with an exit code other than 0.

    ``command`` is what an operator would type (redacted), ``tail`` the last lines of
    its output (redacted). Where a command of ours ended so, ``output`` is all that is
    kept of its output (redacted), for those who look for something in it.
    """

    message = "On {host}, `{command}` ended with exit code {rc}: {tail}"


class CommandTimeout(RemoteError):
    """A command on a remote host did not end within its limit and was ended."""

    message = "On {host}, `{command}` did not end within {seconds:g} s."


class FileError(RemoteError):
    """A file on a remote host could not be read or written."""

    message = "On {host}, {path} could not be {action}: {reason}."


class SpoiledFile(RemoteError):
    """A file of a cluster's directory is not as this driver has written it."""

    message = (
        "The file {path} on the Ansible server {host} is not as it was written: "
        "{reason}."
    )

    @property
    def what(self) -> str:
        """The message without the hint, for where the file is rebuilt."""
        return str(self.args[0])


class PlaybookError(K8sMgmtError):
    """A playbook run on the Ansible server did not end well."""


class PlaybookFailed(PlaybookError):
    """Ansible ended with failed or unreachable hosts.

    :param failures: one ``host: task: message`` text per failing host and task.
    """

    message = (
        "Playbook {playbook} failed on {host} (exit code {rc}): {listed}. "
        "The whole log is {log} on {host}."
    )
    default_hint = "Mend the cause; kubespray can be run again."

    def __init__(
        self, *, playbook: str, host: str, rc: int, failures: Sequence[str], log: str
    ) -> None:
        self.failures = tuple(failures)
        listed = _listed(self.failures) or "no failing task was reported"
        super().__init__(playbook=playbook, host=host, rc=rc, listed=listed, log=log)


class PlaybookTimeout(PlaybookError):
    """The run passed a limit and its process group was ended."""

    message = (
        "Playbook {playbook} on {host} was ended: {reason}. Last: {last}. "
        "The whole log is {log} on {host}."
    )


class PlaybookLost(PlaybookError):
    """The run vanished without an exit code (reboot or kill on the Ansible server)."""

    message = (
        "Playbook {playbook} on {host} ended without an exit code; the server was "
        "rebooted or the run was killed. The log is {log} on {host}."
    )


class BusyError(PlaybookError):
    """Another playbook run is under way for the same cluster."""

    message = (
        "Playbook {playbook} (run {run}) is still running for this cluster on {host}."
    )
    default_hint = "Wait for it to end."


class LockedError(K8sMgmtError):
    """Another operation is at work on the same cluster."""

    message = "The cluster in {path} on {host} is locked by {owner}."
    default_hint = (
        "Wait for that operation to end; nothing was changed. The lock goes with the "
        "connection of the process that holds it."
    )


class ClusterError(K8sMgmtError):
    """The Kubernetes cluster is not as it should be."""


class DrainError(ClusterError):
    """Nodes could not be emptied; they and their pods are left as they are.

    :param failed: how many.
    :param outcomes: one sentence for each node that was drained, or not.
    """

    message = "{failed} of {count} node(s) could not be drained: {listed}."

    def __init__(
        self, *, failed: int, outcomes: Sequence[str], hint: str | None = None
    ) -> None:
        self.outcomes = tuple(outcomes)
        listed, count = _listed(self.outcomes), len(self.outcomes)
        super().__init__(hint=hint, failed=failed, count=count, listed=listed)


class LoadBalancerError(K8sMgmtError):
    """The load balancer's script reported a failure; the old configuration stays."""

    message = "The load balancer on {host} refused `{verb}`: {reason}"


class VimError(K8sMgmtError):
    """Tacker's VIM registry did not do as asked."""


class TackerError(K8sMgmtError):
    """Tacker's configuration or database, or what it keeps there, cannot be used."""


class UnsupportedOperation(K8sMgmtError):
    """The operation cannot end well, nor can a second run of it: another one may.

    The VMs were not touched by this driver.
    """


class StepFailed(K8sMgmtError):
    """What Tacker shows: which step of which operation failed, why and what next.

    A cause from this tree is chained, and its hint is the one that is shown.
    """

    message = "{operation}: step {number}/{total} ({step}) failed: {cause}{left}"


class PackageError(K8sMgmtError):
    """A VNF package cannot be built, or is not what Tacker can use.

    :param package: file or deployment flavour that is meant.
    :param problems: one sentence per problem, each naming the file in the package.
    """

    message = "The VNF package {package} has {count} problem(s): {listed}."

    def __init__(self, package: str, problems: Sequence[str]) -> None:
        self.problems = tuple(problems)
        super().__init__(
            package=package, count=len(self.problems), listed=_listed(self.problems)
        )
