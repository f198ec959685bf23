# SPDX-License-Identifier: Apache-2.0
"""Draws a sequence of messages with characters, for the directive ``sequence``."""

import re
from collections.abc import Sequence
from dataclasses import dataclass

_MESSAGE = re.compile(r"(?P<sender>.+?) -> (?P<receiver>.+?): (?P<text>.+)")
_BETWEEN = 4  # columns beside a text: blanks, and the line at its end


@dataclass(frozen=True)
class Message:
    """An arrow from one participant's line to another's, by their numbers."""

    sender: int
    receiver: int
    text: str

    @property
    def left(self) -> int:
        """The participant at its left end."""
        return min(self.sender, self.receiver)

    @property
    def right(self) -> int:
        """The participant at its right end."""
        return max(self.sender, self.receiver)


def parse(lines: Sequence[str]) -> tuple[list[str], list[Message]]:
    """The participants, in the order of their first mention, and the messages.

    :param lines: each ``SENDER -> RECEIVER: TEXT``; the first one may list participants
        with commas to set their order.
    :raises ValueError: a line is not of this form.
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
        for name in found["sender"], found["receiver"]:
            if name not in names:
                names.append(name)
        ends = names.index(found["sender"]), names.index(found["receiver"])
        messages.append(Message(*ends, found["text"]))
    return names, messages


def columns(names: Sequence[str], messages: Sequence[Message]) -> list[int]:
    """The column of each participant's line, as narrow as the texts permit."""
    places = [len(names[0]) // 2 + 1]
    for number, name in enumerate(names[1:], 1):
        halves = (len(names[number - 1]) + len(name)) // 2
        texts = [
            places[message.left] + len(message.text) + _BETWEEN
            for message in messages
            if message.right == number
        ]
        places.append(max(places[-1] + halves + 2, *texts, 0))
    return places


def draw(lines: Sequence[str]) -> str:
    """The drawing.

    :raises ValueError: see :func:`parse`.
    """
    names, messages = parse(lines)
    places = columns(names, messages)
    width = places[-1] + len(names[-1])
    head = [" "] * width
    for place, name in zip(places, names, strict=True):
        start = place - len(name) // 2
        head[start : start + len(name)] = name
    empty = ["|" if column in places else " " for column in range(width)]
    rows = [head, empty]
    for message in messages:
        label, arrow = empty.copy(), empty.copy()
        left, right = places[message.left], places[message.right]
        label[left + 2 : left + 2 + len(message.text)] = message.text
        arrow[left + 1 : right] = "-" * (right - left - 1)
        arrow[places[message.sender]] = "+"
        if message.sender < message.receiver:
            arrow[right - 1] = ">"
        else:
            arrow[left + 1] = "<"
        rows += [label, arrow]
    return "\n".join("".join(row).rstrip() for row in [*rows, empty])
