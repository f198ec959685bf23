# SPDX-License-Identifier: Apache-2.0
"""Reading JSON that an operator has written.

No error message quotes the text: it may hold passwords.
"""

import json
import sys
from dataclasses import dataclass
from typing import Any

from tacker_k8s_mgmt import files
from tacker_k8s_mgmt.cli.common import UsageError
from tacker_k8s_mgmt.model import json_text

STDIN = "-"


@dataclass(frozen=True)
class Document:
    """A JSON document.

    :param name: its name in messages.
    :param warnings: repeated keys, whose first values are lost.
    """

    name: str
    value: Any
    warnings: tuple[str, ...]


def load(path: str) -> Document:
    """The JSON document in a file, or on standard input for ``-``.

    :raises UsageError: it cannot be read, or is no JSON.
    """
    name = "standard input" if path == STDIN else path
    twice: list[str] = []

    def mapping(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        names = [key for key, _ in pairs]
        twice.extend(dict.fromkeys(key for key in names if names.count(key) > 1))
        return dict(pairs)

    try:
        value = json_text.parse(_text(path), pairs=mapping)
    except json.JSONDecodeError as error:
        place = f"line {error.lineno}, column {error.colno}"
        raise UsageError(f"{name} is no JSON: {place}: {error.msg}") from None
    except UnicodeDecodeError:
        raise UsageError(f"{name} is no text in UTF-8") from None
    except ValueError as error:
        raise UsageError(f"{name} is no JSON that can be read: {error}") from None
    except OSError as error:
        raise UsageError(f"{name} cannot be read: {files.reason(error)}") from error
    warnings = (
        f"{key!r} is given twice in one object; the last one counts" for key in twice
    )
    return Document(name, value, tuple(warnings))


def _text(path: str) -> str:
    if path == STDIN:
        return sys.stdin.buffer.read().decode("utf-8-sig")
    with open(path, encoding="utf-8-sig") as file:
        return file.read()
