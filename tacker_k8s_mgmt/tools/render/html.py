# SPDX-License-Identifier: Apache-2.0
"""Operations of VNF instances as pages for a browser.

A page loads nothing but pages of this module, runs nothing, and every text in it is
escaped.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass

import jinja2
from markupsafe import Markup, escape

from tacker_k8s_mgmt.model.timeline import Timeline, clock
from tacker_k8s_mgmt.tools.render import chart
from tacker_k8s_mgmt.tools.render.chart import OperationChart

INDEX = "index.html"
_WORD = re.compile(r"\S+")
# Without a character after which a line may end.
_PLAIN = re.compile(r"\w+")


@dataclass(frozen=True)
class _Entry:
    """A line of a list of operations.

    :param vnf: name or id of the VNF instance; "" on its own page.
    """

    operation: OperationChart
    page: str
    vnf: str = ""


def page_name(vnf_id: str) -> str:
    """The file of a VNF instance's page beside the index."""
    return f"{vnf_id}.html"


def render(vnf_id: str, timeline: Timeline, now: float, index: str = "") -> str:
    """The page of a VNF instance.

    :param now: seconds since the epoch, for what is under way.
    :param index: the address of the index page, if there is one.
    """
    operations = chart.draw(vnf_id, timeline, now)
    return _rendered(
        "page.html.j2",
        vnf_id=vnf_id,
        vnf_name=timeline.vnf_name,
        index=index,
        drawn=clock(now, zone=True),
        contents=[_Entry(operation, "") for operation in operations],
        operations=operations,
    )


def render_index(timelines: Mapping[str, Timeline], now: float) -> str:
    """The page that links to those of all VNF instances.

    :param timelines: by the ids of the VNF instances.
    :param now: seconds since the epoch, for what is under way.
    """
    failed, entries = [], []
    for vnf_id, timeline in timelines.items():
        name = timeline.vnf_name or vnf_id
        of_vnf = [
            (hooks[0].started, _Entry(operation, page_name(vnf_id), name))
            for hooks, operation in zip(
                reversed(timeline.occurrences()),
                chart.draw(vnf_id, timeline, now),
                strict=True,
            )
        ]
        entries += of_vnf
        failed += [entry for entry in of_vnf[:1] if entry[1].operation.failure]
    return _rendered(
        "index.html.j2",
        drawn=clock(now, zone=True),
        vnfs=len(timelines),
        failed=_newest_first(failed),
        rows=_newest_first(entries),
    )


def _newest_first(entries: list[tuple[float, _Entry]]) -> list[_Entry]:
    ordered = sorted(entries, key=lambda entry: entry[0], reverse=True)
    return [entry for _, entry in ordered]


def _rendered(template: str, **values: object) -> str:
    environment = jinja2.Environment(
        loader=jinja2.PackageLoader(__package__, ""),
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters["whole"] = _whole
    return environment.get_template(template).render(**values)


def _whole(text: str) -> Markup:
    """The text with words that a browser would break, such as names of nodes, whole."""
    parts, end = [], 0
    for match in _WORD.finditer(text):
        if _PLAIN.fullmatch(match[0]):
            continue
        word = Markup('<span class="whole">{}</span>').format(match[0])
        parts += [escape(text[end : match.start()]), word]
        end = match.end()
    return Markup("").join([*parts, escape(text[end:])])
