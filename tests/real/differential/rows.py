# SPDX-License-Identifier: Apache-2.0
"""What a row of the comparison is, and how what was seen is made comparable."""

import json
import re
import shlex
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from tests.real.differential.site import ADMIN_TOKEN, Answer, Site

_SAME = (
    (r"https?://[\w.-]+:\d+", "URL"),
    (r"\b127\.0\.0\.1:\d+", "HOST"),
    (r"\[?[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}\]?", "UID"),
    (r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?Z", "TIME"),
    # ReplicaSet's hash and the pod's suffix; a DaemonSet's pods have the suffix only.
    (r"\b(web|agent)(-[0-9a-z]{8,10})?-[0-9bcdfghjklmnpqrstvwxz]{5}\b", r"\1-*"),
    (r"\b10\.\d+\.\d+\.\d+\b", "ADDRESS"),
    (r"(?<=resourceVersion: )\S+|(?<=resource version: )\d+ \(\d+\)", "VERSION"),
    (r"(?<![\w.-])(\d+[hms]){1,2}(?![\w.-])", "AGE"),
    (r" {2,}", "  "),
    (r" +\n", "\n"),
)


# Of what kubectl says of several pods, which comes in any order.
_PARTS = re.compile(r"\n(?:Warning: )?|; |, (?=error )|[\[\]]")


@dataclass(frozen=True)
class Row:
    """One thing that is done at both sites.

    :param see: does it and returns what is compared: None, or values of JSON.
    """

    name: str
    see: Callable[[Site], Any]


def same(text: str) -> str:
    """The text without what differs between any two clusters."""
    for pattern, word in _SAME:
        text = re.sub(pattern, word, text)
    return text


def comparable(value: Any) -> Any:
    """:func:`same` for every text in a value of JSON."""
    if isinstance(value, str):
        return same(value)
    if isinstance(value, Mapping):
        return {key: comparable(one) for key, one in value.items()}
    if isinstance(value, Sequence) and not isinstance(value, bytes):
        return [comparable(one) for one in value]
    return value.decode(errors="replace") if isinstance(value, bytes) else value


def manifest_list(*manifests: Any) -> str:
    """A List for ``kubectl -f -``."""
    return json.dumps({"apiVersion": "v1", "kind": "List", "items": manifests})


def pick(value: Any, path: str) -> Any:
    """What is at a dotted path; ``*`` is each item of a list, missing parts are None.

    ``#`` in place of the last part gives the names of the fields.
    """
    head, _, rest = path.partition(".")
    if head == "*":
        return [pick(one, rest) if rest else one for one in value or ()]
    if head == "#":
        return sorted(value or ())
    found = value.get(head) if isinstance(value, Mapping) else None
    return pick(found, rest) if rest and found is not None else found


def flat(value: Any, path: str = "") -> Iterator[tuple[str, Any]]:
    """Pairs of path and value; a list is one value."""
    if isinstance(value, Mapping) and value:
        for key in value:
            yield from flat(value[key], f"{path}.{key}" if path else str(key))
    else:
        yield path, value


def shown(answer: Answer, fields: Sequence[str]) -> dict[str, Any]:
    """What is compared of an answer: all of a Status, the fields of anything else."""
    body = answer.body
    kind = answer.headers.get("Content-Type", "").replace(" ", "")
    seen: dict[str, Any] = {"status": answer.status, "type": kind}
    if isinstance(body, Mapping) and body.get("kind") == "Status":
        seen["body"] = body
    elif fields:
        seen["body"] = {path: pick(body, path) for path in fields}
    elif not isinstance(body, Mapping):
        seen["body"] = body
    return seen


def http(
    name: str,
    method: str,
    path: str,
    body: Any = None,
    fields: str = "",
    *,
    token: str = ADMIN_TOKEN,
    headers: Mapping[str, str] | None = None,
) -> Row:
    """A request; see :func:`shown`.

    :param path: may name what is in :attr:`Site.kept`, as ``str.format`` does.
    :param fields: paths for :func:`pick`, with spaces between them.
    """

    def see(site: Site) -> Any:
        used = site.kept.get(token, token)
        where = path.format(**site.kept)
        return shown(site.request(method, where, body, used, headers), fields.split())

    return Row(name, see)


def patch(name: str, path: str, kind: str, body: Any, fields: str = "") -> Row:
    """A PATCH; ``kind`` is ``merge``, ``strategic-merge``, ``json`` or ``apply``."""
    suffix = "yaml" if kind == "apply" else "json"
    headers = {"Content-Type": f"application/{kind}-patch+{suffix}"}
    return http(name, "PATCH", path, body, fields, headers=headers)


def kubectl(
    name: str,
    words: str,
    *,
    stdin: str = "",
    token: str = ADMIN_TOKEN,
    unordered: bool = False,
    stdout: bool = True,
) -> Row:
    """A kubectl command: its exit code and what it prints.

    :param words: as a shell splits them; may name what is in :attr:`Site.kept`.
    :param unordered: lines and their parts come in any order, and as often as it takes.
    :param stdout: False where standard output is the object, which others rows compare.
    """

    def see(site: Site) -> Any:
        line = [word.format(**site.kept) for word in shlex.split(words)]
        done = site.run(*line, stdin=stdin, token=site.kept.get(token, token))

        def lines(text: str) -> list[str]:
            found = same(text).splitlines()
            return (
                sorted(set(_PARTS.split("\n".join(["", *found]))))
                if unordered
                else found
            )

        seen = {"exit": done.returncode, "stderr": lines(done.stderr)}
        return {**seen, "stdout": lines(done.stdout)} if stdout else seen

    return Row(name, see)


def do(name: str, act: Callable[[Site], Any]) -> Row:
    """Something that has to work and is not compared."""

    def see(site: Site) -> None:
        act(site)

    return Row(name, see)
