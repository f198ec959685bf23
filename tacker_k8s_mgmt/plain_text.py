# SPDX-License-Identifier: Apache-2.0
"""Texts of others, such as a command's output, without what steers a terminal."""

import re

# Control characters (but for tab and line feed), surrogates, and those without a width,
# some of which turn the direction of what follows around.
_STEERING = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\u00ad\u061c\u180e\u200b-\u200f\u2028-\u202e"
    "\u2060-\u206f\ufeff\ufff9-\ufffb\ud800-\udfff\U000e0001-\U000e007f]"
)
_LINE = re.compile(f"[\t\n]|{_STEERING.pattern}")


def printable(text: str) -> str:
    """The text with spaces in place of characters that steer a terminal.

    Lines and tabs stay.
    """
    return _STEERING.sub(" ", text)


def in_line(text: str) -> str:
    """The same as one line, so that none of it looks like a record of its own."""
    return _LINE.sub(" ", text)


def short(text: str, longest: int, *, end: bool = False) -> str:
    """The text as one line: its beginning if it is long, or its end.

    :param longest: characters of it.
    """
    text = " ".join(text.split())
    if len(text) <= longest:
        return text
    return f"...{text[-longest:]}" if end else f"{text[:longest]}..."
