# SPDX-License-Identifier: Apache-2.0
"""Every command of the guides is run by a test, or there is a reason that it is not."""

import re
from fnmatch import fnmatchcase

import pytest

from tests.documents import account, blocks, running
from tests.tree import ROOT

PATTERNS = [
    (place, pattern)
    for place, patterns in account.everywhere().items()
    for pattern in patterns
]
#: How many commands are not run, for each reason. More of them want a second thought.
COUNTS = (11, 12, 5, 1, 2, 2, 4, 11, 3, 2, 2, 8, 1, 4)

PAGE = """
Title
=====

A role: :doc:`other`. So it is done::

    one --option 'of two
    lines'   # as told
    # only a comment
    two \\
        lines

.. unknown-directive::

   not one

- In a list::

      $ three
      what it prints

      $ four

.. code-block:: ini

   not = one

.. code-block:: bash

   five
"""


def test_commands_are_read_out_of_a_page():
    found = list(blocks.of_page("page.rst", PAGE))
    assert [(one.text, one.shown) for one in found] == [
        ("one --option 'of two\nlines'   # as told", ()),
        ("two \\\n    lines", ()),
        ("three", ("what it prints", "")),
        ("four", ()),
        ("five", ()),
    ]
    assert found[0].where == "page.rst:7"


@pytest.mark.parametrize(
    "command", blocks.commands(), ids=lambda one: f"{one.where} {one.text[:40]}"
)
def test_each_command_is_accounted_for(command):
    places = [name for name, one in PATTERNS if fnmatchcase(command.text, one)]
    assert len(places) == 1, (
        f"{command.where}: `{command.text}` is in {places or 'no list'} of "
        "tests/documents/account.py"
    )


@pytest.mark.parametrize(("place", "pattern"), PATTERNS)
def test_each_pattern_is_that_of_a_command(place, pattern):
    assert account.matching((pattern,)), place


def test_commands_that_are_run_nowhere_are_counted():
    counted = [len(account.matching(one)) for one in account.NOT_RUN.values()]
    assert tuple(counted) == COUNTS


def test_each_scene_is_that_of_an_integration_test():
    tests = "".join(
        path.read_text() for path in (ROOT / "tests" / "integration").glob("*.py")
    )
    assert set(
        re.findall(r'\bguide(?:\.(?:does|says)\(|, )\s*"([^"]+)"', tests)
    ) == set(account.LAB)


def test_values_take_the_place_of_placeholders_and_nothing_else():
    values = {"ID": "7", "VNF_INSTANCE_ID": "8", running.STATE_PATH: "/state"}
    known = {
        "upload ID": "upload 7",
        "show VNF_INSTANCE_ID vnf-VNF_INSTANCE_ID": "show 8 vnf-8",
        f"check {'1' * 8}-1111-1111-1111-{'1' * 12}": "check 8",
        "tacker-k8s-mgmt runs show VNF_INSTANCE_ID": (
            "tacker-k8s-mgmt runs show --state-path /state 8"
        ),
        "echo >>/var/lib/tacker/k8s_mgmt/known_hosts": "echo >>/state/known_hosts",
        "echo VIDEO VNFD_ID": "echo VIDEO VNFD_ID",
    }
    assert {text: running.with_values(text, values) for text in known} == known
