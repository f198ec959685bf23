# SPDX-License-Identifier: Apache-2.0
"""The script that changes lines and looks whether a test notices."""

import pytest

from tests import mutation
from tests.tree import ROOT


@pytest.mark.parametrize(
    ("source", "changed"),
    [
        ("a == b", ["(a != b)"]),
        ("a < b", ["(a <= b)"]),
        ("a in b", ["(a not in b)"]),
        ("a and b", ["(a or b)"]),
        ("not a", ["(a)"]),
        ("x = True", ["x = (False)"]),
        ("[3]", ["[(4)]"]),
        ("['key', 'some words']", ["[('keyx'), 'some words']"]),
        ("f(a, b)", ["pass", "(f(b, a))"]),
        ("f(a, a)", ["pass"]),
        ("def f():\n    return a", ["def f():\n    return None"]),
        ("def f():\n    return None", []),
        ("if a:\n    b", ["if (not a):\n    b"]),
        ("x = 1.5", []),
        ("LOG.info('key')", []),
        ("raise Error('key')", []),
        ("import a.b", []),
        ("'''Docstring.'''", []),
        ("x = 'é' == b", ["x = ('éx') == b", "x = ('é' != b)"]),
    ],
)
def test_mutants_of_a_source(source, changed):
    data = source.encode()
    made = [one.applied(data).decode() for one in mutation.mutants("a.py", data)]
    assert sorted(made) == sorted(changed)


def test_a_sample_is_that_of_its_seed():
    place = ["tacker_k8s_mgmt/model"]
    first = mutation.chosen(place, 7, 20)
    assert len(first) == 20
    assert mutation.chosen(place, 7, 20) == first != mutation.chosen(place, 8, 20)
    for one in first:
        source = (ROOT / one.path).read_bytes()
        compile(one.applied(source), one.path, "exec")
        assert one.diff(source).startswith(f"{one.path}:{one.line}\n@@ ")


def test_a_mutant_meets_the_tests_of_its_module_first():
    path = "tacker_k8s_mgmt/model/pods.py"
    first, second = mutation.tests_of(path, ("tests/unit",))
    assert first[0] == "tests/unit/model/test_pods.py"
    assert "tests/unit/remote/kubernetes/test_cluster.py" not in first
    assert not set(first) & set(second)


def test_a_command_meets_the_tests_that_run_it():
    path = "tacker_k8s_mgmt/tools/cli/commands/csar.py"
    met = {test for stage in mutation.tests_of(path, ("tests/unit",)) for test in stage}
    assert {
        "tests/unit/tools/csar/test_cli.py",
        "tests/unit/tools/cli/test_docs.py",
    } <= met


@pytest.mark.parametrize(
    ("test", "outcome"),
    [
        ("assert ONE == 1", "killed"),
        ("assert ONE", "survived"),
        ("__import__('time').sleep(60)", "undecided"),
    ],
)
def test_outcome_of_a_mutant(tmp_path, monkeypatch, test, outcome):
    root = tmp_path / "project"
    for name, text in {
        "tacker_k8s_mgmt/__init__.py": "",
        "tacker_k8s_mgmt/one.py": "ONE = 1\n",
        "tests/unit/test_one.py": "from tacker_k8s_mgmt.one import ONE\n\n\n"
        f"def test_one():\n    {test}\n",
    }.items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(text)
    monkeypatch.setattr(mutation, "ROOT", root)
    mutation.tests_of.cache_clear()
    (mutant,) = mutation.chosen(["tacker_k8s_mgmt"], 1, 10)
    copy = mutation.Copy(tmp_path, limit=5 if outcome == "undecided" else 120)
    assert copy.outcome(mutant, ("tests/unit",)) == outcome
    assert (root / "tacker_k8s_mgmt/one.py").read_text() == "ONE = 1\n"
    mutation.tests_of.cache_clear()
