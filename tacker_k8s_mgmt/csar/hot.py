# SPDX-License-Identifier: Apache-2.0
"""What is wrong with a Base HOT by itself: dead references, missing values."""

import json
from collections.abc import Iterator, Mapping
from typing import Any

from tacker_k8s_mgmt.model.tree import dig, mapping
from tacker_k8s_mgmt.topology.base_hot import BaseHot, Template


def problems(hot: BaseHot) -> list[str]:
    """Dead references, and parameters without a value."""
    templates = (hot.top, *hot.nested.values())
    dead = [f"{t.name}: {text}" for t in templates for text in _dead_references(t)]
    misused = [
        f"{template.name}: {name} {text}"
        for template in templates
        for name, definition in template.resources.items()
        for text in _use_problems(hot, hot.use(definition))
    ]
    nfv = dig(hot.top.parameters, "nfv", "type") == "json"
    return [
        *dead,
        *misused,
        *([] if nfv else [f"{hot.top.name}: there is no parameter nfv of type json"]),
    ]


def unusable_words(hot: BaseHot) -> Iterator[str]:
    """What Tacker's v1 API cannot send to Heat.

    It takes ``password`` anywhere in the main template's text for a key of the template
    (``heat_client.py``, ``create``).
    """
    for kind in ("parameters", "resources"):
        for name, definition in getattr(hot.top, kind).items():
            if "password" in json.dumps({name: definition}, default=str):
                yield (
                    f"{hot.top.name}: {kind}.{name}: Tacker's v1 API fails on a "
                    "template with the word password; write passwd in user data, or "
                    "move the resource into a nested template"
                )


def _dead_references(template: Template) -> Iterator[str]:
    for name, definition in template.resources.items():
        for function, target in references(definition):
            known = (
                template.parameters if function == "get_param" else template.resources
            )
            if target not in known and not target.startswith("OS::"):
                yield f"{name} refers to {target} with {function}, which does not exist"


def references(value: Any) -> Iterator[tuple[str, str]]:
    """``(function, name)`` of every reference in *value*, at any depth."""
    if isinstance(value, Mapping):
        for key, inner in value.items():
            if key == "depends_on" and isinstance(inner, list):
                yield from ((key, str(target)) for target in inner)
            elif key in ("get_param", "get_resource", "get_attr", "depends_on"):
                yield key, str(inner[0] if isinstance(inner, list) and inner else inner)
            else:
                yield from references(inner)
    elif isinstance(value, list):
        for inner in value:
            yield from references(inner)


def parameter_paths(value: Any) -> Iterator[tuple[str, ...]]:
    """The argument of every ``get_param`` in *value* that is a path of names."""
    if isinstance(value, Mapping):
        path = value.get("get_param")
        if isinstance(path, list) and path:
            yield tuple(map(str, path))
        value = list(value.values())
    if isinstance(value, list):
        for inner in value:
            yield from parameter_paths(inner)


def _use_problems(hot: BaseHot, used: Mapping[str, Any] | None) -> Iterator[str]:
    if used is None:
        return
    nested = hot.nested.get(used["type"])
    if nested is None:
        yield f"uses {used['type']}, which is not in nested/"
        return
    given = set(mapping(used.get("properties")))
    required = {name for name, s in nested.parameters.items() if "default" not in s}
    for name in sorted(given - set(nested.parameters)):
        yield f"gives {nested.name} the parameter {name}, which it does not have"
    for name in sorted(required - given):
        yield f"does not give {nested.name} the parameter {name}"
