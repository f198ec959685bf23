# SPDX-License-Identifier: Apache-2.0
"""All exceptions of the driver, those of logins and of the bastion among them.

Tacker shows the operator one string of a failed operation: ``str(exception)`` in the v1
API, standard error in v2. A class has a message template where its errors are alike,
and a hint about what to do next where one fits all of them; the others are written
where they are raised, as ``detail`` and ``hint``. Fields are plain values without
secrets: remote output is redacted before it becomes one.
"""

from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

from tacker_k8s_mgmt.text import printable


class K8sMgmtError(Exception):
    """Base of all errors that this package raises on purpose.

    :param hint: what the operator should do next, in place of the class's hint.
    :param fields: values for the message template, kept in :attr:`fields`.
    """

    message: ClassVar[str] = "{detail}"
    default_hint: ClassVar[str] = ""

    def __init__(self, *, hint: str | None = None, **fields: Any) -> None:
        self.fields = fields
        self.hint = self.default_hint if hint is None else hint
        # Fields have outputs of other hosts, and Tacker's users see the text.
        super().__init__(printable(self.message.format(**fields)))

    def __str__(self) -> str:
        text = super().__str__()
        return f"{text} {printable(self.hint)}".rstrip() if self.hint else text


class ProblemList(K8sMgmtError):
    """An error whose message numbers its problems.

    :param problems: one sentence each, kept in :attr:`problems`.
    """

    def __init__(self, problems: Sequence[str], **fields: Any) -> None:
        self.problems = tuple(problems)
        listed = "; ".join(f"({n}) {text}" for n, text in enumerate(self.problems, 1))
        super().__init__(count=len(self.problems), listed=listed, **fields)


class ParamError(ProblemList):
    """The parameters of the request are wrong; nothing was changed.

    :param problems: each names the attribute.
    :param retryable: all problems are in what the request refers to.
    """

    message = "k8s_cluster_installation_param has {count} problem(s): {listed}."
    default_hint = "Correct the request and send it again; nothing was changed."

    def __init__(self, problems: Sequence[str], *, retryable: bool = False) -> None:
        self.retryable = retryable
        super().__init__(problems)


class ExposureParamError(ParamError):
    """The parameters for the exposure of a CNF are wrong; nothing was changed."""

    message = "k8s_cnf_exposure_param has {count} problem(s): {listed}."


class ExposureError(ProblemList):
    """Services of a CNF or an application cannot be exposed as its request wants them.

    :param owner: whose Services they are.
    :param problems: each names the Service.
    """

    message = (
        "The Services of {owner} cannot be exposed as its request wants: {listed}."
    )
    default_hint = "Correct the request or the Services."


class PreflightError(ProblemList):
    """A precondition of the operation does not hold; nothing was changed.

    :param problems: each with its fix.
    """

    message = "The preflight checks found {count} problem(s): {listed}."
    default_hint = "Nothing was changed."


class OwnershipError(K8sMgmtError):
    """The cluster's directory belongs to another VNF instance."""

    message = "The directory {path} on the Ansible server {host} {reason}."
    default_hint = (
        "Give this VNF a transferring_inventory_path of its own; "
        "the directory was not touched."
    )


class DiscoveryError(ProblemList):
    """The Heat stack does not contain the VMs that the parameters describe."""

    message = "The VMs were not found in the Heat stack {stack}: {listed}."
    default_hint = "Compare the *_cp_name and aspect_id parameters with the Base HOT."

    def __init__(self, stack: str, problems: Sequence[str]) -> None:
        super().__init__(problems, stack=stack)


class RemoteError(K8sMgmtError):
    """An exchange with another host failed."""


class ConnectError(RemoteError):
    """No SSH session was established within the time limit."""

    message = (
        "No SSH connection to {user}@{host}:{port} within {seconds:g} s: {reason}."
    )
    default_hint = "Check address, network and security groups."


class ConnectionLost(ConnectError):
    """An established SSH session broke, or the host stopped answering on it."""

    message = "The SSH connection to {host} was lost during `{command}`: {reason}."


class AuthError(RemoteError):
    """The host refused the credentials."""

    message = "{host}:{port} refused the SSH login of user {user}: {reason}."
    default_hint = "Correct the user name, password or key in the parameters."


class PrivateKeyError(RemoteError):
    """A private key of the parameters cannot be used for the login."""

    message = "{attribute} {reason}."


