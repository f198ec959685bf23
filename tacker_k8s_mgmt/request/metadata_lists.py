# SPDX-License-Identifier: Apache-2.0
"""Lists of the parameters that a VNF instance's metadata replace.

A request that modifies the VNF instance has no ``additionalParams``; what it wants is
in its ``metadata``, which both of Tacker's APIs keep. Each list is an entry of its own,
as JSON text, because Tacker's v1 API stores nothing else.
"""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from pydantic import TypeAdapter, ValidationError

from tacker_k8s_mgmt.model import json_text
from tacker_k8s_mgmt.request import key_aliases, secret_references
from tacker_k8s_mgmt.request.install_params import InstallParams
from tacker_k8s_mgmt.request.key_aliases import Reading

#: The entries of the metadata for attributes of the parameters.
TENANTS = "k8s_tenants"
APPLICATIONS = "k8s_applications"
_ATTRIBUTES = {TENANTS: "tenants", APPLICATIONS: "applications"}


def replaced(reading: Reading, metadata: Mapping[str, Any]) -> Reading:
    """The parameters with the lists of the metadata in place of their own.

    :param reading: the parameters; is not changed.
    :param metadata: an entry that is null, or missing, replaces nothing.
    """
    for entry, attribute in _ATTRIBUTES.items():
        if metadata.get(entry) is not None:
            reading = _replaced(reading, entry, attribute, metadata[entry])
    return reading


def problems(metadata: Mapping[str, Any]) -> list[str]:
    """What is wrong with the lists by themselves, without the other parameters."""
    reading = replaced(Reading({}), metadata)
    applications = _ATTRIBUTES[APPLICATIONS]
    literal = secret_references.literal(InstallParams, reading, applications)
    found = [*reading.problems, *literal]
    opened = secret_references.resolve(InstallParams, reading, None, None)
    for attribute, value in opened.values.items():
        field = InstallParams.model_fields[attribute]
        try:
            TypeAdapter(field.annotation).validate_python(value)
        except ValidationError as error:
            # Neither the values nor the chained exception leave this block.
            for detail in error.errors(include_url=False, include_input=False):
                detail["loc"] = (attribute, *detail["loc"])
                found.append(reading.sentence(detail, {}))
    return found


def _replaced(reading: Reading, entry: str, attribute: str, value: Any) -> Reading:
    problems = []
    if isinstance(value, str):
        try:
            value = json_text.parse(value)
        except ValueError:
            value, problems = [], [f"{entry}: is text, but not JSON"]
    new = key_aliases.read(InstallParams, {attribute: value})
    secret_references.read(InstallParams, new)
    written = {n: text for n, text in reading.written.items() if n[0] != attribute}
    return replace(
        reading,
        values={**reading.values, attribute: new.values.get(attribute)},
        problems=[*reading.problems, *problems, *_named(entry, attribute, new)],
        written={**written, **new.written, (attribute,): entry},
    )


def _named(entry: str, attribute: str, reading: Reading) -> list[str]:
    """The problems, which begin with the attribute's name, with the entry's instead."""
    return [f"{entry}{text.removeprefix(attribute)}" for text in reading.problems]
