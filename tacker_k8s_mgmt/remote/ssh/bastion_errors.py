"""The bastion's branch of the tree of exceptions (:mod:`tacker_k8s_mgmt.errors`)."""

from tacker_k8s_mgmt import errors


class BastionError(errors.RemoteError):
    """The way to a host leads through a bastion, and that does not serve."""


class BastionUnreachable(BastionError, errors.ConnectError):
    """No SSH session with the bastion could be had; nothing is known of other hosts."""

    message = (
        "No SSH connection to the bastion {user}@{host}:{port} within {seconds:g} s: "
        "{reason}."
    )


class BastionLost(BastionError, errors.ConnectionLost):
    """The session with the bastion breaks whenever it is used."""

    message = (
        "The SSH connection to the bastion {host} was lost during `{command}`, again: "
        "{reason}."
    )


class BastionRefused(BastionError, errors.AuthError):
    """The bastion refused the credentials."""

    message = "The bastion {host}:{port} refused the SSH login of user {user}."
    default_hint = (
        "Correct user name, password or key of the structure `bastion` in the "
        "parameters."
    )


class BastionKeyError(BastionError, errors.HostKeyError):
    """The bastion's own host key is not the right one."""

    message = "The bastion cannot be trusted: {reason}"


class BastionForbids(BastionError):
    """The bastion lets the user in and passes no connections on."""

    message = "The bastion {host} does not pass a connection on to {target}."
    default_hint = (
        "Let its sshd_config allow it to this user: AllowTcpForwarding, PermitOpen."
    )
