# SPDX-License-Identifier: Apache-2.0
"""The sample dashboard, against the schema of the oldest Grafana that it is for.

Grafana's own classes, which are generated from that schema, read it. They drop names
that they do not know and take every value of an enumeration, so both are compared here.
"""

import copy
import enum
import json
import typing

import pytest
from grafana_foundation_sdk.cog import encoder, plugins
from grafana_foundation_sdk.models import dashboard

from tests.tree import ROOT

SAMPLE = ROOT / "samples" / "monitoring" / "grafana-dashboard.json"
DASHBOARD = json.loads(SAMPLE.read_text())
#: Of exported dashboards alone, and what Grafana shows in its editor of variables.
BESIDES = {"/__inputs", "/__requires", "/templating/list/1/definition"}


@pytest.fixture(scope="module", autouse=True)
def panels():
    plugins.register_default_plugins()


def read(content):
    return dashboard.Dashboard.from_json(content)


def lost(given, kept, place=""):
    """Where something of a document is missing or different in another one."""
    if isinstance(given, dict) and isinstance(kept, dict):
        for name, value in given.items():
            if name in kept:
                yield from lost(value, kept[name], f"{place}/{name}")
            else:
                yield f"{place}/{name}"
    elif isinstance(given, list) and isinstance(kept, list) and len(given) == len(kept):
        for number, (one, other) in enumerate(zip(given, kept, strict=True)):
            yield from lost(one, other, f"{place}/{number}")
    elif given != kept:
        yield place


def kinds(hint):
    """The types that an annotation names."""
    arguments = typing.get_args(hint)
    return {kind for one in arguments for kind in kinds(one)} if arguments else {hint}


def wrong(value, hint, place=""):
    """Where a value is no member of an enumeration."""
    if hasattr(type(value), "from_json"):
        for name, one in typing.get_type_hints(type(value)).items():
            yield from wrong(getattr(value, name), one, f"{place}/{name}")
    elif isinstance(value, list):
        for number, one in enumerate(value):
            yield from wrong(one, hint, f"{place}/{number}")
    elif isinstance(value, str | int):
        found = kinds(hint)
        named = [one for one in found if isinstance(one, enum.EnumType)]
        members = [member.value for one in named for member in one]
        if named and not isinstance(value, tuple(found)) and value not in members:
            yield place


def faults(content):
    """What Grafana's schema has not, or has in another way."""
    made = read(content)
    back = json.loads(encoder.JSONEncoder().encode(made))
    return {*lost(content, back)} - BESIDES | {*wrong(made, dashboard.Dashboard)}


def test_grafana_knows_every_name_and_value():
    assert faults(DASHBOARD) == set()


def changed(name, value, *path):
    """The dashboard with another value at a place."""
    content = copy.deepcopy(DASHBOARD)
    place = content
    for word in path:
        place = place[word]
    place[name] = value
    return content


@pytest.mark.parametrize(
    ("content", "fault"),
    [
        (changed("refreshing", "1m"), "/refreshing"),
        (
            changed("colour", "value", "panels", 0, "options"),
            "/panels/0/options/colour",
        ),
        (
            changed("query", "up", "panels", 0, "targets", 0),
            "/panels/0/targets/0/query",
        ),
        (
            changed("colorMode", "purple", "panels", 0, "options"),
            "/panels/0/options/color_mode",
        ),
        (changed("graphTooltip", 7), "/graph_tooltip"),
    ],
)
def test_a_slip_is_noticed(content, fault):
    assert faults(content) == {fault}


def test_each_panel_is_of_a_kind_that_grafana_has():
    for panel in read(DASHBOARD).panels:
        assert type(panel.options).__name__ == "Options", panel.title
