# SPDX-License-Identifier: Apache-2.0
"""Exceptions about the bastion; a branch of :mod:`tacker_k8s_mgmt.errors`."""

from tacker_k8s_mgmt import errors


class BastionError(errors.RemoteError):
    """A host is reached through a bastion, and the bastion cannot be used."""


class BastionUnreachable(BastionError, errors.ConnectError):
    """No SSH session with the bastion; the hosts behind it may be well."""

    message = (
        "No SSH connection to the bastion {user}@{host}:{port} within {seconds:g} s: "
        "{reason}."
    )


class BastionLost(BastionError, errors.ConnectionLost):
    """The session with the bastion broke twice in a row."""

    message = (
        "The SSH connection to the bastion {host} was lost during `{command}`, again: "
        "{reason}."
    )


class BastionRefused(BastionError, errors.AuthError):
    """The bastion refused the credentials."""

    message = (
        "The bastion {host}:{port} refused the SSH login of user {user}: {reason}."
    )
    default_hint = (
        "Correct user name, password or key of the structure `bastion` in the "
        "parameters."
    )


class BastionKeyError(BastionError, errors.HostKeyError):
    """The bastion's own host key is not the expected one."""

    message = "The bastion cannot be trusted: {reason}"


class BastionForbids(BastionError):
    """The bastion accepts the login and forbids TCP forwarding."""

    message = "The bastion {host} does not pass a connection on to {target}."
    default_hint = (
        "Let its sshd_config allow it to this user: AllowTcpForwarding, PermitOpen."
    )
