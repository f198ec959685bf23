# SPDX-License-Identifier: Apache-2.0
"""The project as it is installed."""

import io

import pytest

from lab import environments
from lab.report import Report
from lab.settings import Settings


@pytest.fixture
def tree(tmp_path, monkeypatch):
    root = tmp_path / "tree"
    package = root / "tacker_k8s_mgmt"
    (package / "__pycache__").mkdir(parents=True)
    (package / "a.py").write_text("1")
    for part in ("samples", "scripts"):
        (root / part).mkdir()
    for part in ("LICENSE", "MANIFEST.in", "README.rst", "pyproject.toml", "setup.py"):
        (root / part).touch()
    monkeypatch.setattr(environments, "ROOT", root)
    return root


@pytest.mark.parametrize(
    ("name", "counts"),
    [
        pytest.param("tacker_k8s_mgmt/a.py", True, id="a module"),
        pytest.param("samples/new.yaml", True, id="a new sample"),
        pytest.param("setup.py", True, id="setup.py"),
        pytest.param("tacker_k8s_mgmt/__pycache__/a.pyc", False, id="byte code"),
        pytest.param("tacker_k8s_mgmt/.a.py.swp", False, id="an editor's file"),
        pytest.param("lab/x.py", False, id="the lab"),
    ],
)
def test_what_counts_as_a_change(tree, name, counts):
    before = environments.project_digest(tree)
    (tree / name).parent.mkdir(exist_ok=True)
    (tree / name).write_text("2")
    assert (environments.project_digest(tree) != before) is counts


def test_a_module_that_moves_is_a_change(tree):
    before = environments.project_digest(tree)
    (tree / "tacker_k8s_mgmt" / "a.py").rename(tree / "samples" / "a.py")
    assert environments.project_digest(tree) != before


def test_it_is_installed_once_and_builds_outside_the_source_tree(
    tree, tmp_path, monkeypatch
):
    lab = Settings(tmp_path / "state", tmp_path / "cache")
    environments.path(lab, "tacker").mkdir(parents=True)
    built = []
    monkeypatch.setattr(environments, "project_digest", lambda root=tree: "1")
    monkeypatch.setattr(
        environments, "install", lambda settings, env, words: built.append(words[-1])
    )
    for _ in range(2):
        environments.install_project(lab, Report(io.StringIO()), "tacker")
    assert built == [str(lab.cache / "project")]
    assert environments.has_project(lab, "tacker")
    assert not (lab.cache / "project").exists()
