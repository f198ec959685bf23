# SPDX-License-Identifier: Apache-2.0
"""Reading YAML, and walking through data of any shape."""

from collections.abc import Mapping, Sequence
from typing import Any

import yaml

from tacker_k8s_mgmt.model import yaml_text


def parse(text: str) -> Any:
    """The value of a YAML document.

    :raises yaml.YAMLError: it is no YAML.
    """
    return yaml_text.document(text)


def mapping(value: Any) -> Mapping[str, Any]:
    """*value* if it is a mapping, else an empty one."""
    return value if isinstance(value, Mapping) else {}


def sequence(value: Any) -> Sequence[Any]:
    """*value* if it is a list, else an empty one."""
    return value if isinstance(value, list) else []


def size(value: Any) -> int:
    """How many values a value is, with all that are in it."""
    values, left = 0, [value]
    while left:
        one = left.pop()
        values += 1
        if isinstance(one, Mapping):
            left += one.values()
        elif isinstance(one, list | tuple):
            left += one
    return values


def dig(value: Any, *path: str) -> Any:
    """The value at *path* of nested mappings, or None."""
    for key in path:
        value = mapping(value).get(key)
    return value


def node_at(node: yaml.Node | None, *path: str) -> yaml.Node | None:
    """As :func:`dig`, in a composed document, whose nodes have line numbers."""
    for step in path:
        node = next((value for key, value in pairs(node) if key.value == step), None)
    return node


def pairs(node: yaml.Node | None) -> Sequence[tuple[yaml.Node, yaml.Node]]:
    """Keys and values of a composed mapping; none if it is no mapping."""
    return node.value if isinstance(node, yaml.MappingNode) else ()
