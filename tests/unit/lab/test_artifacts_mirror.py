# SPDX-License-Identifier: Apache-2.0
"""Mirrors: what is put where, what kubespray is told of it, and what one may lack."""

import hashlib
import json
import shutil
import tarfile
from pathlib import Path

import pytest

from lab import LabError, command, packages
from lab.artifacts import cli, golang, images, mirror, releases
from lab.artifacts import images as debian
from lab.artifacts.images import Storage, of_directory
from tests.unit.lab.internet import published

NEWEST = releases.find("v2.31.0")


@pytest.fixture
def builds(lab, monkeypatch):
    """The groups that are built: programs that only say their name and version."""
    built = []

    def build(settings, _report, group):
        built.append(group.name)
        target = group.path(settings)
        target.mkdir(parents=True, exist_ok=True)
        for name in group.packages():
            (target / name).write_text(f"{name} {group.version}")
        (target / ".etcdctl").write_text("unfinished")
        return target

    def tree(settings, names):
        root = settings.cache / "-".join(names)
        (root / "usr/bin").mkdir(parents=True, exist_ok=True)
        (root / "usr/sbin").mkdir(exist_ok=True)
        for place in ("usr/bin/busybox", "usr/sbin/xtables-nft-multi"):
            (root / place).write_text(place)
        return root

    def run(argv, **_):
        if argv[0] == "gcc":
            Path(argv[argv.index("-o") + 1]).write_text("pause")
        return "busybox\nsh\nhttpd\n"

    monkeypatch.setattr(golang, "check", lambda _: None)
    monkeypatch.setattr(golang, "build", build)
    monkeypatch.setattr(mirror, "_install", lambda *_: None)
    monkeypatch.setattr(debian, "debian_tree", tree)
    monkeypatch.setattr(command, "run", run)
    return built


@pytest.fixture
def made(lab, report, builds):
    return mirror.make(lab, report, NEWEST)


@pytest.mark.parametrize("name", releases.RELEASES)
def test_what_is_built_is_all_that_the_release_downloads(lab, report, builds, name):
    release = releases.find(name)
    mirror.check(mirror.make(lab, report, release), release)


def test_kubespray_variables_have_the_digest_of_every_file(made):
    told = mirror.variables(made)
    for file in releases.FILES:
        place = made / "files" / file.place(NEWEST.built(file.part))
        digest = hashlib.sha256(place.read_bytes()).hexdigest()
        assert told[file.checksum] == f"sha256:{digest}"


def test_the_variables_are_yaml_as_well(made):
    yaml = pytest.importorskip("yaml")
    told = yaml.safe_load((made / mirror.VARIABLES).read_text())
    assert told["enable_dns_autoscaler"] is False
    assert told["crictl_version"] == NEWEST.built("crictl")
    assert {str(value) for value in told.values()} == {
        "False" if value == "false" else value
        for value in mirror.variables(made).values()
    }


@pytest.mark.parametrize(
    ("name", "members"),
    [
        ("etcd", {f"etcd-v3.6.10-linux-amd64/{n}" for n in ("etcd", "etcdctl")}),
        ("containerd", {"bin/containerd", "bin/containerd-shim-runc-v2", "bin/ctr"}),
        ("crictl", {"crictl"}),
        ("nerdctl", {"nerdctl"}),
        ("cni-plugins", {"bridge", "portmap", "loopback"}),
    ],
)
def test_archives_unpack_to_where_kubespray_takes_programs_from(made, name, members):
    (file,) = (each for each in releases.FILES if each.name == name)
    with tarfile.open(made / "files" / file.place(NEWEST.built(file.part))) as tar:
        assert members <= set(tar.getnames())
        assert not [each for each in tar.getnames() if ".etcdctl" in each]
        assert {member.mode for member in tar} == {0o755}


def test_programs_by_themselves_are_what_was_built(made):
    place = made / "files/dl.k8s.io/release/v1.35.4/bin/linux/amd64/kubelet"
    assert place.read_text() == "kubelet 1.35.4"


def test_a_complete_mirror_is_not_made_again(lab, report, builds, made):
    builds.clear()
    assert mirror.make(lab, report, NEWEST) == made
    assert not builds


