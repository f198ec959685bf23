# SPDX-License-Identifier: Apache-2.0
"""The files of openstacksdk, checked before it reads them.

It takes their shapes for granted, and skips a file that it cannot parse.
"""

import os
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import yaml

from tacker_k8s_mgmt.errors import CloudError
from tacker_k8s_mgmt.files import reason
from tacker_k8s_mgmt.model import yaml_text

_MAPPING, _LIST, _TEXT, _SCALAR = "a mapping", "a list", "a text", "a text or a number"
_TYPES: Mapping[str, tuple[type, ...]] = {
    _MAPPING: (dict,),
    _LIST: (list,),
    _TEXT: (str,),
    _SCALAR: (str, int, float),
}
_TOP = dict.fromkeys(("clouds", "client", "cache"), _MAPPING)
_CLOUD = {
    "auth": _MAPPING,
    "regions": _LIST,
    **dict.fromkeys(("auth_type", "cacert", "cert", "key", "cloud", "profile"), _TEXT),
    **dict.fromkeys(("region_name", "identity_api_version"), _SCALAR),
}
_AUTH = dict.fromkeys(
    (
        *("auth_url", "username", "user_id", "password", "token", "system_scope"),
        *("project_name", "project_id", "domain_name", "domain_id"),
        *("user_domain_name", "user_domain_id"),
        *("project_domain_name", "project_domain_id"),
        *("application_credential_id", "application_credential_name"),
        "application_credential_secret",
    ),
    _TEXT,
)
#: Among these, what may not be empty.
_NEEDED = frozenset({*_TOP, "auth", "regions", "auth_url", "auth_type", "region_name"})


def check(name: str) -> None:
    """Check the files as far as the login to a cloud needs them.

    :param name: of the cloud; "" for none.
    :raises CloudError: a file cannot be read, or has something of another type than it
        has to be; it names the file and the key.
    """
    from openstack.config import loader

    for variable, known in (
        ("OS_CLIENT_CONFIG_FILE", loader.CONFIG_FILES),
        ("OS_CLIENT_SECURE_FILE", loader.SECURE_FILES),
    ):
        named = os.environ.get(variable)
        _check_first([*([named] if named else ()), *known], name)


def _check_first(paths: Sequence[str], name: str) -> None:
    """Check the first of the files that may be read: openstacksdk reads no other."""
    for path in paths:
        try:
            with open(path, encoding="utf-8") as file:
                content = yaml_text.document(file.read())
        except (FileNotFoundError, PermissionError):
            continue
        except OSError as error:
            raise CloudError(
                detail=f"{path} cannot be read: {reason(error)}."
            ) from None
        except UnicodeDecodeError:
            raise CloudError(detail=f"{path} is no text in UTF-8.") from None
        except (yaml.YAMLError, ValueError) as error:
            raise CloudError(detail=f"{path} is no YAML{_where(error)}.") from None
        if problems := list(_problems(content, name)):
            raise CloudError(detail=f"{path}: {'; '.join(problems)}.")
        return


def _where(error: Exception) -> str:
    """The place and the reason, without the text: it may be a password."""
    mark, problem = (getattr(error, f"problem{x}", None) for x in ("_mark", ""))
    place = f": line {mark.line + 1}, column {mark.column + 1}" if mark else ""
    return f"{place}: {problem}" if problem else place


def _problems(content: Any, name: str) -> Iterator[str]:
    if content is None:
        return
    if not isinstance(content, dict):
        yield f"must be a mapping, and is {_is(content)}"
        return
    yield from _wrong(content, _TOP, "")
    clouds = content.get("clouds")
    cloud = clouds.get(name, {}) if isinstance(clouds, dict) else {}
    if not isinstance(cloud, dict):
        yield f"clouds.{name} must be a mapping, and is {_is(cloud)}"
        return
    yield from _wrong(cloud, _CLOUD, f"clouds.{name}.")
    auth = cloud.get("auth")
    if isinstance(auth, dict):
        yield from _wrong(auth, _AUTH, f"clouds.{name}.auth.")


def _wrong(
    values: Mapping[Any, Any], types: Mapping[str, str], place: str
) -> Iterator[str]:
    for key, wanted in types.items():
        if key not in values or (values[key] is None and key not in _NEEDED):
            continue
        value = values[key]
        if isinstance(value, bool) or not isinstance(value, _TYPES[wanted]):
            is_bare = wanted == _TEXT and isinstance(value, int | float)
            more = " (put it in quotes)" if is_bare else ""
            yield f"{place}{key} must be {wanted}, and is {_is(value)}{more}"


def _is(value: Any) -> str:
    if value is None:
        return "empty"
    for kind, types in _TYPES.items():
        if isinstance(value, types) and kind != _SCALAR and not isinstance(value, bool):
            return kind
    if isinstance(value, bool):
        return "true or false"
    return "a number" if isinstance(value, int | float) else "a date"
