# SPDX-License-Identifier: Apache-2.0
"""What an operator reads in errors and guides."""

import ast

import pytest

from tests.chaos import advice, guide, operations
from tests.helpers import source
from tests.tree import ROOT

HOOKS = ROOT / "tacker_k8s_mgmt" / "hooks"


@pytest.mark.parametrize(
    ("error", "verbs", "against"),
    [
        (
            "`retry` continues from here; `fail` gives the operation up.",
            "retry fail",
            "",
        ),
        ("Send `fail` for this operation, then a corrected request.", "fail", ""),
        (
            "`retry` continues from here, `rollback` removes what there is, and after "
            "`fail` it stays until the VNF is instantiated again.",
            "retry rollback",
            "",
        ),
        (
            "`rollback` deletes the new VMs; after `fail` they stay, and the next "
            "scale-out or heal joins them. Do not send `retry`: Tacker would end it.",
            "rollback",
            "retry",
        ),
        (
            "Do not send `rollback`: VMs would be deleted. Send `fail`: the new VMs "
            "stay. Do not send `retry`.",
            "fail",
            "rollback retry",
        ),
        (
            "With `rollback` Tacker would have Heat set the group to 3 members. So "
            "compare before you send it: `openstack stack resource list -n 1 S`. If "
            "there are 3, `rollback` deletes the new VMs only. If not: send `fail`.",
            "fail",
            "",
        ),
        ("Heat has 1 VM(s) of an operation that was abandoned with `fail`.", "", ""),
        ("No valid host was found.", "", ""),
        ("", "", ""),
    ],
)
def test_verbs(error, verbs, against):
    told = advice.read(error)
    assert told.verbs == tuple(verbs.split())
    assert told.against == tuple(against.split())


def test_commands():
    told = advice.read(
        "Have Heat continue with `openstack stack update --existing --wait S` and send "
        "`retry`; `known_hosts` has the keys."
    )
    assert told.commands == ("openstack stack update --existing --wait S",)
    assert told.verbs == ("retry",)


def test_what_has_to_follow():
    assert advice.read("The next scale-out or heal joins them.").joins
    assert advice.read("Send `fail`; the same request sent again continues.").again
    assert advice.read("The file /x/known_hosts is not as written. Delete it.").deletes
    assert advice.read("Nothing.") == advice.Advice()


def advised():
    """Every whole text of the hooks that names a verb in the way errors do."""
    for path in HOOKS.rglob("*.py"):
        nodes = list(ast.walk(source.module(path)))
        parts = {id(part) for one in nodes for part in getattr(one, "values", [])}
        for node in nodes:
            text = getattr(node, "value", None)
            if isinstance(text, str) and id(node) not in parts:
                yield from (text for verb in advice.VERBS if f"end `{verb}`" in text)


@pytest.mark.parametrize("text", sorted(set(advised())))
def test_every_advice_of_the_hooks_is_understood(text):
    told = advice.read(text)
    assert told.verbs or told.against


def test_guide_has_a_row_for_each_failure():
    for operation in operations.OPERATIONS:
        for place in ("start", "vms", "end"):
            row = guide.after(operation, place)
            # A scaling has one hook on each side.
            assert row or (operation, place) == ("scale in", "end")
            assert row is None or row.verbs


@pytest.mark.parametrize(
    ("failed_in", "verbs"),
    [
        ("instantiate_start", ("rollback", "retry")),
        ("scale-in: deletion of the VMs", ("fail",)),
        ("scale_start (scale-out)", ("retry", "fail")),
        # Of the v1 API alone.
        ("scale-out: creation of the VMs", ("rollback", "fail")),
        ("modification of the VNF instance", ("fail",)),
        ("heal_end", ("retry",)),
    ],
)
def test_guide_is_read_as_it_is_written(failed_in, verbs):
    assert guide.rows()[failed_in].verbs == verbs


@pytest.mark.parametrize(
    ("error", "place"),
    [
        ("instantiate_start failed: …", "start"),
        ("heal_end, step 3/17: …", "end"),
        ("No valid host was found", "vms"),
    ],
)
def test_place_of_a_failure(error, place):
    assert guide.place_of(error) == place
