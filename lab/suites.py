# SPDX-License-Identifier: Apache-2.0
"""Programs of other Debian releases, beside the machine's own, for tests.

Each is pinned by version and checksum. apt fetches it with the libraries that it needs,
with package lists of its own, and checks Debian's signature. Nothing is installed on
the machine: a small script in the cache starts the program with its own libraries.

A suite that still changes has a version for some weeks only. Then it comes from
Debian's archive of former days, and where that cannot be reached, the suite's present
version of the same branch is used, which the report says.
"""

import re
import shlex
import shutil
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType

from lab import LabError, command, files
from lab.artifacts.images import sha256
from lab.cloud.systemd import root
from lab.report import Report
from lab.settings import Settings

LIMIT = 600
DEBIAN = "http://deb.debian.org/debian"
FORMER_DAYS = "http://snapshot.debian.org/archive/debian"
KEYRING = Path("/usr/share/keyrings/debian-archive-keyring.gpg")
# Change it to prepare programs in another way from the same packages.
RECIPE = "1"
# What packages need for their installation only.
_NEEDLESS = ("usr/share", "usr/lib/systemd", "etc")


@dataclass(frozen=True)
class Program:
    """A program of a Debian release.

    :ivar name: of the script that starts it.
    :ivar file: its place in the package.
    :ivar branch: what versions begin with that may take the place of the pinned one.
    :ivar day: when the suites had that version, as the archive of former days has it.
    :ivar checksums: SHA-256 of the package, by Debian's name of the architecture.
    """

    name: str
    package: str
    file: str
    branch: str
    version: str
    suites: tuple[str, ...]
    day: str
    checksums: Mapping[str, str]


HAPROXY_NEWEST = Program(
    name="haproxy-newest",
    package="haproxy",
    file="usr/sbin/haproxy",
    branch="3.4.",
    version="3.4.7-1",
    suites=("sid", "experimental"),
    day="20261030T120000Z",
    checksums=MappingProxyType(
        {"amd64": "b8cc6bac17db6ed2516a3a2e85e6dcbc6c561f78edafff450ffc721dee6b4a26"}
    ),
)
HAPROXY_DEBIAN_13 = Program(
    name="haproxy-debian-13",
    package="haproxy",
    file="usr/sbin/haproxy",
    branch="3.0.",
    version="3.0.11-1+deb13u4",
    suites=("trixie",),
    day="20261121T120000Z",
    checksums=MappingProxyType(
        {"amd64": "4649521efe386e6c2957cb034bbf82412cd6eced55b98b9dada1b933c2c4b81a"}
    ),
)
VISUDO_RS = Program(
    name="visudo-rs",
    package="sudo-rs",
    file="usr/lib/cargo/bin/visudo",
    branch="0.2.",
    version="0.2.5-5+deb13u1",
    suites=("trixie",),
    day="20261121T120000Z",
    checksums=MappingProxyType(
        {"amd64": "14934261d00f0f44074d81b793879bcc1b831e969c0e012774199650f48fa72e"}
    ),
)
#: What tests run beside the machine's own.
TESTED = (HAPROXY_NEWEST, HAPROXY_DEBIAN_13, VISUDO_RS)


def path(settings: Settings, program: Program) -> Path:
    """The script that starts a program, whether it is there or not."""
    return settings.programs / program.name


def is_ready(settings: Settings, program: Program) -> bool:
    """Whether the program is there, in the version that is pinned or in its place."""
    script, tree = path(settings, program), _tree(settings, program)
    return tree.exists() and script.exists() and str(tree) in script.read_text()


def prepare(settings: Settings, report: Report, programs: Sequence[Program]) -> None:
    """Fetch the programs that are not there.

    :raises LabError: one cannot be had; with what each source said.
    """
    for program in programs:
        if not is_ready(settings, program):
            with report.step(f"{program.name} {program.version}"):
                _make(settings, report, program)


def _make(settings: Settings, report: Report, program: Program) -> None:
    target = _tree(settings, program)
    target.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=target.parent) as name:
        work = Path(name)
        packages = _fetched(work, report, program)
        unpacked = work / "root"
        for package in packages:
            command.run(["dpkg-deb", "-x", str(package), str(unpacked)], limit=LIMIT)
        for part in _NEEDLESS:
            shutil.rmtree(unpacked / part, ignore_errors=True)
        shutil.rmtree(target, ignore_errors=True)
        unpacked.rename(target)
    _write_script(path(settings, program), target, program)


