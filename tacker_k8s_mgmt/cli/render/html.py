"""The timeline of a VNF instance's operations as one page for a browser.

The page stands alone: it loads nothing, runs nothing, and every text in it is escaped.
"""

from importlib import resources

import jinja2

from tacker_k8s_mgmt.cli.render import chart
from tacker_k8s_mgmt.model.timeline import Timeline, clock

_TEMPLATE = "page.html.j2"


def render(vnf_id: str, timeline: Timeline, now: float) -> str:
    """The page.

    :param now: seconds since the epoch, for what is under way.
    """
    source = resources.files(__package__).joinpath(_TEMPLATE).read_text("utf-8")
    environment = jinja2.Environment(
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    return environment.from_string(source).render(
        vnf_id=vnf_id, drawn=clock(now, zone=True), operations=chart.draw(timeline, now)
    )
