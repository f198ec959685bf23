# SPDX-License-Identifier: Apache-2.0
"""An Ansible server as far as the script can see it: a directory, for any user.

Its kubespray is a git repository with tags, its package index a directory of wheels,
its PATH has nothing but the tools of every distribution and a few stand-ins. Python,
git, tar and pip are real.
"""

import getpass
import os
import shutil
import subprocess
import sys
import textwrap
import zipfile
from pathlib import Path

SCRIPT = Path(__file__).parents[3] / "scripts" / "prepare_ansible_server.sh"
#: Everything of the system that the script may use, but package tools and Python.
TOOLS = (
    *("awk", "bash", "cat", "chown", "cmp", "cp", "cut", "dirname", "env", "find"),
    *("flock", "getent", "git", "grep", "gzip", "head", "id", "ln", "mkdir", "mktemp"),
    *("mv", "readlink", "realpath", "rm", "sed", "seq", "sh", "sleep", "sort", "stat"),
    *("tar", "test", "touch", "truncate"),
)
#: The Ansible in the wheels: version of the distribution, version of ansible-core.
ANSIBLES = {"9.0.0": "2.16.9", "10.0.0": "2.17.5", "11.0.0": "2.18.3"}
LIMITS = """\
- name: Check the Ansible version
  vars:
    minimal_ansible_version: {least}  # a remark
    maximal_ansible_version: {below}
"""
#: Pretends to be a version of Python, 3.MINOR, and is the one of the tests.
PYTHON = """\
case "$*" in
*ensurepip* | *sys.version_info*) echo {minor} ;;
"-m venv "*) {make_venv} "${{@:3}}" ;;
*) exec {real} "$@" ;;
esac
"""
#: Unless the options name another one.
RELEASE = "v2.31.0"
USER = getpass.getuser()


def make_wheel(directory: Path, version: str, core: str, name: str = "ansible") -> None:
    """Put a wheel into *directory*, whose program tells its version as Ansible does."""
    info = f"{name}-{version}.dist-info"
    program = f'def main():\n    print("ansible-playbook [core {core}]")\n'
    files = {
        "ansible_stand_in.py": program,
        f"{info}/METADATA": f"Metadata-Version: 2.1\nName: {name}\n"
        f"Version: {version}\n",
        f"{info}/WHEEL": "Wheel-Version: 1.0\nGenerator: tests\n"
        "Root-Is-Purelib: true\nTag: py3-none-any\n",
        f"{info}/entry_points.txt": "[console_scripts]\n"
        "ansible-playbook = ansible_stand_in:main\n",
    }
    if name != "ansible":
        del files["ansible_stand_in.py"], files[f"{info}/entry_points.txt"]
    record = "".join(f"{name},,\n" for name in (*files, f"{info}/RECORD"))
    path = directory / f"{name}-{version}-py3-none-any.whl"
    with zipfile.ZipFile(path, "w") as wheel:
        for name, text in {**files, f"{info}/RECORD": record}.items():
            wheel.writestr(name, text)


def make_origin(directory: Path) -> None:
    """Make a git repository with releases; that of v2.29.0 is mislabelled."""
    git(directory, "init", "-q", "-b", "master")
    for tag, version, ansible, least, below in (
        ("v2.28.1", "2.28.1", "11.0.0", "2.16.4", "2.17.0"),
        ("v2.29.0", "2.29.1", "10.0.0", "2.17.3", "2.18.0"),
        ("v2.30.0", "2.30.0", "10.0.0", "2.17.3", "2.18.0"),
        ("v2.31.0", "2.31.0", "11.0.0", "2.18.0", "2.19.0"),
    ):
        write(directory / "galaxy.yml", f"---\nname: kubespray\nversion: {version}\n")
        write(directory / "requirements.txt", f"ansible=={ansible}\n")
        limits = LIMITS.format(least=least, below=below)
        write(directory / "playbooks" / "ansible_version.yml", limits)
        git(directory, "add", ".")
        git(directory, "commit", "-q", "-m", tag)
        git(directory, "tag", tag)


