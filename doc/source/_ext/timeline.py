# SPDX-License-Identifier: Apache-2.0
"""Draws the timeline of an operation as an SVG, for the directive ``timeline``.

``python3 doc/source/_ext/timeline.py`` writes the one of the first page into a file,
for the README.
"""

import html
import re
from collections.abc import Sequence
from pathlib import Path

HERE = Path(__file__).resolve().parent
#: What the README shows, and the page with the lines that it is drawn from.
PICTURE = HERE.parent / "_static" / "timeline.svg"
PAGE = HERE.parent / "index.rst"

_STEP = re.compile(r"(?P<text>.+): (?P<seconds>\d+(?:\.\d+)?)")
# Pixels. The whole is to be read at 460 of them, the width of a narrow page.
_TEXTS, _BARS, _NUMBERS, _ROW, _BAR = 236, 180, 44, 20, 10
_NARROWEST = 2
_LONGEST = 38  # letters that fit beside the bars
_STYLE = (
    "<style>.timeline{color:#1f2328;fill:currentcolor;font:12px sans-serif}"
    ".timeline .numbers{text-anchor:end}.timeline rect{fill:#a3162d}"
    ".timeline .stripe{fill:currentcolor;fill-opacity:.06}"
    "@media(prefers-color-scheme:dark){.timeline{color:#d1d7e0}"
    ".timeline rect{fill:#ff8a95}}</style>"
)


def parse(lines: Sequence[str]) -> list[tuple[str, float]]:
    """The steps, one after the other, and their seconds.

    :param lines: each ``TEXT: SECONDS``.
    :raises ValueError: a line is not of this form, or its text too long.
    """
    steps = []
    for line in lines:
        found = _STEP.fullmatch(line)
        if found is None:
            raise ValueError(f"not TEXT: SECONDS: {line}")
        if len(found["text"]) > _LONGEST:
            raise ValueError(f"more than {_LONGEST} letters: {line}")
        steps.append((found["text"], float(found["seconds"])))
    return steps


def draw(lines: Sequence[str], *, style: str = "") -> str:
    """The SVG: a row for each step, with its text, its bar and its seconds.

    :param style: for an SVG outside of a page.
    :raises ValueError: see :func:`parse`.
    """
    steps = parse(lines)
    scale = _BARS / sum(seconds for _, seconds in steps)
    width, height = _TEXTS + _BARS + _NUMBERS, len(steps) * _ROW
    parts, passed = [style], 0.0
    for number, (text, seconds) in enumerate(steps):
        top = number * _ROW
        base = top + 14
        begin = _TEXTS + passed * scale
        length = max(seconds * scale, _NARROWEST)
        passed += seconds
        if number % 2 == 0:
            parts.append(
                f'<rect class="stripe" y="{top}" width="{width}" height="{_ROW}"'
                ' rx="3"/>'
            )
        parts.append(
            f'<text x="4" y="{base}">{html.escape(text, quote=False)}</text>'
            f'<rect x="{begin:.1f}" y="{top + (_ROW - _BAR) // 2}"'
            f' width="{length:.1f}" height="{_BAR}" rx="2"/>'
            f'<text class="numbers" x="{width - 4}" y="{base}">{seconds} s</text>'
        )
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" class="timeline" aria-hidden="true"'
        f' viewBox="0 0 {width} {height}" style="max-width: {width * 1.25:.0f}px">'
        f"{''.join(parts)}</svg>"
    )


def standalone() -> str:
    """The picture of the first page, with its colours."""
    _, _, rest = PAGE.read_text().partition("\n.. timeline::")
    block = rest.split("\n\n")[1]
    lines = [line.strip() for line in block.splitlines()]
    return f"{draw(lines, style=_STYLE)}\n"


if __name__ == "__main__":
    PICTURE.write_text(standalone())
