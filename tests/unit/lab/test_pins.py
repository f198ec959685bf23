# SPDX-License-Identifier: Apache-2.0
"""How the environments' versions are chosen, and that the chosen ones fit together."""

import io

import pytest
import tomllib
from packaging.requirements import Requirement
from packaging.version import Version

from lab import LabError, command, environments, pins
from lab.report import Report
from lab.settings import ROOT

#: OpenStack has no versions of these in its list.
FREE = {
    environments.TACKER: {
        *("certifi", "legacy-cgi", "setuptools", "tacker"),
    },
    environments.TESTS: {
        *("grafana-foundation-sdk", "grimp", "hypothesis", "import-linter"),
        *("librt", "mypy", "ruff"),
        *("types-paramiko", "types-pyyaml"),
    },
}


def pinned(name):
    return pins.versions(environments.pins(name))


def needs():
    """What pyproject.toml says that the project needs, with all its commands."""
    with (ROOT / "pyproject.toml").open("rb") as file:
        project = tomllib.load(file)["project"]
    return [*map(Requirement, project["dependencies"]), *extras("csar")]


def extras(name):
    """What an extra of pyproject.toml needs."""
    with (ROOT / "pyproject.toml").open("rb") as file:
        project = tomllib.load(file)["project"]
    return [Requirement(text) for text in project["optional-dependencies"][name]]


class TestThePins:
    @pytest.mark.parametrize("name", pins.BOUNDED)
    def test_what_lies_beside_tacker_is_as_in_openstacks_list(self, name):
        chosen, upper = pinned(name), pinned(pins.UPPER)
        shared = chosen.keys() & upper.keys()
        assert shared
        assert {k: chosen[k] for k in shared} == {k: upper[k] for k in shared}
        assert chosen.keys() - upper.keys() == FREE[name]

    def test_nothing_else_of_openstacks_list_is_kept(self):
        used = {package for name in pins.BOUNDED for package in pinned(name)}
        assert pinned(pins.UPPER).keys() <= used

    @pytest.mark.parametrize("name", [*environments.TESTED, environments.DOCS])
    def test_every_need_of_the_project_is_met(self, name):
        chosen = pinned(name)
        for need in needs():
            assert chosen[pins.normalized(need.name)] in need.specifier

    def test_the_lowest_versions_are_those_that_pyproject_names(self):
        chosen = pinned(environments.LOWEST)
        for need in needs():
            (bound,) = need.specifier
            assert bound.operator == ">="
            lowest = Version(chosen[pins.normalized(need.name)])
            assert lowest == Version(bound.version), need

    @pytest.mark.parametrize("extra", ["cloud", "openstack", "tacker"])
    def test_no_older_version_than_the_tested_ones_is_admitted(self, extra):
        """These are not among the lowest versions: Tacker decides about them."""
        for need in extras(extra):
            (bound,) = need.specifier
            name = pins.normalized(need.name)
            tested = [pinned(one).get(name) for one in environments.TESTED]
            lowest = min(map(Version, filter(None, tested)))
            length = len(Version(bound.version).release)
            assert bound.operator == ">="
            assert lowest.release[:length] == Version(bound.version).release, need

    def test_hooks_do_without_the_parsers_of_packages(self):
        with (ROOT / "pyproject.toml").open("rb") as file:
            always = " ".join(tomllib.load(file)["project"]["dependencies"])
        assert "tosca-parser" not in always
        assert "heat-translator" not in always

    def test_both_have_the_same_tacker(self):
        first, second = (pinned(name)["tacker"] for name in environments.TESTED)
        assert first == second


@pytest.fixture
def directory(tmp_path, monkeypatch):
    """Where the pins are; each file has but its comment."""
    place = tmp_path / "pins"
    place.mkdir()
    for name in (*pins.NAMES, pins.UPPER, environments.TOOLS):
        (place / f"{name}.txt").write_text("# Whatever\n# it says.\nold==1\n")
    monkeypatch.setattr(environments, "PINS", place)
    monkeypatch.setattr(environments, "prepare_tools", lambda *_: None)
    monkeypatch.setattr(environments, "uv_variables", lambda _: {})
    return place


@pytest.fixture
def resolved(monkeypatch):
    """What uv answers, by the file of requirements; what it was asked, in turn."""
    answers = {"tacker.in": "a-b==1", "tests.in": "a-b==1\nc==2"}
    asked = []

    def run(argv, **_):
        file = next(word for word in argv if word.endswith(".in")).rpartition("/")[2]
        asked.append((file, argv))
        return answers.get(file, "")

    monkeypatch.setattr(command, "run", run)
    return answers, asked


def renew(lab, names=pins.NAMES, upper=None):
    pins.renew(lab, Report(io.StringIO()), names, upper)


class TestRenew:
    def test_the_comment_of_a_file_stays(self, lab, directory, resolved):
        renew(lab, ["tacker"])
        text = (directory / "tacker.txt").read_text()
        assert text == "# Whatever\n# it says.\na-b==1\n"
        assert "old==1" in (directory / "openstack.txt").read_text()

    def test_test_tools_are_what_tacker_has_not(self, lab, directory, resolved):
        renew(lab, ["tests", "tacker"])
        assert pinned("tests") == {"c": "2"}
        (_, first), (_, second) = resolved[1]
        assert str(directory / "tacker.txt") not in first
        assert str(directory / "tacker.txt") in second

    @pytest.mark.parametrize(
        ("line", "expected"),
        [
            ("a==1 ; sys_platform == 'win32'", []),
            ("a==1 ; sys_platform != 'win32'", ["a==1"]),
            (
                "a==1 ; python_full_version >= '3.13'",
                ["a==1 ; python_full_version >= '3.13'"],
            ),
        ],
    )
    def test_only_pythons_differ(self, lab, directory, resolved, line, expected):
        resolved[0]["ansible.in"] = line
        renew(lab, ["ansible"])
        assert (directory / "ansible.txt").read_text().splitlines()[2:] == expected

    def test_of_openstacks_list_what_is_used_is_kept(
        self, lab, directory, resolved, tmp_path
    ):
        whole = tmp_path / "whole.txt"
        whole.write_text("A.b===1\nc===2;python_version>='3.11'\nd===3\n")
        renew(lab, upper=whole)
        assert pinned(pins.UPPER) == {"a-b": "1", "c": "2"}
        bound = {file for file, argv in resolved[1] if str(whole) in argv}
        assert bound == {"tacker.in", "tests.in"}

    def test_without_the_list_the_kept_part_binds(self, lab, directory, resolved):
        renew(lab)
        kept = str(directory / "upper-constraints.txt")
        assert {file for file, argv in resolved[1] if kept in argv} == {
            "tacker.in",
            "tests.in",
        }
        assert pinned(pins.UPPER) == {"old": "1"}

    def test_a_list_that_is_not_there_changes_nothing(self, lab, directory, resolved):
        with pytest.raises(LabError, match="no file"):
            renew(lab, upper=directory / "none.txt")
        assert resolved[1] == []
