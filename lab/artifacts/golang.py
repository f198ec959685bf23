# SPDX-License-Identifier: Apache-2.0
"""Programs built from Go modules, each once for its pins.

A group is a module of ours below ``modules``: its ``go.mod`` requires the project that
the programs are part of, and names their packages as tools; its ``go.sum`` pins the
contents. A program in the cache is complete, so an interrupted build continues where it
was.
"""

import os
import re
import shutil
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from lab import LabError, command, files
from lab.report import Report
from lab.settings import Settings

MODULES = Path(__file__).parent / "modules"
# Modules of this version's go command name a newer one that it gets by itself.
OLDEST_GO = (1, 21)
# Change it to build programs in another way from the same pins.
RECIPE = "1"
BUILD_LIMIT = 7200
LIMIT = 60
_KUBERNETES = ("k8s.io/component-base/version", "k8s.io/client-go/pkg/version")
_STATIC_C = "-linkmode external -extldflags -static"
#: The linker's options of each project's own release build.
VERSIONS: Mapping[str, str] = {
    "kubernetes": " ".join(
        f"-X {package}.gitVersion=v{{version}} -X {package}.gitMajor={{major}}"
        f" -X {package}.gitMinor={{minor}} -X {package}.gitTreeState=clean"
        for package in _KUBERNETES
    ),
    "containerd": ("-X github.com/containerd/containerd/v2/version.Version=v{version}"),
    "cni-plugins": (
        "-X github.com/containernetworking/plugins/pkg/utils/buildversion.BuildVersion"
        "=v{version}"
    ),
    "flannel-cni-plugin": (
        "-X github.com/containernetworking/plugins/pkg/utils/buildversion.BuildVersion"
        "=v{version}"
    ),
    "flannel": "-X github.com/flannel-io/flannel/pkg/version.Version=v{version}",
    "crictl": "-X sigs.k8s.io/cri-tools/pkg/version.Version=v{version}",
    "nerdctl": "-X github.com/containerd/nerdctl/v2/pkg/version.Version=v{version}",
    "helm": "-X helm.sh/helm/v3/internal/version.version=v{version}",
    "registry": "-X github.com/distribution/distribution/v3/version.version=v{version}",
}
_TAGS: Mapping[str, str] = {
    "kubernetes": "selinux,notest,grpcnotrace",
    "containerd": "urfave_cli_no_docs",
    "runc": "seccomp,netgo,osusergo,urfave_cli_no_docs",
    "flannel": "netgo,osusergo",
}
# runc's first steps and flannel's UDP backend are written in C.
_WITH_C = ("runc", "flannel")
_NAMES: Mapping[str, str] = {"server": "etcd"}


@dataclass(frozen=True)
class Group:
    """The programs of one project in one version."""

    name: str
    version: str

    @property
    def module(self) -> Path:
        """The directory with its pins."""
        return MODULES / f"{self.name}-{self.version}"

    def packages(self) -> dict[str, str]:
        """By name of the program, its package."""
        text = (self.module / "go.mod").read_text()
        block = re.search(r"^tool \(\n(.*?)^\)", text, re.MULTILINE | re.DOTALL)
        lines = block[1] if block else re.findall(r"^tool (.*)$", text, re.MULTILINE)[0]
        return {_program(package): package for package in lines.split()}

    def flags(self) -> list[str]:
        """Words of ``go build`` beside what is built."""
        major, minor, _ = self.version.split(".")
        known = {"version": self.version, "major": major, "minor": minor}
        words = ["-s", "-w", VERSIONS.get(self.name, "").format(**known)]
        if self.with_c:
            words.append(_STATIC_C)
        options = ["-trimpath", "-ldflags", " ".join(filter(None, words))]
        return [*options, *(["-tags", _TAGS[self.name]] if self.name in _TAGS else [])]

    @property
    def with_c(self) -> bool:
        """Whether it has parts in C."""
        return self.name in _WITH_C

    def key(self) -> str:
        """What its programs depend on, in short."""
        pins = [self.module / "go.mod", self.module / "go.sum"]
        for place in re.findall(r"=> (\.\./\S+)", pins[0].read_text()):
            pins += [
                each for each in (self.module / place).rglob("*") if each.is_file()
            ]
        return files.digest(pins, *self.flags(), RECIPE)

    def path(self, settings: Settings) -> Path:
        """Where its programs are kept, whether they are built or not."""
        return artifacts(settings) / f"{self.name}-{self.version}-{self.key()}"


