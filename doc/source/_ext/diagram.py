# SPDX-License-Identifier: Apache-2.0
"""Pictures that become an SVG in the page, and so have its colours, light or dark.

``diagram`` takes a drawing of characters, ``sequence`` a list of messages, ``timeline``
one of steps. Drawings where svgbob is not installed, and all of them in formats other
than HTML, are shown as they are written.
"""

import html
import re
from collections.abc import Callable, Iterator, Sequence
from typing import ClassVar

import sequence
import timeline
from docutils import nodes
from docutils.parsers.rst import Directive
from sphinx import addnodes
from sphinx.application import Sphinx

to_svg: Callable[..., str] | None
try:
    from sphinxcontrib.svgbob._svgbob import to_svg
except ImportError:
    to_svg = None


#: Text, as opposed to lines and arrows. svgbob would draw lines for some of it.
_TEXT = re.compile(r"[A-Za-z0-9][\w.,:'-]+(?: [A-Za-z0-9][\w.,:'-]+)*")
_WIDTH, _HEIGHT, _BASE = 8, 16, 12  # of svgbob's cells


def picture(draw: Callable[..., str], drawing: str) -> str:
    """The SVG; a drawing of 68 columns can still be read on a narrow page."""
    lines = _TEXT.sub(lambda text: " " * len(text[0]), drawing)
    svg = draw(lines, include_styles=False)
    columns = max(map(len, drawing.splitlines())) + 1
    height = int(re.findall(r'height="(\d+)"', svg)[0])
    # Screen readers get the caption, and not the drawing word by word.
    attributes = (
        f'aria-hidden="true" viewBox="0 0 {columns * _WIDTH} {height}" '
        f'style="max-width: {columns * _WIDTH}px"'
    )
    svg = re.sub(r'width="\d+" height="\d+"', attributes, svg, count=1)
    return svg.replace("</svg>", f"{''.join(texts(drawing))}</svg>")


def texts(drawing: str) -> Iterator[str]:
    """Each text of a drawing, in its cells."""
    for row, line in enumerate(drawing.splitlines()):
        for found in _TEXT.finditer(line):
            x, y = found.start() * _WIDTH, row * _HEIGHT + _BASE
            width = len(found[0]) * _WIDTH
            text = html.escape(found[0])
            yield f'<text x="{x}" y="{y}" textLength="{width}">{text}</text>'


class Diagram(Directive):
    """A figure; the argument is its caption."""

    required_arguments = 1
    final_argument_whitespace = True
    has_content = True

    def drawn(self) -> str | None:
        """The SVG, unless nothing can draw it."""
        return to_svg and picture(to_svg, "\n".join(self.content))

    def run(self) -> list[nodes.Node]:
        """The figure, and the source for other formats."""
        text = "\n".join(self.content)
        plain = nodes.literal_block(text, text, language="text")
        svg = self.drawn()
        if svg is None:
            return [plain]
        caption = html.escape(self.arguments[0])
        figure = (
            f'<figure class="diagram">{svg}<figcaption>{caption}</figcaption></figure>'
        )
        page = nodes.raw("", figure, format="html")
        return [page, addnodes.only("", plain, expr="not html")]


class SequenceDiagram(Diagram):
    """The same for messages, one a line: ``SENDER -> RECEIVER: TEXT``."""

    draw: ClassVar[Callable[[Sequence[str]], str]] = staticmethod(sequence.draw)

    def drawn(self) -> str | None:
        """The SVG."""
        try:
            return self.draw(self.content)
        except ValueError as error:
            raise self.error(str(error)) from None


class TimelineDiagram(SequenceDiagram):
    """The same for the steps of an operation, one a line: ``TEXT: SECONDS``."""

    draw = staticmethod(timeline.draw)


def setup(app: Sphinx) -> dict[str, bool]:
    """Make the directives and their style known."""
    app.add_directive("diagram", Diagram)
    app.add_directive("sequence", SequenceDiagram)
    app.add_directive("timeline", TimelineDiagram)
    app.add_css_file("diagram.css")
    return {"parallel_read_safe": True}
