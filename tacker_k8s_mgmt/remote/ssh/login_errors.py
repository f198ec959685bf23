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
