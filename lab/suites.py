# SPDX-License-Identifier: Apache-2.0
"""Programs of other Debian releases, beside the machine's own, for tests.

Each is pinned by version. mmdebstrap unpacks it with the libraries that it needs, and
apt checks Debian's signature. Nothing is installed on the machine: a small script in
the cache starts the program with its own libraries.

A suite that still changes has a version for some weeks only. Then it comes from
Debian's archive of former days, and where that cannot be reached, the suite's present
version of the same branch is used, which the report says.
"""

import shlex
import shutil
import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from lab import LabError, command, files
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
    """

    name: str
    package: str
    file: str
    branch: str
    version: str
    suites: tuple[str, ...]
    day: str


HAPROXY_NEWEST = Program(
    name="haproxy-newest",
    package="haproxy",
    file="usr/sbin/haproxy",
    branch="3.4.",
    version="3.4.7-1",
    suites=("sid", "experimental"),
    day="20261030T120000Z",
)
HAPROXY_DEBIAN_13 = Program(
    name="haproxy-debian-13",
    package="haproxy",
    file="usr/sbin/haproxy",
    branch="3.0.",
    version="3.0.11-1+deb13u4",
    suites=("trixie",),
    day="20261121T120000Z",
)
VISUDO_RS = Program(
    name="visudo-rs",
    package="sudo-rs",
    file="usr/lib/cargo/bin/visudo",
    branch="0.2.",
    version="0.2.5-5+deb13u1",
    suites=("trixie",),
    day="20261121T120000Z",
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
        unpacked = _unpacked(Path(name), report, program)
        for part in _NEEDLESS:
            shutil.rmtree(unpacked / part, ignore_errors=True)
        shutil.rmtree(target, ignore_errors=True)
        unpacked.rename(target)
    _write_script(path(settings, program), target, program)


def _unpacked(work: Path, report: Report, program: Program) -> Path:
    """The program with what it depends on, from the first source that has it."""
    mirror, near = _mirror(), f"{program.branch}*"
    former = f"{FORMER_DAYS}/{program.day}"
    said: list[str] = []
    for uri, version in (
        (mirror, program.version),
        (former, program.version),
        (mirror, near),
    ):
        tree = work / str(len(said))
        try:
            _unpack(tree, uri, program, version)
        except LabError as error:
            said.append(f"{uri}, {version}: {error}")
            continue
        if version == near:
            report.line(f"{program.package} {version} in place of {program.version}")
        return tree
    raise LabError(
        f"{program.package} {program.version} is not to be had; pin another version in"
        " lab/suites.py:\n" + "\n".join(said)
    )


def _unpack(tree: Path, uri: str, program: Program, version: str) -> None:
    """Unpack a version of the program's package and all that it depends on.

    :param uri: of an archive of Debian.
    """
    settings = tree.with_suffix(".conf")
    # The directory need not be one that apt's own user may enter.
    user = 'APT::Sandbox::User "root";\n'
    settings.write_text(user + root.download_settings())
    # What was signed in former days is not out of date.
    options = f"[signed-by={KEYRING} check-valid-until=no]"
    # The latter in place of the whole of systemd, which has it, too.
    wanted = f"{program.package}={version},systemd-standalone-sysusers"
    argv = ["mmdebstrap", "--quiet", "--variant=extract", f"--include={wanted}"]
    argv += [f"--aptopt={settings}", program.suites[0], str(tree)]
    sources = [f"deb {options} {uri} {suite} main" for suite in program.suites]
    env = command.quiet_environment()
    command.run([*argv, *sources], limit=LIMIT, env=env)


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
