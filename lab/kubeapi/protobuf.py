# SPDX-License-Identifier: Apache-2.0
"""The little protobuf that kubectl cannot do without.

Newer kubectl sends the objects of a few typed commands as protobuf (``create ns``,
``create sa``, ``create token``, ``auth can-i``, options of a delete), and Helm sends
the Secrets in which it keeps its releases. Those kinds are decoded; anything else is
answered with 415.
"""

import base64
from typing import Any

from .errors import ApiError

_MAGIC_LENGTH = 4  # b"k8s\0"
_VARINT, _FIXED64, _BYTES = 0, 1, 2

_METADATA_TEXTS = {1: "name", 2: "generateName", 3: "namespace"}
_METADATA_MAPS = {11: "labels", 12: "annotations"}

# The fields of each kind's spec: a name, or a name and the fields of a message.
_RESOURCE_ATTRIBUTES = {
    1: "namespace",
    2: "verb",
    3: "group",
    4: "version",
    5: "resource",
    6: "subresource",
    7: "name",
}
_SPECS: dict[str, dict[int, Any]] = {
    "Namespace": {},
    "ServiceAccount": {},
    "Eviction": {},
    "SelfSubjectReview": {},
    "TokenRequest": {4: "expirationSeconds"},
    "SelfSubjectAccessReview": {
        1: ("resourceAttributes", _RESOURCE_ATTRIBUTES),
        2: ("nonResourceAttributes", {1: "path", 2: "verb"}),
    },
}


def _varint(number: int) -> bytes:
    out = b""
    while number > 127:
        out, number = out + bytes([number & 127 | 128]), number >> 7
    return out + bytes([number])


def field(number: int, data: bytes | str) -> bytes:
    """One length-delimited field."""
    data = data.encode() if isinstance(data, str) else data
    return _varint(number << 3 | _BYTES) + _varint(len(data)) + data


def _read_varint(data: bytes, index: int) -> tuple[int, int]:
    number = shift = 0
    while True:
        byte = data[index]
        index += 1
        number |= (byte & 127) << shift
        shift += 7
        if byte < 128:
            return number, index


def fields(data: bytes) -> list[tuple[int, Any]]:
    """The fields of a message as (number, int or bytes); fixed-width ones are left out.

    :raises IndexError: if the message ends in the middle of a field.
    """
    index = 0
    found: list[tuple[int, Any]] = []
    while index < len(data):
        tag, index = _read_varint(data, index)
        wire_type = tag & 7
        if wire_type == _VARINT:
            value, index = _read_varint(data, index)
            found.append((tag >> 3, value))
        elif wire_type == _BYTES:
            length, index = _read_varint(data, index)
            found.append((tag >> 3, data[index : index + length]))
            index += length
        else:
            index += 8 if wire_type == _FIXED64 else 4
    return found


def _metadata(data: bytes) -> dict[str, Any]:
    metadata: dict[str, Any] = {}
    for number, value in fields(data):
        if number in _METADATA_TEXTS and value:
            metadata[_METADATA_TEXTS[number]] = value.decode()
        elif number in _METADATA_MAPS:
            pair = {n: text.decode() for n, text in fields(value)}
            entries = metadata.setdefault(_METADATA_MAPS[number], {})
            entries[pair.get(1, "")] = pair.get(2, "")
    return metadata


def _message(data: bytes, names: dict[int, Any]) -> dict[str, Any]:
    message: dict[str, Any] = {}
    for number, value in fields(data):
        match names.get(number):
            case (name, inner):
                message[name] = _message(value, inner)
            case str(name):
                message[name] = value.decode() if isinstance(value, bytes) else value
    return message


def decode(raw: bytes) -> dict[str, Any]:
    """The object in a request body: magic, then runtime.Unknown{1: type, 2: object}.

    :raises ApiError: 415 for a kind that is not decoded.
    """
    envelope = dict(fields(raw[_MAGIC_LENGTH:]))
    type_meta = {number: text.decode() for number, text in fields(envelope[1])}
    api_version, kind = type_meta[1], type_meta[2]
    if kind == "DeleteOptions":
        return _delete_options(envelope[2])
    if kind == "Secret":
        return {"apiVersion": api_version, "kind": kind, **_secret(envelope[2])}
    if kind not in _SPECS:
        text = f"the stand-in does not decode {kind} from protobuf; send JSON"
        raise ApiError(415, "UnsupportedMediaType", text)
    parts = dict(fields(envelope[2]))
    spec = parts.get(2, b"")
    decoded = {
        "apiVersion": api_version,
        "kind": kind,
        "metadata": _metadata(parts.get(1, b"")),
    }
    if kind == "Eviction":
        return {**decoded, "deleteOptions": _delete_options(spec)}
    is_message = isinstance(spec, bytes)
    return {**decoded, "spec": _message(spec, _SPECS[kind]) if is_message else {}}


def _secret(data: bytes) -> dict[str, Any]:
    secret: dict[str, Any] = {"data": {}}
    for number, value in fields(data):
        if number == 1:
            secret["metadata"] = _metadata(value)
        elif number == 2:
            entry = dict(fields(value))
            content = base64.b64encode(entry.get(2, b""))
            secret["data"][entry[1].decode()] = content.decode()
        elif number == 3:
            secret["type"] = value.decode()
    return secret


def _delete_options(data: bytes) -> dict[str, Any]:
    options = _message(
        data, {1: "gracePeriodSeconds", 2: ("preconditions", {1: "uid"}), 5: "dryRun"}
    )
    return {key: value for key, value in options.items() if value not in ({}, "")}