@pytest.mark.parametrize("changed", ["pins", "recipe"])
def test_a_mirror_of_former_pins_is_made_anew(
    lab, report, builds, made, monkeypatch, tmp_path, changed
):
    builds.clear()
    if changed == "pins":
        monkeypatch.setattr(golang.Group, "key", lambda self: f"other{self.version}")
    else:
        (tmp_path / "images.py").touch()
        monkeypatch.setattr(mirror, "RECIPE", (tmp_path / "images.py",))
    (made / "former").touch()
    mirror.make(lab, report, NEWEST)
    assert builds
    assert not (made / "former").exists()


def test_an_interrupted_assembly_is_no_mirror(lab, report, builds, monkeypatch):
    def fail(*_):
        raise LabError("full")

    with monkeypatch.context() as patch:
        patch.setattr(images.Builder, "add", fail)
        with pytest.raises(LabError):
            mirror.make(lab, report, NEWEST)
    assert not mirror.path(lab, NEWEST.name).exists()
    mirror.check(mirror.make(lab, report, NEWEST), NEWEST)


def test_a_mirror_from_the_internet_needs_no_variables(tmp_path):
    mirror.check(published(tmp_path, NEWEST), NEWEST)


def test_every_missing_file_and_image_is_named_at_once(tmp_path):
    published(tmp_path, NEWEST)
    file = releases.FILES[0].place(NEWEST.wanted[releases.FILES[0].part])
    (tmp_path / "files" / file).unlink()
    images = tmp_path / "images/docker/registry/v2/repositories"
    shutil.rmtree(images / "coredns")
    shutil.rmtree(images / "cpa")
    with pytest.raises(LabError) as raised:
        mirror.check(tmp_path, NEWEST)
    lines = str(raised.value).splitlines()
    assert [line.strip() for line in lines[1:]] == [
        f"files/{file}",
        "image coredns/coredns:v1.12.4",
        "image cpa/cluster-proportional-autoscaler:v1.8.8",
    ]


def test_a_mirror_may_declare_other_versions(tmp_path):
    published(tmp_path, NEWEST)
    former = "files/github.com/kubernetes-sigs/cri-tools/releases/download"
    (tmp_path / former / "v1.35.0").rename(tmp_path / former / "v1.34.0")
    assert mirror.missing(tmp_path, NEWEST) == [
        f"{former}/v1.35.0/crictl-v1.35.0-linux-amd64.tar.gz"
    ]
    place = tmp_path / former / "v1.34.0"
    (place / "crictl-v1.35.0-linux-amd64.tar.gz").rename(
        place / "crictl-v1.34.0-linux-amd64.tar.gz"
    )
    (tmp_path / mirror.VARIABLES).write_text("---\ncrictl_version: 1.34.0  # older\n")
    mirror.check(tmp_path, NEWEST)


@pytest.mark.parametrize(
    ("line", "value"),
    [
        ("a: 1.2.3", "1.2.3"),
        ('a: "1.2.3"', "1.2.3"),
        ("a: 'sha256:0f'", "sha256:0f"),
        ("a: false", "false"),
        ("a: b  # why", "b"),
    ],
)
def test_a_value_is_read_however_it_is_quoted(tmp_path, line, value):
    (tmp_path / mirror.VARIABLES).write_text(f"# a: comment\n---\n{line}\nb: c\n")
    assert mirror.variables(tmp_path) == {"a": value, "b": "c"}


def test_the_users_mirror_is_used_as_it_is(lab, report, builds, tmp_path):
    given = published(tmp_path / "given", NEWEST)
    assert cli.prepare(lab, report, [NEWEST.name], given) == {NEWEST.name: given}
    assert not builds
    shutil.rmtree(given / "files")
    with pytest.raises(LabError, match="lacks"):
        cli.prepare(lab, report, [NEWEST.name], given)


@pytest.mark.parametrize("has_go", [True, False])
def test_registry_needs_no_go(lab, report, builds, monkeypatch, tmp_path, has_go):
    def check(_):
        if not has_go:
            raise LabError("no Go")

    def install(tools, _):
        (tmp_path / tools[0].program).touch(mode=0o755)

    monkeypatch.setattr(golang, "check", check)
    monkeypatch.setattr(packages, "install", install)
    monkeypatch.setenv("PATH", str(tmp_path))
    mirror.make_registry(lab, report)
    assert mirror.registry(lab).exists()
    assert builds == (["registry"] if has_go else [])
    mirror.make_registry(lab, report)
    assert mirror.registry(lab).name == ("registry" if has_go else "docker-registry")
    assert len(builds) == int(has_go)


