# SPDX-License-Identifier: Apache-2.0
"""``tacker-k8s-mgmt app``: what is listed and shown of a cluster's applications."""

import json
import types
from typing import Any

import pytest

from tacker_k8s_mgmt.features.applications import feature
from tacker_k8s_mgmt.features.applications.content import (
    APPLIED,
    FAILED,
    Content,
    InstalledApplication,
)
from tacker_k8s_mgmt.features.applications.report import (
    ApplicationsReport,
    ApplicationState,
    ObjectState,
)
from tacker_k8s_mgmt.status.facts import HealCommands, Source
from tacker_k8s_mgmt.tools.cli import main
from tests.helpers.operations import instantiated
from tests.helpers.requests import VNF, params

AT = "2026-11-21T15:20:07Z"
DIGEST = "5" * 64
SHOP = InstalledApplication(
    *("shop", "store", APPLIED),
    revision=3,
    updated=AT,
    good=Content(DIGEST, ()),
)
WIKI = InstalledApplication(
    *("wiki", "docs", FAILED),
    chart=True,
    detail="Job docs/schema: it failed",
    revision=1,
    updated=AT,
    good=Content(DIGEST, (), "1.2.3"),
)
STATES = (
    ApplicationState("shop", True, SHOP, (ObjectState("Deployment store/api"),)),
    ApplicationState(
        *("wiki", True, WIKI),
        (ObjectState("StatefulSet docs/wiki", "1 of 2 pods are ready"),),
    ),
    ApplicationState("blog", True, None),
)


@pytest.fixture
def opened(monkeypatch, look_up):
    """A cluster that has the first two and should have the third."""
    view: Any = instantiated(params())
    found = types.SimpleNamespace(
        view=view, vnf_id=VNF, name="one", operation="", params=params()
    )
    found.metadata, found.heals = view.metadata, HealCommands()
    report = ApplicationsReport(STATES)
    monkeypatch.setattr(feature, "compare", lambda survey: report)
    return look_up(found)


def test_they_are_listed(opened, capsys):
    assert main(["app", "list", VNF]) == 1
    lines = capsys.readouterr().out.splitlines()
    assert [line.split() for line in lines[1:5]] == [
        ["NAME", "NAMESPACE", "KIND", "VERSION", "REVISION", "STATE", "UPDATED"],
        ["shop", "store", "manifests", "-", "3", "applied", AT],
        ["wiki", "docs", "chart", "1.2.3", "1", "failed", AT],
        ["blog", "-", "-", "-", "-", "not", "there", "-"],
    ]
    findings = [line for line in lines[5:] if not line.startswith("  ")]
    assert findings[:3] == [
        "wiki: it was not brought to what is wanted.",
        "wiki: StatefulSet docs/wiki: 1 of 2 pods are ready.",
        "blog: not on the cluster, although it is wanted.",
    ]


def test_a_document_has_all_of_each(opened, capsys):
    assert main(["app", "list", VNF, "--json"]) == 1
    shop, wiki, blog = json.loads(capsys.readouterr().out)["applications"]
    assert shop == {
        "name": "shop",
        "wanted": True,
        "namespace": "store",
        "kind": "manifests",
        "version": None,
        "revision": 3,
        "state": "applied",
        "updated": AT,
        "failure": None,
        "differences": [],
    }
    assert (wiki["kind"], wiki["version"]) == ("chart", "1.2.3")
    assert wiki["failure"] == "Job docs/schema: it failed"
    assert [one["what"] for one in wiki["differences"]] == [
        "it was not brought to what is wanted",
        "StatefulSet docs/wiki: 1 of 2 pods are ready",
    ]
    missing = {"namespace", "kind", "version", "revision", "state", "updated"}
    assert {name for name, value in blog.items() if value is None} == {
        *missing,
        "failure",
    }


def test_one_is_shown_with_its_objects(opened, capsys):
    assert main(["app", "show", VNF, "wiki"]) == 1
    out = capsys.readouterr().out
    expected = {
        "namespace": "docs",
        "kind": "chart",
        "version": "1.2.3",
        "revision": "1",
        "state": "failed",
        "updated": AT,
        "The last failure": "Job docs/schema: it failed",
    }
    for title, value in expected.items():
        assert f"{title}: {value}\n" in out
    assert "StatefulSet docs/wiki  1 of 2 pods are ready\n" in out
    assert "shop" not in out
    assert main(["app", "show", VNF, "wiki", "--json"]) == 1
    (wiki,) = json.loads(capsys.readouterr().out)["applications"]
    assert wiki["objects"] == [
        {"name": "StatefulSet docs/wiki", "problem": "1 of 2 pods are ready"}
    ]


def test_one_that_is_as_wanted_has_no_differences(opened, capsys):
    assert main(["app", "show", VNF, "shop"]) == 0
    out = capsys.readouterr().out
    assert "Deployment store/api  -\n" in out
    assert "version: -\n" in out
    assert out.endswith("No differences.\n")


def test_of_an_unknown_name_those_are_named_that_there_are(opened, capsys):
    assert main(["app", "show", VNF, "forum"]) == 2
    why = "There is no application forum; there are: shop, wiki, blog"
    assert why in capsys.readouterr().err


def test_a_cluster_that_does_not_answer_proves_nothing(opened, monkeypatch, capsys):
    report = ApplicationsReport((), {Source.CLUSTER: "it is down"})
    monkeypatch.setattr(feature, "compare", lambda survey: report)
    for words in (["list"], ["show"]):
        argv = ["app", *words, VNF, *(["shop"] if words == ["show"] else [])]
        assert main(argv) == 2
        assert "Could not be asked: cluster" in capsys.readouterr().out
