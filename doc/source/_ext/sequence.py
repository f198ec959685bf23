# SPDX-License-Identifier: Apache-2.0
"""Draws a sequence of messages as an SVG, for the directive ``sequence``.

Each message has a row: its text at the left, its arrow between the lanes at the right.
So no text touches a lane, however narrow the page is.
"""

import html
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

_MESSAGE = re.compile(r"(?P<sender>.+?) -> (?P<receiver>.+?): (?P<text>.+)")
# Pixels. The whole is to be read at 460 of them, the width of a narrow page.
_LANE, _ROW, _TEXTS, _MARGIN = 36, 22, 220, 12
_LETTER = 6.4  # width of a letter of the names
_SLOPE = 0.71  # of the names, which are turned by 45 degrees
_DOT, _HEAD = 3, 7
_LONGEST = 33  # letters that fit beside the lanes


@dataclass(frozen=True)
class Message:
    """An arrow from one participant's lane to another's, by their numbers."""

    sender: int
    receiver: int
    text: str


def parse(lines: Sequence[str]) -> tuple[list[str], list[Message]]:
    """The participants, in the order of their first mention, and the messages.

    :param lines: each ``SENDER -> RECEIVER: TEXT``; the first one may list participants
        with commas to set their order.
    :raises ValueError: a line is not of this form, or its text too long.
    """
    names: list[str] = []
    messages = []
    for number, line in enumerate(lines):
        found = _MESSAGE.fullmatch(line)
        if found is None and number == 0 and ", " in line:
            names = line.split(", ")
            continue
        if found is None:
            raise ValueError(f"not SENDER -> RECEIVER: TEXT: {line}")
        if len(found["text"]) > _LONGEST:
            raise ValueError(f"more than {_LONGEST} letters: {line}")
        for name in found["sender"], found["receiver"]:
            if name not in names:
                names.append(name)
        ends = names.index(found["sender"]), names.index(found["receiver"])
        messages.append(Message(*ends, found["text"]))
    return names, messages


def draw(lines: Sequence[str]) -> str:
    """The SVG.

    :raises ValueError: see :func:`parse`.
    """
    names, messages = parse(lines)
    top = round(max(map(len, names)) * _LETTER * _SLOPE) + 2 * _MARGIN
    bottom = top + len(messages) * _ROW
    # The last name reaches beyond its lane.
    width = _lane(len(names) - 1) + round(len(names[-1]) * _LETTER * _SLOPE) + _MARGIN
    parts = [*_lanes(names, top, bottom)]
    for number, message in enumerate(messages):
        parts += _row(message, top + number * _ROW, width, striped=number % 2 == 0)
    # Screen readers get the caption, and not the drawing word by word.
    return (
        f'<svg class="sequence" aria-hidden="true" viewBox="0 0 {width} {bottom}"'
        f' style="max-width: {width * 1.25:.0f}px">{"".join(parts)}</svg>'
    )


def _lane(number: int) -> int:
    """Where the line of a participant is."""
    return _TEXTS + _MARGIN + number * _LANE


def _lanes(names: Sequence[str], top: int, bottom: int) -> Iterator[str]:
    for number, name in enumerate(names):
        x, y = _lane(number), top - _MARGIN // 2
        yield f'<text transform="translate({x},{y}) rotate(-45)">{_text(name)}</text>'
        yield f'<path class="lane" d="M{x} {top}V{bottom}"/>'


def _row(message: Message, top: int, width: int, *, striped: bool) -> Iterator[str]:
    if striped:
        yield (
            f'<rect class="stripe" y="{top}" width="{width}" height="{_ROW}" rx="3"/>'
        )
    middle = top + _ROW // 2
    begin, end = _lane(message.sender), _lane(message.receiver)
    back = -_HEAD if begin < end else _HEAD
    yield f'<text x="4" y="{middle + 4}">{_text(message.text)}</text>'
    yield f'<circle cx="{begin}" cy="{middle}" r="{_DOT}"/>'
    yield f'<path d="M{begin} {middle}H{end + back}"/>'
    yield f'<path class="head" d="M{end} {middle}l{back} -4v8z"/>'


def _text(text: str) -> str:
    return html.escape(text, quote=False)
