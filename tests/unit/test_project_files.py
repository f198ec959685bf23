# SPDX-License-Identifier: Apache-2.0
"""Files for tools around the project say the same as the project itself."""

import re

import tomllib
import yaml
from packaging.requirements import Requirement

from lab import environments, pins
from tests import __main__ as all_checks
from tests.tree import ROOT


def pyproject():
    return tomllib.loads((ROOT / "pyproject.toml").read_text())


def test_the_linters_of_pre_commit_are_those_of_the_checks():
    config = yaml.safe_load((ROOT / ".pre-commit-config.yaml").read_text())
    (local,) = config["repos"]
    hooks = {hook["id"]: hook for hook in local["hooks"]}
    ruff = pins.versions(environments.pins(environments.TESTS))["ruff"]
    for name in ("ruff-check", "ruff-format"):
        assert hooks[name]["additional_dependencies"] == [f"ruff=={ruff}"]
    assert hooks["lint"]["entry"] == "make lint"
    makefile = (ROOT / "Makefile").read_text()
    assert "\nlint:\n\t@$(PYTHON) -m tests lint\n" in makefile


def test_each_job_of_the_checks_is_a_target_of_make():
    makefile = (ROOT / "Makefile").read_text()
    named = set(re.findall(r"\$\(PYTHON\) -m tests(?: (\w+))?$", makefile, re.M))
    assert named == {"", *all_checks.JOBS} - {"all"}


def test_the_image_is_built_from_what_the_project_is_built_from():
    text = (ROOT / "Containerfile").read_text()
    words = [line.split() for line in text.splitlines() if line.startswith("COPY ")]
    copied = {
        word for line in words if "--from=wheel" not in line for word in line[1:-1]
    }
    assert copied == set(environments.PROJECT_PARTS)


def test_the_extra_for_the_documentation_is_what_its_environment_has():
    chosen = pins.versions(environments.pins(environments.DOCS))
    for text in pyproject()["project"]["optional-dependencies"]["docs"]:
        need = Requirement(text)
        assert chosen[pins.normalized(need.name)] in need.specifier
