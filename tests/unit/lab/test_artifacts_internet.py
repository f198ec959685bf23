# SPDX-License-Identifier: Apache-2.0
"""A mirror filled from the internet, which is a server on loopback here."""

import shutil
import socket

import pytest

from lab import LabError, packages
from lab.artifacts import cli, internet, mirror, releases
from lab.real.site import Checkout
from tests.unit.lab.internet import Internet, kubespray, published

NEWEST, FORMER = releases.find("v2.31.0"), releases.find("v2.30.0")
KUBELET = "dl.k8s.io/release/v1.35.4/bin/linux/amd64/kubelet"
needs_skopeo = pytest.mark.skipif(
    not shutil.which("skopeo"), reason="no skopeo on PATH"
)


@pytest.fixture
def contents(tmp_path):
    return published(tmp_path / "published", NEWEST)


@pytest.fixture
def tree(tmp_path, contents):
    return Checkout(kubespray(tmp_path / "kubespray", NEWEST, contents), "2.31.0")


@pytest.fixture
def server(tmp_path, contents, monkeypatch):
    """The internet; nothing may be installed."""
    work = tmp_path / "internet"
    work.mkdir()
    server = Internet(contents, work)
    monkeypatch.setenv("HOME", str(work))
    for name in ("CURL_HOME", "XDG_CONFIG_HOME", "https_proxy", "HTTPS_PROXY"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setattr(packages, "install", lambda tools, _: None)
    yield server
    server.close()


@pytest.fixture
def images(monkeypatch):
    """One of each registry: skopeo takes its time."""
    chosen = {image.registry: image for image in releases.IMAGES}
    monkeypatch.setattr(releases, "IMAGES", tuple(chosen.values()))
    monkeypatch.setattr(releases, "OPTIONAL_IMAGES", releases.OPTIONAL_IMAGES[-1:])


@pytest.fixture
def few_files(monkeypatch):
    """Some files, of every host, and no images: each is a process."""
    names = ("kubelet", "etcd", "nerdctl")
    few = tuple(file for file in releases.FILES if file.name in names)
    monkeypatch.setattr(releases, "FILES", few)
    monkeypatch.setattr(releases, "IMAGES", ())
    monkeypatch.setattr(releases, "OPTIONAL_IMAGES", ())


@pytest.fixture
def builds(monkeypatch, tmp_path):
    """The releases that were built."""
    built = []

    def make(_settings, _report, release):
        built.append(release.name)
        return tmp_path / "built"

    monkeypatch.setattr(mirror, "make", make)
    return built


def text(report):
    return report._stream.getvalue()


@needs_skopeo
def test_mirror_has_the_published_files_and_images(
    images, lab, report, server, tree, contents
):
    made = internet.make(lab, report, NEWEST, tree)
    mirror.check(made, NEWEST)
    assert mirror.variables(made) == {}
    assert _tree(made) == _tree(contents)
    for name in ("docker.io/library/nginx", "registry.k8s.io/cpa/cluster"):
        assert [each for each in server.requests if each.startswith(f"/v2/{name}")]


def _tree(directory):
    files = (path for path in directory.rglob("*") if path.is_file())
    return {str(path.relative_to(directory)): path.read_bytes() for path in files}


@needs_skopeo
def test_missing_image_is_named_with_the_way_out_and_the_rest_is_kept(
    images, lab, report, server, tree, contents
):
    tags = contents / "images/docker/registry/v2/repositories/library/nginx/_manifests"
    tags.rename(tags.with_name("away"))
    with pytest.raises(LabError) as raised:
        internet.make(lab, report, NEWEST, tree)
    for word in ("docker.io/library/nginx:1.28.2", "MIRROR=", "ARTIFACTS=build"):
        assert word in str(raised.value)
    assert not internet.is_ready(lab, NEWEST)
    tags.with_name("away").rename(tags)
    server.requests.clear()
    internet.make(lab, report, NEWEST, tree)
    assert {each.split("/")[2] for each in server.requests} <= {"", "docker.io"}


def test_complete_mirror_needs_no_internet(lab, report, server, tree, few_files):
    internet.make(lab, report, NEWEST, tree)
    server.requests.clear()
    mirrors = cli.prepare(lab, report, [NEWEST.name], None, tree)
    assert mirrors == {NEWEST.name: internet.path(lab)}
    assert server.requests == []


def test_interrupted_file_is_continued(lab, report, server, tree, contents, few_files):
    part = internet.path(lab) / "unfinished/kubelet-1.35.4"
    part.parent.mkdir(parents=True)
    part.write_text("kub")
    made = internet.make(lab, report, NEWEST, tree)
    assert (made / "files" / KUBELET).read_text() == "kubelet"
    assert f"/{KUBELET.partition('/')[2]} bytes=3-" in server.requests


def test_file_that_was_stopped_at_its_end_is_taken(
    lab, report, server, tree, few_files
):
    part = internet.path(lab) / "unfinished/kubelet-1.35.4"
    part.parent.mkdir(parents=True)
    part.write_text("kubelet")
    made = internet.make(lab, report, NEWEST, tree)
    assert (made / "files" / KUBELET).read_text() == "kubelet"


def test_next_attempt_fetches_only_what_is_missing(
    lab, report, server, tree, contents, few_files
):
    place = contents / "files" / KUBELET
    content = place.read_bytes()
    place.unlink()
    with pytest.raises(LabError, match=f"https://{KUBELET} could not .*\n.*404"):
        internet.make(lab, report, NEWEST, tree)
    place.write_bytes(content)
    other = releases.FILES[-1].place(NEWEST.wanted[releases.FILES[-1].part])
    kept = internet.path(lab) / "files" / other
    kept.parent.mkdir(parents=True)
    shutil.copy(contents / "files" / other, kept)
    internet.make(lab, report, NEWEST, tree)
    assert f"/{other.partition('/')[2]}" not in server.requests


def test_file_that_kubespray_would_refuse_is_refused(
    lab, report, server, tree, contents, few_files
):
    place = contents / "files" / KUBELET
    content = place.read_bytes()
    place.write_text("other")
    with pytest.raises(LabError, match=f"{KUBELET}.*SHA-256.*kubespray expects"):
        internet.make(lab, report, NEWEST, tree)
    assert not (internet.path(lab) / "files" / KUBELET).exists()
    place.write_bytes(content)
    made = internet.make(lab, report, NEWEST, tree)
    assert (made / "files" / KUBELET).read_bytes() == content


def test_file_of_other_contents_is_downloaded_again(
    lab, report, server, tree, few_files
):
    place = internet.make(lab, report, NEWEST, tree) / "files" / KUBELET
    place.write_text("spoiled")
    (internet.path(lab) / "files" / releases.FILES[1].place("3.6.10")).unlink()
    internet.make(lab, report, NEWEST, tree)
    assert place.read_text() == "kubelet"


def test_versions_without_a_checksum_are_named_at_once(lab, report, tree):
    with pytest.raises(LabError) as raised:
        internet.make(lab, report, FORMER, tree)
    assert "kubelet 1.34.3 (kubelet_binary_checksum)" in str(raised.value)
    assert "etcd 3.5.26 (etcd_binary_checksum)" in str(raised.value)


def test_directory_that_is_no_checkout_has_no_checksums(tmp_path):
    with pytest.raises(LabError, match="has no checksums of kubespray"):
        internet.checksums(tmp_path, NEWEST)


class TestChoice:
    def test_internet_that_answers_is_used(
        self, lab, report, server, tree, builds, few_files
    ):
        mirrors = cli.prepare(lab, report, [NEWEST.name], None, tree)
        assert mirrors == {NEWEST.name: internet.path(lab)}
        assert "files and images: from the internet" in text(report)
        assert not builds

    def test_each_host_is_asked_for_a_file_or_its_registry(self, lab, server):
        assert internet.unreachable(lab, NEWEST) == ""
        assert sorted(each.split()[0] for each in server.requests) == [
            *(
                "/containerd/nerdctl/releases/download/v2.2.2/nerdctl-2.2.2-linux-amd64.tar.gz",
            ),
            "/helm-v3.18.4-linux-amd64.tar.gz",
            *("/release/v1.35.4/bin/linux/amd64/kubeadm", "/v2/", "/v2/"),
        ]

    @pytest.mark.parametrize(("status", "is_refused"), [(401, False), (503, True)])
    def test_registry_that_wants_a_token_answers(self, lab, server, status, is_refused):
        server.broken["/v2/"] = status
        reason = internet.unreachable(lab, NEWEST)
        refusal = "registry.k8s.io answers with HTTP status 503"
        assert reason == (refusal if is_refused else "")

    def test_without_the_internet_everything_is_built(
        self, lab, report, server, tree, builds
    ):
        server.close()
        names = [NEWEST.name, FORMER.name]
        cli.prepare(lab, report, names, None, tree)
        assert builds == names
        assert text(report).count("built from Go modules, no internet (curl ") == 1

    def test_host_that_does_not_answer_is_not_waited_for(
        self, lab, server, monkeypatch, tmp_path
    ):
        monkeypatch.setattr(internet, "PROBE_LIMIT", 1)
        with socket.create_server(("127.0.0.1", 0)) as silent:
            port = silent.getsockname()[1]
            (tmp_path / "internet/.curlrc").write_text(
                f'connect-to = "::127.0.0.1:{port}"\n'
            )
            assert "timed out" in internet.unreachable(lab, NEWEST)

    def test_what_was_built_before_is_used_without_a_probe(
        self, lab, report, server, builds, monkeypatch
    ):
        monkeypatch.setattr(mirror, "is_ready", lambda *_: True)
        cli.prepare(lab, report, [NEWEST.name])
        assert builds == [NEWEST.name]
        assert server.requests == []

    def test_build_can_be_demanded(self, lab, report, server, builds):
        cli.prepare(lab, report, [NEWEST.name], cli.BUILD)
        assert builds == [NEWEST.name]
        assert server.requests == []

    def test_demanded_internet_is_not_replaced(self, lab, report, server, tree, builds):
        server.close()
        with pytest.raises(LabError, match="ARTIFACTS=build"):
            cli.prepare(lab, report, [NEWEST.name], cli.INTERNET, tree)
        assert not builds

    def test_mirror_of_the_users_goes_first(self, lab, report, server, contents):
        assert cli.prepare(lab, report, [NEWEST.name], contents) == {
            NEWEST.name: contents
        }
        assert server.requests == []
