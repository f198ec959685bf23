# SPDX-License-Identifier: Apache-2.0
"""What an attacker writes where a text, a document or an archive is expected."""

import gzip
import io
import tarfile
from collections.abc import Iterator
from typing import Any

#: A text that would clear a terminal, rename its window and turn what follows around.
ESCAPES = "\x1b[2J\x1b]0;owned\x07\x9b31m\u202egnp.exe"
#: None of them may reach a terminal or a log.
STEERING = frozenset("\x1b\x07\x9b\u202e\x00\x08\r")

#: Documents that end a process or fill its memory when they are read carelessly.
DEEP = "[" * 100_000
LAUGHS = "a0: &a0 [x, x, x, x, x, x, x, x, x]\n" + "".join(
    f"a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 9)}]\n" for n in range(1, 12)
)
#: Each of the documents stands for no more than one may.
MANY = ("---\n" + "".join(LAUGHS.splitlines(keepends=True)[:5])) * 5000
MERGES = "a0: &a0 {k: 1}\n" + "".join(
    f"a{n}: &a{n} {{<<: [*a{n - 1}, *a{n - 1}]}}\n" for n in range(1, 40)
)
#: Flat as it is written, and as deep as all of its levels together.
STAIRS = "a0: &a0 [x]\n" + "".join(
    f"a{n}: &a{n} {'[' * 50}*a{n - 1}{']' * 50}\n" for n in range(1, 100)
)
ITSELF = "a: &a [*a]\n"
OBJECTS = "a: !!python/object/apply:os.system [touch /tmp/owned]\n"
YAML = {
    "nested deeply": DEEP,
    "billion laughs": LAUGHS,
    "many documents": MANY,
    "merged keys": MERGES,
    "nested by aliases": STAIRS,
    "within itself": ITSELF,
    "objects of Python": OBJECTS,
}
#: The same for JSON.
DEEP_JSON = "[" * 200_000


def tgz(*members: tuple[str, bytes, bytes, str]) -> bytes:
    """An archive of members: name, type, content, and where a link leads."""
    packed = io.BytesIO()
    with tarfile.open(fileobj=packed, mode="w:gz") as archive:
        for name, kind, content, target in members:
            entry = tarfile.TarInfo(name)
            entry.type, entry.linkname, entry.size = kind, target, len(content)
            archive.addfile(entry, io.BytesIO(content))
    return packed.getvalue()


def zeros(size: int) -> bytes:
    """Compressed bytes that unpack to many more."""
    packed = io.BytesIO()
    with gzip.GzipFile(fileobj=packed, mode="wb", compresslevel=1) as stream:
        for _ in range(size >> 20):
            stream.write(bytes(1 << 20))
    return packed.getvalue()


def long_header(size: int) -> bytes:
    """A compressed archive whose first header claims a size, and has it."""
    entry = tarfile.TarInfo("././@PaxHeader")
    entry.type, entry.size = tarfile.XHDTYPE, size
    return gzip.compress(entry.tobuf(tarfile.USTAR_FORMAT), 1) + zeros(size)


def places(value: Any, place: tuple[str | int, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """Every place in a document, leaves and what holds them."""
    yield place
    if isinstance(value, dict):
        for name, inner in value.items():
            yield from places(inner, (*place, name))
    elif isinstance(value, list):
        for number, inner in enumerate(value):
            yield from places(inner, (*place, number))
