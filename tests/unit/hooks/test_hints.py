"""What operators are told to do about wrong parameters."""

import ast
from collections import defaultdict
from pathlib import Path

import pytest

from tacker_k8s_mgmt.hooks import hints

TEXTS = {
    name: text
    for name, text in vars(hints).items()
    if name.isupper() and not name.startswith("_")
}


def constants(path):
    tree = ast.parse(path.read_text())
    found = (node.value for node in ast.walk(tree) if isinstance(node, ast.Constant))
    return {value for value in found if isinstance(value, str)}


def test_no_advice_stands_twice_in_the_hooks():
    places = defaultdict(list)
    for path in sorted(Path(hints.__file__).parent.rglob("*.py")):
        for text in constants(path):
            if "Send `" in text:
                places[text].append(path.name)
    assert "hints.py" in places[hints.FAIL_ALREADY]
    assert {text: names for text, names in places.items() if len(names) > 1} == {}


@pytest.mark.parametrize("name", sorted(TEXTS))
def test_each_advice_names_one_way_out(name):
    verbs = [
        verb for verb in ("fail", "rollback", "retry") if f"`{verb}`" in TEXTS[name]
    ]
    assert len(verbs) == 1
    # No request scales the control plane.
    corrected = name != "PLANES_GO"
    assert TEXTS[name].endswith(" then a corrected request.") is corrected


@pytest.mark.parametrize(
    ("name", "untouched"),
    [("ROLLBACK", True), ("VMS_GO", False), ("FAIL_ALREADY", False), ("FAIL", True)],
)
def test_that_nothing_was_changed_is_said_only_where_it_is_so(name, untouched):
    assert TEXTS[name].startswith("Nothing was changed. ") is untouched