def git(directory: Path, *words: str) -> None:
    """Run git as someone without a configuration."""
    who = {
        f"GIT_{role}_{what}": "tests@tests.example"
        for role in ("AUTHOR", "COMMITTER")
        for what in ("NAME", "EMAIL")
    }
    subprocess.run(
        ["git", *words],
        cwd=directory,
        env={**os.environ, **who, "GIT_CONFIG_GLOBAL": "/dev/null"},
        check=True,
    )


def write(path: Path, text: str) -> None:
    """Write a file, with its directory."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)


class Sandbox:
    """One Ansible server.

    :param sources: the directory with ``origin`` and ``wheels``.
    :param skeleton: a virtual environment of which new ones are copies; with None each
        is made, which takes some seconds.
    """

    def __init__(
        self, directory: Path, sources: Path, skeleton: Path | None = None
    ) -> None:
        self.directory = directory
        self._skeleton = skeleton
        self.origin = sources / "origin"
        self.wheels = sources / "wheels"
        self.root = directory / "opt" / "kubespray"
        self.venv = directory / "opt" / "kubespray-venv"
        self._commands = directory / "commands"
        self._commands.mkdir(exist_ok=True)
        for name in TOOLS:
            if not (self._commands / name).exists():
                (self._commands / name).symlink_to(shutil.which(name) or name)
        for name in ("ssh", "sshpass"):
            self.command(name, "exit 0")
        self.python("python3", 12)

    def command(self, name: str, text: str) -> None:
        """Put a stand-in into the PATH."""
        path = self._commands / name
        path.unlink(missing_ok=True)
        path.write_text(f"#!/usr/bin/env bash\n{textwrap.dedent(text)}\n")
        path.chmod(0o755)

    def python(self, name: str, minor: int) -> None:
        """Put a Python into the PATH."""
        real = os.path.realpath(sys.executable)
        make_venv = f"exec {real} -m venv"
        if self._skeleton:
            make_venv = f"exec cp -a {self._skeleton}/."
        self.command(name, PYTHON.format(minor=minor, real=real, make_venv=make_venv))

    def remove(self, *names: str) -> None:
        """Take programs out of the PATH."""
        for name in names:
            (self._commands / name).unlink()

    def run(
        self, *options: str, has_release: bool = True, **environment: str
    ) -> subprocess.CompletedProcess[str]:
        """One call of the script."""
        paths = ("--root", str(self.root), "--venv", str(self.venv), "--user", USER)
        release = ("--release", RELEASE) if has_release else ()
        sources = ("--git-url", f"file://{self.origin}")
        if "--wheels" not in options and "--index-url" not in options:
            sources += ("--wheels", str(self.wheels))
        return subprocess.run(
            ["bash", str(SCRIPT), *release, *paths, *sources, *options],
            env={
                "PATH": str(self._commands),
                "HOME": str(self.directory),
                "TMPDIR": str(self.directory),
                "PREPARE_LOCK_SECONDS": "2",
                "PREPARE_PACKAGE_SECONDS": "0",
                "PREPARE_PACKAGE_PAUSE": "0",
                **environment,
            },
            cwd=self.directory,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=600,
            check=False,
        )

    def do(self, *options: str, **environment: str) -> list[str]:
        """One call that must end well; returns the lines of its output."""
        result = self.run(*options, **environment)
        assert (result.returncode, result.stderr) == (0, ""), result.stderr
        return result.stdout.splitlines()

    def refused(self, *options: str, **environment: str) -> str:
        """One call that must fail; returns its one line."""
        result = self.run(*options, **environment)
        assert result.returncode == 1
        assert len(result.stderr.splitlines()) == 1, result.stderr
        assert result.stderr.endswith("\n")
        return result.stderr.strip()

    def refused_check(self, *options: str) -> list[str]:
        """A call with ``--check`` that finds something; returns its lines."""
        result = self.run("--check", *options)
        assert (result.returncode, result.stderr) == (1, "")
        return result.stdout.splitlines()

    def everything(self) -> dict[str, tuple[int, int]]:
        """Every file below ``opt`` with what changes when it is written."""
        found = sorted((self.directory / "opt").rglob("*"))
        stats = {str(path): path.lstat() for path in found if path.suffix != ".pyc"}
        return {
            name: (one.st_ino, one.st_mtime_ns)
            for name, one in stats.items()
            if not name.endswith("__pycache__")
        }
