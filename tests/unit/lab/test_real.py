# SPDX-License-Identifier: Apache-2.0
"""The real laboratory: its kubespray, its requests, its report."""

import io
import json
import subprocess
from pathlib import Path

import pytest

from lab import LabError
from lab.real import request
from lab.real.site import Site, ansible_path, find_checkout, look_at
from lab.report import Report
from lab.services.mirror import REGISTRY_ADDRESS
from lab.settings import ROOT, Settings
from tacker_k8s_mgmt.request import reader
from tests.real import report as reports

SAMPLES = ROOT / "samples"


def quiet():
    return Report(io.StringIO())


@pytest.fixture
def tree(tmp_path):
    """What the laboratory looks for in a checkout."""
    path = tmp_path / "kubespray"
    path.mkdir()
    for name in ("cluster.yml", "scale.yml", "remove-node.yml"):
        (path / name).touch()
    (path / "galaxy.yml").write_text("namespace: kubernetes_sigs\nversion: 2.31.0\n")
    (path / "requirements.txt").write_text("ansible==11.13.0\n")
    return path


@pytest.fixture
def mirror(tmp_path):
    path = tmp_path / "mirror"
    path.mkdir()
    return path


@pytest.fixture
def site(mirror):
    mirrors = {"v2.31.0": str(mirror)}
    return Site("/cache/kubespray", "2.31.0", "/cache/venv", mirrors)


class TestCheckout:
    def test_directory(self, tree, tmp_path):
        found = find_checkout(str(tree), tmp_path / "cache", quiet())
        assert found.path == tree
        assert found.version == "2.31.0"
        assert found.release == "v2.31.0"

    def test_reference_of_a_repository_is_taken_without_its_records(
        self, tree, tmp_path
    ):
        def git(*words):
            options = ["-c", "user.name=a", "-c", "user.email=a@example.org"]
            subprocess.run(["git", "-C", tree, *options, *words], check=True)

        git("init", "-q")
        git("add", ".")
        git("commit", "-qm", "first")
        git("tag", "v2.31.0")
        (tree / "galaxy.yml").write_text("version: 2.32.0\n")
        git("commit", "-qam", "second")
        found = find_checkout(f"{tree}@v2.31.0", tmp_path / "cache", quiet())
        assert found.version == "2.31.0"
        assert not (found.path / ".git").exists()
        again = find_checkout(f"{tree}@v2.31.0", tmp_path / "cache", quiet())
        assert again == found

    def test_something_else_is_refused_with_what_it_lacks(self, tree, tmp_path):
        (tree / "scale.yml").unlink()
        with pytest.raises(LabError, match=r"it has no scale\.yml"):
            find_checkout(str(tree), tmp_path / "cache", quiet())

    def test_nonsense_is_refused_with_what_can_be_given(self, tmp_path):
        with pytest.raises(LabError, match="no checkout of kubespray, no REPOSITORY@"):
            find_checkout("nonsense", tmp_path / "cache", quiet())

    def test_unreachable_repository_leaves_nothing_behind(self, tmp_path):
        with pytest.raises(LabError, match="Give a directory: KUBESPRAY="):
            find_checkout(f"{tmp_path}/none@v1", tmp_path / "cache", quiet())
        assert list((tmp_path / "cache").rglob("galaxy.yml")) == []


def test_environment_follows_what_the_checkout_wants(tree, tmp_path):
    settings = Settings(tmp_path / "state", tmp_path / "cache")
    before = ansible_path(settings, look_at(tree))
    (tree / "requirements.txt").write_text("ansible==12.0.0\n")
    assert ansible_path(settings, look_at(tree)) != before


class TestSite:
    def test_is_known_to_later_commands(self, site, tmp_path):
        site.save(tmp_path)
        assert Site.load(tmp_path) == site

    def test_other_releases_are_apart(self, mirror):
        mirrors = {"v2.31.0": str(mirror), "v2.30.0": "/older"}
        site = Site("/cache/kubespray", "2.31.0", "/cache/venv", mirrors)
        assert site.mirror == mirror
        assert site.others == {"v2.30.0": Path("/older")}

    def test_quick_laboratory_has_none(self, tmp_path):
        assert Site.find(tmp_path) is None
        with pytest.raises(LabError, match="has no real kubespray"):
            Site.load(tmp_path)


