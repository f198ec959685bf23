# SPDX-License-Identifier: Apache-2.0
"""The text of a profile: YAML, as far as JSON goes."""

from collections.abc import Iterator, Mapping
from typing import Any

import yaml

from tacker_k8s_mgmt.model import yaml_text
from tacker_k8s_mgmt.request.profile_values import LARGEST, Refused

_DEEPEST = 20


@yaml_text.limited
class _Loader(yaml.SafeLoader):
    """Refuses aliases, whose values may grow without limit, and repeated names."""

    def compose_node(self, parent: yaml.Node | None, index: int) -> yaml.Node | None:
        if self.check_event(yaml.AliasEvent):
            mark = self.get_mark()
            raise yaml.MarkedYAMLError(problem="has an alias", problem_mark=mark)
        return super().compose_node(parent, index)

    def construct_mapping(
        self, node: yaml.MappingNode, deep: bool = False
    ) -> dict[Any, Any]:
        names: set[str] = set()
        for key, _ in node.value:
            if (name := str(key.value)) in names:
                raise yaml.MarkedYAMLError(
                    problem=f"has {name[:64]!r} twice", problem_mark=key.start_mark
                )
            names.add(name)
        return super().construct_mapping(node, deep)


# A date is text, as in JSON.
_Loader.yaml_implicit_resolvers = {
    first: [pair for pair in pairs if pair[0] != "tag:yaml.org,2002:timestamp"]
    for first, pairs in yaml.SafeLoader.yaml_implicit_resolvers.items()
}


def parse(text: bytes) -> Mapping[str, Any]:
    """The mapping that a text describes.

    :raises Refused: the text is too large, or no YAML that JSON could have.
    """
    if len(text) > LARGEST:
        raise Refused([f"is larger than {LARGEST} bytes"])
    try:
        value = yaml_text.document(text.decode(), _Loader)
    except UnicodeDecodeError:
        raise Refused(["is no text in UTF-8"]) from None
    except yaml.YAMLError as error:
        raise Refused([_sentence(error)]) from None
    if not isinstance(value, Mapping):
        raise Refused(["must be a mapping with parameters"])
    if problems := list(_foreign(value, "")):
        raise Refused(problems)
    return value


def _sentence(error: yaml.YAMLError) -> str:
    """The problem and its line, without the text around it, which may be a secret."""
    mark = getattr(error, "problem_mark", None)
    where = f" in line {mark.line + 1}" if mark else ""
    problem = getattr(error, "problem", None) if type(error) is _OURS else None
    return f"{problem or 'is no valid YAML'}{where}"


_OURS = yaml.MarkedYAMLError


def _foreign(value: Any, place: str, depth: int = 0) -> Iterator[str]:
    """What JSON does not have."""
    if depth > _DEEPEST:
        yield f"{place}: is nested too deeply"
    elif isinstance(value, Mapping):
        for name, inner in value.items():
            here = f"{place}.{name}" if place else str(name)
            if not isinstance(name, str):
                yield f"{here[:64]}: a name must be text; put it in quotes"
            else:
                yield from _foreign(inner, here, depth + 1)
    elif isinstance(value, list):
        for number, inner in enumerate(value):
            yield from _foreign(inner, f"{place}.{number}", depth + 1)
    elif not isinstance(value, str | int | float | bool | None):
        yield f"{place}: must be text, a number, true, false, a list or a mapping"
    elif isinstance(value, float) and value - value != 0:
        yield f"{place}: must be a finite number"