def artifacts(settings: Settings) -> Path:
    """The part of the cache for this."""
    return settings.cache / "artifacts"


def environment(settings: Settings) -> dict[str, str]:
    """Variables of the go command; its caches are the lab's unless they are set."""
    own = {
        "GOMODCACHE": str(artifacts(settings) / "go" / "mod"),
        "GOCACHE": str(artifacts(settings) / "go" / "build"),
    }
    return {**own, **os.environ, "GOFLAGS": "-mod=readonly", "GOWORK": "off"}


def check(settings: Settings) -> None:
    """Refuse to build without a go command that is new enough.

    :raises LabError: with what the user can do.
    """
    remedy = (
        "install Go from https://go.dev/dl/ and put it into PATH, or give a mirror:"
        " MIRROR=<directory>"
    )
    if not shutil.which("go"):
        raise LabError(f"Building what kubespray installs needs Go: {remedy}", 2)
    said = command.run(["go", "version"], limit=LIMIT, env=environment(settings))
    found = re.search(r"go(\d+)\.(\d+)", said)
    if not found or (int(found[1]), int(found[2])) < OLDEST_GO:
        oldest = ".".join(map(str, OLDEST_GO))
        raise LabError(f"This is {said.strip()}, older than Go {oldest}: {remedy}", 2)


def build(settings: Settings, report: Report, group: Group) -> Path:
    """Build the programs of a group that are missing.

    :returns: the directory with them.
    :raises LabError: a module could not be fetched, or a program not be built.
    """
    target = group.path(settings)
    target.mkdir(parents=True, exist_ok=True)

    def busy() -> None:
        report.line(f"  waiting for another command that builds {group.name} ...")

    with files.locked(target.with_name(f"{target.name}.lock"), busy):
        for name, package in group.packages().items():
            if not (target / name).exists():
                with report.step(f"{name} {group.version}"):
                    _build(settings, group, package, target / f".{name}")
                (target / f".{name}").rename(target / name)
        for former in target.parent.glob(f"{group.name}-{group.version}-*/"):
            if former != target:
                shutil.rmtree(former)
    return target


def _build(settings: Settings, group: Group, package: str, program: Path) -> None:
    env = {**environment(settings), "CGO_ENABLED": "1" if group.with_c else "0"}
    command.run(
        [
            *("nice", "-n", "5", "go", "build"),
            *(*group.flags(), "-o", str(program), package),
        ],
        limit=BUILD_LIMIT,
        log=artifacts(settings) / "build.log",
        env=env,
        cwd=group.module,
    )


def forget_sources(settings: Settings) -> None:
    """Remove the modules and half-made parts that builds have left in the cache."""
    own = artifacts(settings) / "go"
    if own.exists():
        caches = {"GOMODCACHE": str(own / "mod"), "GOCACHE": str(own / "build")}
        # The modules are read-only files, which the go command itself can remove.
        command.run(
            ["go", "clean", "-modcache", "-cache"],
            limit=BUILD_LIMIT,
            env={**environment(settings), **caches},
        )
        shutil.rmtree(own)


def _program(package: str) -> str:
    """The name of a package's program: without its major version, as go has it."""
    name = re.sub(r"/v\d+$", "", package).rpartition("/")[2]
    return _NAMES.get(name, name)