class HostKeyError(RemoteError):
    """The host presents another key than the recorded one."""

    message = (
        "The SSH host key of {host} is not the one that was recorded ({recorded})."
    )
    default_hint = (
        "If the host was rebuilt on purpose, put the key that its console shows into "
        "its line of the file; if not, the connection may be intercepted."
    )


class UnknownHostError(HostKeyError):
    """No key of the host is recorded, and no first one is trusted at this point."""

    message = "No SSH host key of {host} is recorded in {recorded}, so it is not asked."
    default_hint = "Operations, also one that modifies the VNF instance, record it."


class UnusableError(RemoteError):
    """A VM accepts the login, and Ansible cannot work there."""

    message = "{host} accepts the SSH login, and Ansible cannot work there: {reason}."
    default_hint = "Make room on its disk, or heal its VNFC."


class CommandFailed(RemoteError):
    """A command on a remote host ended with an exit code other than 0.

    All fields are redacted: ``command`` as an operator would type it, ``tail`` the last
    lines of its output and, of the driver's own commands, ``output`` all that is kept
    of it, for callers that search it.
    """

    message = "On {host}, `{command}` ended with exit code {rc}: {tail}"


class CommandTimeout(RemoteError):
    """A command on a remote host exceeded its time limit and was ended."""

    message = "On {host}, `{command}` did not end within {seconds:g} s."


class FileError(RemoteError):
    """A file on a remote host could not be read or written."""

    message = "On {host}, {path} could not be {action}: {reason}."


class DamagedFile(RemoteError):
    """A file of the cluster's directory is not as this driver wrote it."""

    message = (
        "The file {path} on the Ansible server {host} is not as it was written: "
        "{reason}."
    )

    @property
    def what(self) -> str:
        """The message without the hint, for the log when the file is rebuilt."""
        return str(self.args[0])


class PlaybookError(K8sMgmtError):
    """A playbook run on the Ansible server failed."""


class PlaybookFailed(PlaybookError, ProblemList):
    """Ansible ended with failed or unreachable hosts.

    :param failures: ``host: task: message`` of each failing host and task.
    :param tasks: the same for programs, kept in :attr:`tasks`: ``host``, ``task`` and
        ``message`` of each.
    """

    message = (
        "Playbook {playbook} failed on {host} (exit code {rc}): {listed}. "
        "The whole log is {log} on {host}."
    )
    default_hint = "Fix the cause; kubespray can be run again."

    def __init__(
        self,
        *,
        failures: Sequence[str],
        tasks: Sequence[Mapping[str, str]] = (),
        **fields: Any,
    ) -> None:
        self.tasks = tuple(tasks)
        super().__init__(failures, **fields)


class PlaybookTimeout(PlaybookError):
    """The run exceeded a time limit and its process group was ended."""

    message = (
        "Playbook {playbook} on {host} was ended: {reason}. Last: {last}. "
        "The whole log is {log} on {host}."
    )


class PlaybookLost(PlaybookError):
    """The run left no exit code (reboot or kill on the Ansible server)."""

    message = (
        "Playbook {playbook} on {host} ended without an exit code; the server was "
        "rebooted or the run was killed. The log is {log} on {host}."
    )


class BusyError(PlaybookError):
    """Another playbook run of the same cluster is under way."""

    message = (
        "Playbook {playbook} (run {run}) is still running for this cluster on {host}."
    )
    default_hint = "Wait for it to end."


class LockedError(K8sMgmtError):
    """Another operation works on the same cluster."""

    message = "The cluster in {path} on {host} is locked by {owner}."
    default_hint = (
        "Wait for that operation to end; nothing was changed. The lock goes with the "
        "connection of the process that holds it."
    )


class ClusterError(K8sMgmtError):
    """The Kubernetes cluster is not as it should be."""


class DrainError(ClusterError, ProblemList):
    """Nodes could not be drained; they and their remaining pods are left as they are.

    :param failed: how many.
    :param outcomes: one sentence for each node, drained or not.
    :param no_other_node: no other node accepts any of the pods that are left.
    """

    message = "{failed} of {count} node(s) could not be drained: {listed}."

    def __init__(
        self, *, outcomes: Sequence[str], no_other_node: bool = False, **fields: Any
    ) -> None:
        self.no_other_node = no_other_node
        super().__init__(outcomes, **fields)


class PodNetworkError(ClusterError, ProblemList):
    """Pods on different nodes, or a pod and the API's Service, do not reach each other.

    :param problems: each names nodes, direction and what was tried.
    """

    message = "The pod network has {count} problem(s): {listed}."


class LoadBalancerError(K8sMgmtError):
    """The load balancer's script failed; its earlier configuration stays."""

    message = "The load balancer on {host} refused `{verb}`: {reason}"