def test_the_tests_images_need_no_go(lab, report, builds):
    own = mirror.make_own(lab, report)
    assert not Storage(own / "images").lacks(*releases.WEB)
    assert not builds
    (own / "kept").touch()
    assert mirror.make_own(lab, report) == own
    assert (own / "kept").exists()


def test_kube_proxy_and_flannel_have_iptables_of_the_same_layer(made):
    digests = [layers(made, name)[0] for name in ("kube-proxy", "flannel/flannel")]
    assert digests[0] == digests[1]
    blob = made / "images/docker/registry/v2/blobs/sha256" / digests[0][:2] / digests[0]
    with tarfile.open(blob / "data") as tar:
        links = {member.name: member.linkname for member in tar if member.issym()}
    assert links["usr/sbin/iptables-restore"] == "xtables-nft-multi"
    assert links["usr/bin/sh"] == "busybox"
    assert "usr/bin/busybox" not in links


def layers(directory, repository):
    """The digests of an image's layers."""
    root = directory / "images/docker/registry/v2"
    (link,) = root.glob(f"repositories/{repository}/_manifests/tags/*/current/link")
    digest = link.read_text().removeprefix("sha256:")
    manifest = (root / "blobs/sha256" / digest[:2] / digest / "data").read_text()
    found = json.loads(manifest)["layers"]
    return [layer["digest"].removeprefix("sha256:") for layer in found]


def test_packages_are_fetched_with_what_they_need_to_run(monkeypatch):
    depends = {
        "tool": " Depends: libone\n |Depends: debconf\n  Depends: <debconf-2.0>\n",
        "libone": "  Depends: libc6\n |Depends: first\n  Depends: second\n",
        "libc6": "",
        "first": "  PreDepends: libone\n",
    }

    def run(argv, **_):
        names = argv[argv.index("depends") + 1 :]
        return "".join(f"{name}\n{depends[name]}" for name in names)

    monkeypatch.setattr(command, "run", run)
    depends["tool"] = depends["tool"].replace(" Depends: libone", "  Depends: libone")
    assert debian.debian_closure(["tool"]) == {"tool", "libone", "libc6", "first"}


@pytest.mark.parametrize("merged", [True, False])
def test_a_tree_of_packages_has_the_layout_of_an_installed_system(tmp_path, merged):
    home = tmp_path / "usr/lib" if merged else tmp_path / "lib"
    home.mkdir(parents=True)
    (home / "libc.so").write_text("c")
    (home / "ld.so").symlink_to("libc.so")
    debian._merge_usr(tmp_path)
    assert (tmp_path / "lib").readlink() == Path("usr/lib")
    assert (tmp_path / "lib/ld.so").read_text() == "c"
    assert (tmp_path / "bin").readlink() == Path("usr/bin")
    assert of_directory(tmp_path)[0].link == "usr/bin"


@pytest.fixture
def apt(lab, monkeypatch):
    """apt and dpkg, with one package whose files depend on the test."""
    ran = []

    def run(argv, *, cwd=None, **_):
        ran.append(argv[0])
        if argv[0] == "apt-get":
            (cwd / "tool_1.deb").touch()
        if argv[0] == "dpkg-deb":
            (Path(argv[-1]) / "usr/bin").mkdir(parents=True)
            (Path(argv[-1]) / "usr/bin/tool").touch()
            (Path(argv[-1]) / "usr/share/doc/tool").mkdir(parents=True)
        return ""

    monkeypatch.setattr(command, "run", run)
    monkeypatch.setattr(shutil, "which", lambda _: "/usr/bin/apt-get")
    return ran


def test_packages_are_unpacked_once_and_without_their_documentation(lab, apt):
    root = debian.debian_tree(lab, ["tool"])
    assert (root / "bin/tool").exists()
    assert not (root / "usr/share/doc").exists()
    apt.clear()
    assert debian.debian_tree(lab, ["tool"]) == root
    assert not apt


def test_a_system_without_apt_is_refused_with_a_remedy(lab, monkeypatch):
    monkeypatch.setattr(shutil, "which", lambda _: None)
    with pytest.raises(LabError, match=r"tool.*MIRROR="):
        debian.debian_tree(lab, ["tool"])
