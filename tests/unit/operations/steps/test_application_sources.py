# SPDX-License-Identifier: Apache-2.0
"""Files of applications: the limits hold for all of them together."""

import json
from types import SimpleNamespace

import pytest

from tacker_k8s_mgmt.features.applications import sources as application_sources
from tacker_k8s_mgmt.features.applications import sources as chart_archive
from tacker_k8s_mgmt.features.applications.sources import Sources
from tacker_k8s_mgmt.model.yaml_text import size
from tacker_k8s_mgmt.request.applications import Application

MANIFEST = json.dumps(
    {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {"name": "settings"},
        "data": {str(number): "" for number in range(90)},
    }
).encode()


class Package:
    """A package, each of whose files is the manifest.

    :ivar read: the files that were read.
    """

    def __init__(self) -> None:
        self.read: list[str] = []

    def package_files(self, path):
        self.read.append(path)
        return {"": MANIFEST}


def sources(count):
    package = Package()
    made = Sources(package)
    apps = [
        Application(name=f"app-{number}", manifests=[{"path": f"{number}.yaml"}])
        for number in range(count)
    ]
    return package, made, made.read(apps)


@pytest.fixture
def four_files(monkeypatch):
    monkeypatch.setattr(application_sources, "LARGEST", 4 * len(MANIFEST))


@pytest.fixture
def values_of_four(monkeypatch):
    most = 4 * size([json.loads(MANIFEST)])
    monkeypatch.setattr(application_sources, "MOST_VALUES", most)


@pytest.mark.usefixtures("four_files")
def test_no_more_is_read_than_the_limit_of_all_applications():
    package, made, found = sources(4)
    assert (len(found), made.problems) == (4, [])
    package, made, found = sources(50)
    assert len(found) == 4
    assert package.read == [f"{number}.yaml" for number in range(5)]
    (problem,) = made.problems
    assert problem == (
        "application app-4: 4.yaml has, with the files before it, more than "
        f"{4 * len(MANIFEST)} bytes"
    )


@pytest.mark.usefixtures("values_of_four")
def test_no_more_values_are_read_than_the_limit_of_all_applications():
    _, made, found = sources(4)
    assert (len(found), made.problems) == (4, [])
    package, made, found = sources(50)
    assert (len(found), len(package.read)) == (4, 5)
    (problem,) = made.problems
    assert problem.startswith("application app-4: 4.yaml: has, with those before it,")


@pytest.mark.usefixtures("four_files")
def test_the_limit_holds_within_one_application():
    package = Package()
    made = Sources(package)
    files = [{"path": f"{number}.yaml"} for number in range(50)]
    assert made.read([Application(name="app", manifests=files)]) == ()
    assert len(package.read) == 5
    assert len(made.problems) == 1


@pytest.mark.usefixtures("values_of_four")
def test_what_helm_renders_counts(monkeypatch):
    monkeypatch.setattr(chart_archive, "version_of", lambda archive: "a 1")
    host = SimpleNamespace(
        objects=SimpleNamespace(cluster_wide=frozenset, api_versions=tuple),
        charts=SimpleNamespace(render=lambda *_, **__: MANIFEST.decode()),
    )
    made = Sources(Package(), host)
    apps = [
        Application(name=f"app-{number}", chart={"path": "x.tgz"})
        for number in range(50)
    ]
    assert len(made.read(apps)) == 4
    (problem,) = made.problems
    assert "app-4: what Helm renders of the chart has, with those before" in problem
