# SPDX-License-Identifier: Apache-2.0
"""A host, and a cluster behind one, whose answers are given, whatever they are."""

import contextlib
import json
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from tacker_k8s_mgmt.remote.ssh.channel import Result

_STEP = re.compile(
    r"\.(?P<name>\w+)|\['(?P<quoted>[^']*)'\]|\[(?P<all>\*)\]|"
    r"\[\?\(@\.(?P<key>\w+)(?P<sign>==|<)(?P<value>[^)]*)\)\]"
)
_PATH = re.compile(r"\{(\.(?:[^{}\"']|\"[^\"]*\"|'[^']*')*)\}")


class Host:
    """Answers by words of the commands.

    :param answers: the first entry of which all words are in the command counts: a text
        as it is, a function that makes an error, the objects of a table, or JSON.
    :param damage: what is made of each text that is sent.
    """

    host = "192.0.2.7"
    redact = staticmethod(str)
    alive = True

    def __init__(
        self, answers: Mapping[str, Any], spoil: Callable[[str], str] = str
    ) -> None:
        self._answers = answers
        self._spoil = spoil

    def run(self, argv: Sequence[str], **_: Any) -> Result:
        return Result(0, self._spoil(self._answer(" ".join(argv))), "")

    def get(self, path: str) -> bytes | None:
        text = self._answer(path)
        return self._spoil(text).encode(errors="replace") if text else None

    def scratch(self) -> contextlib.AbstractContextManager[str]:
        return contextlib.nullcontext("/tmp/scratch")

    def put(self, path: str, data: Any, mode: int = 0o600) -> bool:
        return True

    copy = put

    def __enter__(self) -> "Host":
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """There is nothing to close."""

    def _answer(self, line: str) -> str:
        for words, value in self._answers.items():
            if all(word in line for word in words.split()):
                if callable(value):
                    raise value()
                if isinstance(value, str):
                    return value
                _, is_table, template = line.partition("jsonpath-as-json={.kind}")
                return table(value, template) if is_table else json.dumps(value)
        return table([], "") if "jsonpath-as-json={.kind}" in line else ""


def table(objects: Any, template: str) -> str:
    """What kubectl prints of the fields of objects, as JSON."""
    paths = _PATH.findall(template.partition("{end}")[0])
    parts: list[Any] = [["List"]]
    for one in objects if isinstance(objects, list) else ():
        parts += [list(_results([one], path)) for path in paths]
    return "\n".join(json.dumps(part, indent=4) for part in [*parts, ["List"]])


def _results(values: Sequence[Any], path: str) -> Sequence[Any]:
    for step in _STEP.finditer(path):
        values = [inner for value in values for inner in _inside(value, step)]
    return values


def _inside(value: Any, step: "re.Match[str]") -> Iterator[Any]:
    name = step["name"] or step["quoted"]
    if name is not None:
        if isinstance(value, dict) and name in value:
            yield value[name]
    elif isinstance(value, list):
        for one in value:
            if step["all"] or _matches(one, step):
                yield one


def _matches(one: Any, step: "re.Match[str]") -> bool:
    found = one.get(step["key"]) if isinstance(one, dict) else None
    if step["sign"] == "==":
        return json.dumps(found) == step["value"]
    return isinstance(found, int | float) and found < float(step["value"])
