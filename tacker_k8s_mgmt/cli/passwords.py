"""Passwords that a request lacks, asked on the terminal."""

import copy
import dataclasses
import getpass
import warnings
from collections.abc import Mapping
from typing import Any

from tacker_k8s_mgmt.cli.common import UsageError
from tacker_k8s_mgmt.csar.request import Request
from tacker_k8s_mgmt.request import field_types, key_aliases, params
from tacker_k8s_mgmt.request.cross_validation import LOGINS


def asked(request: Request) -> Request:
    """The request with a password in each login that has neither one nor a key.

    One that lies in Barbican is asked for as well, since it is not had from there here.

    :raises UsageError: there is no terminal to ask on.
    """
    installation = copy.deepcopy(dict(request.installation))
    for name, prefix in LOGINS:
        login = installation.get(_written(installation, name))
        if isinstance(login, dict) and not _has(login, prefix):
            user = login.get(_written(login, f"{prefix}username"), "?")
            login[_written(login, f"{prefix}password")] = _ask(f"{name}, user {user}")
    given = dict(request.additional_params)
    given[_written(given, params.ATTRIBUTE)] = installation
    return dataclasses.replace(
        request, body={**request.body, "additionalParams": given}
    )


def _written(structure: Mapping[str, Any], name: str) -> str:
    """The attribute's name as it stands there, or as it ought to."""
    camel = key_aliases.camel(name)
    return camel if camel in structure and name not in structure else name


def _has(login: Mapping[str, Any], prefix: str) -> bool:
    names = (f"{prefix}password", f"{prefix}private_key")
    values = (login.get(_written(login, name)) for name in names)
    return any(
        field_types.blank_is_absent(value) is not None and not _in_barbican(value)
        for value in values
    )


def _in_barbican(value: Any) -> bool:
    return isinstance(value, Mapping) and bool(
        value.keys() & {"secret_ref", "secretRef"}
    )


def _ask(whose: str) -> str:
    try:
        with warnings.catch_warnings():
            # It would read standard input, and show what is typed.
            warnings.simplefilter("error", getpass.GetPassWarning)
            return getpass.getpass(f"Password of {whose}: ")
    except (getpass.GetPassWarning, EOFError):
        raise UsageError(
            f"there is no terminal to ask for the password of {whose}"
        ) from None