def _fetched(work: Path, report: Report, program: Program) -> list[Path]:
    """The package and what it depends on, from the first source that has it."""
    if not shutil.which("apt-get") or not KEYRING.exists():
        raise LabError(
            f"{program.name} is a program of Debian: this takes apt and the package"
            " debian-archive-keyring",
            2,
        )
    said: list[str] = []
    in_place: tuple[_Apt, str] | None = None
    for uri in (_mirror(), f"{FORMER_DAYS}/{program.day}"):
        apt = _Apt(work / str(len(said)), uri, program)
        try:
            versions = apt.versions()
            if program.version in versions:
                packages = apt.download(program.version)
                _check(packages, program)
                return packages
        except LabError as error:
            said.append(f"{uri}: {error}")
            continue
        said.append(f"{uri} has {', '.join(versions) or 'none'}")
        near = [one for one in versions if one.startswith(program.branch)]
        if near and not in_place:
            in_place = (apt, near[0])
    if in_place:
        apt, version = in_place
        report.line(f"{program.package} {version} in place of {program.version}")
        return apt.download(version)
    raise LabError(
        f"{program.package} {program.version} is not to be had; pin another version in"
        " lab/suites.py:\n" + "\n".join(said)
    )


class _Apt:
    """apt with package lists of other releases, on a machine without packages.

    :param work: a directory for it alone.
    :param uri: of an archive of Debian.
    """

    def __init__(self, work: Path, uri: str, program: Program) -> None:
        self._program = program
        self._archives = work / "cache" / "archives"
        (work / "lists" / "partial").mkdir(parents=True)
        (self._archives / "partial").mkdir(parents=True)
        (work / "status").touch()
        # What was signed in former days is not out of date.
        options = f"[signed-by={KEYRING} check-valid-until=no]"
        (work / "sources.list").write_text(
            "".join(f"deb {options} {uri} {suite} main\n" for suite in program.suites)
        )
        (work / "apt.conf").write_text(
            f'Dir::Etc::Main "{work}/none"; Dir::Etc::Parts "{work}/none";\n'
            f'Dir::Etc::SourceList "{work}/sources.list";\n'
            f'Dir::Etc::SourceParts "{work}/none";\n'
            f'Dir::Etc::Preferences "{work}/none";\n'
            f'Dir::Etc::PreferencesParts "{work}/none";\n'
            f'Dir::State "{work}"; Dir::State::Lists "{work}/lists";\n'
            f'Dir::State::Status "{work}/status";\n'
            f'Dir::Cache "{work}/cache";\n'
            # The directory need not be one that apt's own user may enter.
            'APT::Sandbox::User "root"; APT::Update::Error-Mode "any";\n'
            + root.download_settings()
        )
        self._environment = {
            **command.quiet_environment(),
            "APT_CONFIG": str(work / "apt.conf"),
        }

    def versions(self) -> list[str]:
        """The versions of the program's package there, the newest first."""
        self._run("apt-get", "update", "-q")
        said = self._run("apt-cache", "madison", self._program.package)
        found = re.findall(r"(?m)^ *\S+ \| *(\S+) *\|.* Packages$", said)
        return list(dict.fromkeys(found))

    def download(self, version: str) -> list[Path]:
        """Fetch the package in a version, with all that it depends on."""
        # The latter in place of the whole of systemd, which has it, too.
        wanted = (f"{self._program.package}={version}", "systemd-standalone-sysusers")
        only = ("-q", "-y", "--download-only", "--no-install-recommends")
        self._run("apt-get", "install", *only, *wanted)
        return sorted(self._archives.glob("*.deb"))

    def _run(self, *argv: str) -> str:
        return command.run(argv, limit=LIMIT, env=self._environment)


def _check(packages: Sequence[Path], program: Program) -> None:
    """Compare the package with the checksum that is pinned."""
    for package in packages:
        name, _, rest = package.name.partition("_")
        architecture = package.stem.rpartition("_")[2]
        wanted = program.checksums.get(architecture)
        if name == program.package and wanted and sha256(package) != wanted:
            raise LabError(f"{name}_{rest} has another checksum than is pinned")


def _mirror() -> str:
    """Where this machine gets Debian's packages from."""
    fields = "$(ORIGIN)|$(LABEL)|$(REPO_URI)"
    argv = ["apt-get", "indextargets", "--format", fields, "Created-By: Packages"]
    for line in command.run(
        argv, limit=60, env=command.quiet_environment()
    ).splitlines():
        origin, label, uri = line.split("|")
        if (origin, label) == ("Debian", "Debian"):
            return uri.rstrip("/")
    return DEBIAN


def _tree(settings: Settings, program: Program) -> Path:
    key = files.digest([], RECIPE, program.package, program.version)
    return settings.cache / "artifacts" / f"{program.name}-{key}"


def _write_script(script: Path, tree: Path, program: Program) -> None:
    """What starts the program, by its own name for what it starts again itself."""
    loader = next(_loaders(tree))
    libraries = sorted({str(found.parent) for found in tree.rglob("lib*.so.*")})
    words = [str(loader), "--library-path", ":".join(libraries)]
    script.parent.mkdir(parents=True, exist_ok=True)
    new = script.with_suffix(".new")
    new.write_text(
        f'#!/bin/sh\nexec {shlex.join(words)} --argv0 "$0" {tree / program.file} "$@"\n'
    )
    new.chmod(0o755)
    new.replace(script)


def _loaders(tree: Path) -> Iterator[Path]:
    for found in sorted(tree.rglob("ld-linux*.so.*")):
        if not found.is_symlink():
            yield found