class TestRequest:
    @pytest.mark.parametrize(
        "sample",
        [
            *("requests/instantiate-simple.json", "requests/instantiate-ha.json"),
            *("v2/requests/instantiate-simple.json", "v2/requests/instantiate-ha.json"),
        ],
    )
    def test_driver_takes_it(self, site, sample):
        body = request.adapted(json.loads((SAMPLES / sample).read_text()), site)
        read = reader.RequestReader().read(body["additionalParams"])
        assert read.cluster.network.plugin == request.PLUGIN
        assert read.cluster.offline.registry_host == REGISTRY_ADDRESS

    def test_checksums_of_the_mirror_go_to_kubespray(self, mirror):
        checksums = mirror / request.CHECKSUMS
        checksums.write_text("kubelet_binary_checksum: sha256:1234\n")
        variables = request.parameters(mirror)["kubespray_vars"]
        assert variables["kubelet_binary_checksum"] == "sha256:1234"
        assert variables["kube_proxy_mode"] == "iptables"

    def test_mirror_of_published_files_needs_none(self, mirror):
        variables = request.parameters(mirror)["kubespray_vars"]
        assert not [name for name in variables if name.endswith("_checksum")]

    def test_former_kubernetes_comes_with_its_own_checksums(self, mirror):
        names = ("etcd", *request.KUBERNETES_PROGRAMS, "runc")
        lines = [f"{name}_binary_checksum: sha256:{name}\n" for name in names]
        (mirror / request.CHECKSUMS).write_text("".join(lines))
        changes = request.of_kubernetes("v2.30.0", mirror)
        assert changes["cluster"] == {"kubernetes_version": "1.34.3"}
        variables = changes["kubespray_vars"]
        assert variables.pop("etcd_version") == "3.5.33"
        assert set(variables) == {f"{name}_binary_checksum" for name in names[:-1]}

    def test_kubespray_knows_those_of_published_files(self, mirror):
        """A newer release knows a newer etcd too, which the mirror does not have."""
        changes = request.of_kubernetes("v2.30.0", mirror)
        assert changes["kubespray_vars"] == {"etcd_version": "3.5.26"}


class TestReport:
    RESULT = """\
<testsuites><testsuite>
  <properties><property name="versions" value='{"kubelet": "v1.35.4"}'/></properties>
  <testcase name="test_out" time="61.26"/>
  <testcase name="test_in" time="2.0">FAILURE</testcase>
</testsuite></testsuites>
"""

    def add(self, tmp_path, failure=""):
        result = tmp_path / "result.xml"
        result.write_text(self.RESULT.replace("FAILURE", failure))
        report = reports.Report(tmp_path / "report.json", "2.31.0")
        report.add("v1_life", 0.0, result, succeeded="failure" not in failure)
        return report

    def test_scenario_that_passed_is_not_run_again(self, tmp_path):
        report = self.add(tmp_path)
        assert report.has_passed("v1_life")
        assert "61 s  test_out" in report.text()
        kept = json.loads(report.path.read_text())["scenarios"]["v1_life"]
        assert kept["versions"] == {"kubelet": "v1.35.4"}
        assert kept["began"] == "1970-01-01T00:00:00Z"

    def test_failure_is_named(self, tmp_path):
        report = self.add(tmp_path, failure="<failure/>")
        assert not report.has_passed("v1_life")
        assert "test_in failure" in report.text()

    def test_scenario_that_was_stopped_has_not_passed(self, tmp_path):
        report = reports.Report(tmp_path / "report.json", "2.31.0")
        report.add("ha", 0.0, tmp_path / "none.xml", succeeded=False)
        assert not report.has_passed("ha")

    def test_scenario_that_was_interrupted_has_not_passed(self, tmp_path):
        result = tmp_path / "result.xml"
        result.write_text(self.RESULT.replace("FAILURE", ""))
        report = reports.Report(tmp_path / "report.json", "2.31.0")
        report.add("ha", 0.0, result, succeeded=False)
        assert not report.has_passed("ha")

    def test_skipped_test_is_no_success(self, tmp_path):
        assert not self.add(tmp_path, failure="<skipped/>").has_passed("v1_life")
