# SPDX-License-Identifier: Apache-2.0
"""Exceptions about logins; a branch of :mod:`tacker_k8s_mgmt.errors`."""

from tacker_k8s_mgmt import errors


class PasswordsRefused(errors.AuthError):
    """The host accepts no password at all, as stock cloud images do."""

    default_hint = (
        "Give a private key in place of the password, and the VM its public key: a "
        "stock cloud image takes the key pair that `key_name` names in the Base HOT. "
        "Or have the VM's user data allow passwords (ssh_pwauth)."
    )


class RevokedKeyError(errors.HostKeyError):
    """The host presents a key that is marked as revoked."""

    message = (
        "The SSH host key of {host} is revoked ({recorded}), so nothing was sent to it."
    )
    default_hint = (
        "Give the host new keys, then remove its revoked one. While it presents that "
        "one, the connection may be intercepted."
    )


class HostNameError(errors.RemoteError):
    """What is to be recorded among host keys is not one host and its key."""

    message = "{what} cannot be recorded in {recorded}: it is not {wanted}."
    default_hint = "Correct the request, or the file that has it."


class GivenKeyError(errors.HostKeyError):
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
