# SPDX-License-Identifier: Apache-2.0
"""What operators have to send to Tacker when a hook has failed."""

import ast
import re
from collections import defaultdict
from pathlib import Path

import pytest

import tacker_k8s_mgmt
from tacker_k8s_mgmt import errors
from tacker_k8s_mgmt.hooks import advice as hints
from tests.helpers import source

ROOT = Path(tacker_k8s_mgmt.__file__).parent
BELOW = (
    "features",
    "operations",
    "remote",
    "topology",
    "kubespray",
    "request",
    "model",
)
VERB = re.compile(r"`(retry|rollback|fail|cancel)`|\b[Rr](etry|ollback)\b")

EVERY = {
    name: advice
    for name, advice in vars(hints).items()
    if isinstance(advice, hints.Advice)
}
#: For a request that is wrong.
TEXTS = {name: EVERY[name].text for name in EVERY if "SEND_" in name}


def constants(path):
    tree = source.module(path)
    found = (node.value for node in ast.walk(tree) if isinstance(node, ast.Constant))
    return {value for value in found if isinstance(value, str)}


def docstrings(path):
    found = ast.walk(source.module(path))
    kinds = (ast.Module, ast.ClassDef, ast.FunctionDef)
    return {ast.get_docstring(one, False) for one in found if isinstance(one, kinds)}


def test_nothing_below_the_hooks_names_a_verb_of_tackers():
    """What is raised there is the same for both APIs, which have other verbs."""
    paths = [path for name in BELOW for path in sorted((ROOT / name).rglob("*.py"))]
    assert len(paths) > len(BELOW)
    found = {
        f"{path.relative_to(ROOT)}: {text}"
        for path in (ROOT / "errors.py", *paths)
        for text in constants(path) - docstrings(path)
        if VERB.search(text)
    }
    # A command of Helm's own.
    assert found == {"features/applications/host.py: rollback"}


@pytest.mark.parametrize(
    ("error", "sent"),
    [
        (errors.ClusterError(detail="It is not."), "again"),
        (errors.UnsupportedOperation(detail="It cannot."), "another"),
        (KeyError("x"), "again"),
    ],
)
def test_advice_depends_on_whether_a_second_run_may_end_well(error, sent):
    refused = hints.Advice((), "another")
    assert hints.Advice((), "again", refused)(error).text == sent
    assert hints.Advice((), "again")(error).text == (
        "again" if sent == "again" else "Send `fail` for this operation first."
    )


def test_error_that_no_step_raised_gets_the_advice():
    advice = hints.Advice((), "Send it.")
    with pytest.raises(errors.ConnectError) as caught, hints.attached(advice):
        raise errors.ConnectError(user="u", host="h", port=22, seconds=1, reason="no")
    assert str(caught.value).endswith("security groups. Send it.")


def test_failed_step_has_its_advice_already():
    fields = {"operation": "o", "number": 1, "total": 1, "step": "s", "cause": "c"}
    advice = hints.Advice((), "Send it.")
    with pytest.raises(errors.StepFailed) as caught, hints.attached(advice):
        raise errors.StepFailed(**fields, left="", hint="Sent.")
    assert str(caught.value).endswith("failed: c Sent.")


def test_no_advice_stands_twice_in_the_hooks():
    places = defaultdict(list)
    for path in sorted(Path(hints.__file__).parent.rglob("*.py")):
        for text in constants(path):
            if "Send `" in text:
                places[text].append(path.name)
    assert "advice.py" in places[hints.SEND_FAIL.text]
    assert {text: names for text, names in places.items() if len(names) > 1} == {}


@pytest.mark.parametrize("name", sorted(EVERY))
def test_the_verbs_are_those_of_the_text(name):
    one = EVERY[name]
    for advice in (one, one(errors.UnsupportedOperation(detail=""))):
        named = dict.fromkeys(re.findall("`([a-z]+)`", advice.text))
        against = {"retry"} if "`retry` would have Heat" in advice.text else set()
        assert [verb.value for verb in advice.verbs] == [
            verb for verb in named if verb not in against
        ]


@pytest.mark.parametrize("name", sorted(TEXTS))
def test_each_advice_names_one_way_out(name):
    assert len(EVERY[name].verbs) == 1
    # No request scales the control plane, and the first is followed by another one.
    corrected = name not in ("SEND_ROLLBACK_ONLY", "SEND_FAIL_FIRST")
    assert TEXTS[name].endswith(" then a corrected request.") is corrected


@pytest.mark.parametrize(
    ("name", "untouched"),
    [
        ("UNCHANGED_SEND_ROLLBACK", True),
        ("SEND_ROLLBACK", False),
        ("SEND_FAIL", False),
        ("UNCHANGED_SEND_FAIL", True),
    ],
)
def test_that_nothing_was_changed_is_reported_only_where_it_is_so(name, untouched):
    assert TEXTS[name].startswith("Nothing was changed. ") is untouched
