# SPDX-License-Identifier: Apache-2.0
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


def completed(request: Request) -> Request:
    """The request with a password in each login that has neither one nor a key.

    Those in Barbican, which is not reached from here, are asked for as well.

    :raises UsageError: there is no terminal to ask on.
    """
    installation = copy.deepcopy(dict(request.installation))
    for name, prefix in LOGINS:
        login = installation.get(_written(installation, name))
        if isinstance(login, dict) and not _has(login, prefix):
            user = login.get(_written(login, f"{prefix}username"), "?")
            login[_written(login, f"{prefix}password")] = _ask(f"{name}, user {user}")
    values = dict(request.additional_params)
    values[_written(values, params.ATTRIBUTE)] = installation
    body = {**request.body, "additionalParams": values}
    return dataclasses.replace(request, body=body)


def _written(structure: Mapping[str, Any], name: str) -> str:
    """The spelling of an attribute in a structure; the specification's if absent."""
    camel = key_aliases.camel(name)
    return camel if camel in structure and name not in structure else name


def _has(login: Mapping[str, Any], prefix: str) -> bool:
    names = (f"{prefix}password", f"{prefix}private_key")
    return any(_is_usable(login.get(_written(login, name))) for name in names)


def _is_usable(value: Any) -> bool:
    if isinstance(value, Mapping) and value.keys() & {"secret_ref", "secretRef"}:
        return False
    return field_types.blank_is_absent(value) is not None


def _ask(login: str) -> str:
    try:
        with warnings.catch_warnings():
            # Without a terminal getpass reads standard input and echoes it.
            warnings.simplefilter("error", getpass.GetPassWarning)
            return getpass.getpass(f"Password of {login}: ")
    except getpass.GetPassWarning:
        raise UsageError(
            f"there is no terminal to ask for the password of {login}"
        ) from None
    except EOFError:
        raise UsageError(f"the input ended at the password of {login}") from None
    except UnicodeDecodeError:
        raise UsageError(f"the password of {login} is no text in UTF-8") from None
