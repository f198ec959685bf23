# SPDX-License-Identifier: Apache-2.0
"""Programs built from Go modules: what is run, and what is not run again."""

import re
import shutil
from pathlib import Path

import pytest

from lab import LabError, command
from lab.artifacts import golang
from lab.artifacts.golang import Group

ETCD = Group("etcd", "3.6.10")


@pytest.fixture
def go(monkeypatch):
    """The builds that are run: by program its package, directory and environment."""
    builds = {}

    def run(argv, *, cwd, env, **_):
        target = Path(argv[argv.index("-o") + 1])
        builds[target.name.removeprefix(".")] = argv[-1], cwd, env
        target.write_text("program")
        return ""

    monkeypatch.setattr(command, "run", run)
    return builds


def test_each_program_of_a_group_is_built_in_the_directory_of_its_pins(lab, report, go):
    target = golang.build(lab, report, ETCD)
    assert {name: package for name, (package, _, _) in go.items()} == {
        "etcd": "go.etcd.io/etcd/server/v3",
        "etcdctl": "go.etcd.io/etcd/etcdctl/v3",
        "etcdutl": "go.etcd.io/etcd/etcdutl/v3",
    }
    assert sorted(path.name for path in target.iterdir()) == sorted(go)
    assert {cwd for _, cwd, _ in go.values()} == {ETCD.module}


def test_an_interrupted_build_goes_on_with_the_programs_that_are_missing(
    lab, report, go
):
    target = golang.build(lab, report, ETCD)
    go.clear()
    (target / "etcdctl").rename(target / ".etcdctl")
    golang.build(lab, report, ETCD)
    assert list(go) == ["etcdctl"]
    assert not (target / ".etcdctl").exists()


def test_a_failed_build_leaves_no_program(lab, report, monkeypatch):
    def run(argv, **_):
        Path(argv[argv.index("-o") + 1]).write_text("half")
        raise LabError("go failed")

    monkeypatch.setattr(command, "run", run)
    with pytest.raises(LabError):
        golang.build(lab, report, ETCD)
    assert not (ETCD.path(lab) / "etcdctl").exists()


@pytest.mark.parametrize("file", ["go.mod", "go.sum"])
def test_other_pins_are_built_anew(lab, report, go, monkeypatch, tmp_path, file):
    modules = tmp_path / "modules"
    monkeypatch.setattr(golang, "MODULES", modules)
    group = Group("thing", "1.2.3")
    group.module.mkdir(parents=True)
    (group.module / "go.mod").write_text("tool example.org/thing\n")
    (group.module / "go.sum").write_text("")
    first = golang.build(lab, report, group)
    pins = group.module / file
    pins.write_text(f"{pins.read_text()}// other\n")
    assert golang.build(lab, report, group) != first
    assert not first.exists()


def test_another_stand_in_is_built_anew_too(monkeypatch, tmp_path):
    monkeypatch.setattr(golang, "MODULES", tmp_path / "modules")
    group = Group("thing", "1.2.3")
    group.module.mkdir(parents=True)
    (group.module / "go.mod").write_text("replace a => ../../stand_ins/a\n")
    (group.module / "go.sum").write_text("")
    source = tmp_path / "stand_ins/a/a.go"
    source.parent.mkdir(parents=True)
    source.write_text("package a\n")
    first = group.key()
    source.write_text("package a // other\n")
    assert group.key() != first


def test_gos_caches_are_the_labs_unless_they_are_set(lab, monkeypatch):
    monkeypatch.delenv("GOMODCACHE", raising=False)
    monkeypatch.setenv("GOCACHE", "/mine")
    env = golang.environment(lab)
    assert env["GOMODCACHE"].startswith(str(lab.cache))
    assert env["GOCACHE"] == "/mine"


def test_only_programs_with_parts_in_c_need_a_compiler(lab, report, go, monkeypatch):
    golang.build(lab, report, ETCD)
    golang.build(lab, report, Group("runc", "1.4.2"))
    needs = {name: env["CGO_ENABLED"] for name, (_, _, env) in go.items()}
    assert needs == {"etcd": "0", "etcdctl": "0", "etcdutl": "0", "runc": "1"}


def test_without_go_the_error_names_the_package(lab, monkeypatch):
    monkeypatch.setattr(shutil, "which", lambda _: None)
    with pytest.raises(LabError, match=r"go\.dev/dl.*MIRROR=") as raised:
        golang.check(lab)
    assert raised.value.code == 2


@pytest.mark.parametrize(
    ("version", "fits"), [("go1.19.8", False), ("go1.21.0", True), ("go2.0", True)]
)
def test_a_go_that_cannot_get_a_newer_one_is_refused(lab, monkeypatch, version, fits):
    monkeypatch.setattr(shutil, "which", lambda _: "/bin/go")
    monkeypatch.setattr(
        command, "run", lambda *_, **__: f"go version {version} linux/amd64\n"
    )
    if fits:
        golang.check(lab)
    else:
        with pytest.raises(LabError, match=re.escape(version)):
            golang.check(lab)


def test_sources_are_forgotten_in_the_labs_cache_only(lab, monkeypatch):
    monkeypatch.setenv("GOMODCACHE", "/mine")
    own = golang.artifacts(lab) / "go" / "mod"
    own.mkdir(parents=True)
    ran = []
    monkeypatch.setattr(
        command, "run", lambda argv, *, env, **_: ran.append((argv, env))
    )
    golang.forget_sources(lab)
    ((argv, env),) = ran
    assert argv[:2] == ["go", "clean"]
    assert env["GOMODCACHE"] == str(own)
    assert not own.exists()