class HelmLoginError(K8sMgmtError):
    """Tacker's login for Helm does not work on a control plane."""

    message = "The login with which Tacker runs Helm does not work on {host}: {reason}"
    default_hint = (
        "Fix that on the control plane. Tacker's v1 API logs in with a password, at "
        "port 22."
    )


class VimError(K8sMgmtError):
    """A request to Tacker's VIM registry failed or is not possible."""


class TackerError(K8sMgmtError):
    """Tacker's configuration or database, or its content, cannot be used."""


class TackerConfigError(TackerError):
    """Tacker's configuration cannot be read, or leads nowhere."""


class CloudError(K8sMgmtError):
    """The OpenStack of the VMs cannot be asked, or its answer cannot be used."""


class UnsupportedOperation(K8sMgmtError):
    """The operation cannot succeed, nor can a retry of it; another operation may.

    The driver has not touched the VMs.
    """


class NoVnfcError(UnsupportedOperation):
    """A heal whose list of VNFCs is empty."""

    message = (
        "vnfcInstanceId is an empty list, which names no VNFC. A request without "
        "vnfcInstanceId heals the whole VNF; nothing was changed."
    )


class StepFailed(K8sMgmtError):
    """What Tacker shows: which step of which operation failed, why and what next.

    A cause that is a :class:`K8sMgmtError` is chained, and its hint is shown.
    """

    message = "{operation}: step {number}/{total} ({step}) failed: {cause}{left}"


class PackageError(ProblemList):
    """A VNF package cannot be built, or Tacker cannot use it.

    :param package: its file or deployment flavour.
    :param problems: each names the file in the package.
    """

    message = "The VNF package {package} has {count} problem(s): {listed}."

    def __init__(self, package: str, problems: Sequence[str]) -> None:
        super().__init__(problems, package=package)


class BastionError(RemoteError):
    """A host is reached through a bastion, and the bastion cannot be used."""


class BastionUnreachable(BastionError, ConnectError):
    """No SSH session with the bastion; the hosts behind it may be healthy."""

    message = (
        "No SSH connection to the bastion {user}@{host}:{port} within {seconds:g} s: "
        "{reason}."
    )


class BastionLost(BastionError, ConnectionLost):
    """The session with the bastion broke twice in a row."""

    message = (
        "The SSH connection to the bastion {host} was lost during `{command}`, again: "
        "{reason}."
    )


class BastionRefused(BastionError, AuthError):
    """The bastion refused the credentials."""

    message = (
        "The bastion {host}:{port} refused the SSH login of user {user}: {reason}."
    )
    default_hint = (
        "Correct user name, password or key of the structure `bastion` in the "
        "parameters."
    )


class BastionKeyError(BastionError, HostKeyError):
    """The bastion's own host key is not the expected one."""

    message = "The bastion cannot be trusted: {reason}"


class BastionForbids(BastionError):
    """The bastion accepts the login and forbids TCP forwarding."""

    message = "The bastion {host} does not pass a connection on to {target}."
    default_hint = (
        "Let its sshd_config allow it to this user: AllowTcpForwarding, PermitOpen."
    )


class PasswordsRefused(AuthError):
    """The host accepts no password at all, as stock cloud images do."""

    default_hint = (
        "Give a private key in place of the password, and the VM its public key: a "
        "stock cloud image takes the key pair that `key_name` names in the Base HOT. "
        "Or have the VM's user data allow passwords (ssh_pwauth)."
    )


class RevokedKeyError(HostKeyError):
    """The host presents a key that is marked as revoked."""

    message = (
        "The SSH host key of {host} is revoked ({recorded}), so nothing was sent to it."
    )
    default_hint = (
        "Give the host new keys, then remove its revoked one. While it presents that "
        "one, the connection may be intercepted."
    )


class HostNameError(RemoteError):
    """What is to be recorded among host keys is not one host and its key."""

    message = "{what} cannot be recorded in {recorded}: it is not {wanted}."
    default_hint = "Correct the request, or the file that has it."


class GivenKeyError(HostKeyError):
    """The host presents none of the keys that the request gives."""

    message = (
        "The SSH host key of {host}, {kind} {fingerprint}, is none of those that the "
        "request gives, so nothing was sent to it."
    )
    default_hint = (
        "Compare it with what `ssh-keygen -l` says of the host's own files "
        "/etc/ssh/ssh_host_*_key.pub. If they differ, the connection is intercepted; "
        "else correct the request."
    )
