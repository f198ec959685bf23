# SPDX-License-Identifier: Apache-2.0
"""The Python environments: built from pins, kept in the cache, rebuilt with new pins.

Each environment's name carries a digest of its pins, so a finished one is never
changed under a running lab, except for the project itself, which is installed as an
operator would do it, from a copy. The pins name every package, so nothing has to be
resolved; uv installs them, and pip where uv cannot.
"""

import os
import shutil
import subprocess
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from lab import LabError, command, files
from lab.report import Report
from lab.settings import ROOT, SYSTEM_PYTHON, Settings

PINS = Path(__file__).parent / "constraints"
TACKER = "tacker"
NAMES = ("openstack", TACKER, "ansible")
#: Tacker beside the lowest versions that the project supports; for tests.
LOWEST = "lowest"
#: The environments that tests run in.
TESTED = (TACKER, LOWEST)
#: What builds the documentation.
DOCS = "docs"
#: Nova without what it needs: the schemas of its API, for tests of the stand-in.
SCHEMAS = "schemas"
TOOLS = "tools"
TESTS = "tests"
COMPLETE = ".complete"
# Change it to build environments in another way from the same pins.
RECIPE = "1"
LIMIT = 1800


def pins(name: str) -> Path:
    """The file with every package of an environment and its version."""
    return PINS / f"{name}.txt"


def key(name: str) -> str:
    """What an environment depends on, as a short digest."""
    # The name of the file that it really is has the version: python3.11.
    python = os.path.realpath(SYSTEM_PYTHON)
    return files.digest([pins(name)], python, RECIPE)


def path(settings: Settings, name: str) -> Path:
    """Directory of an environment, whether it is built or not."""
    return settings.cache / "envs" / f"{name}-{key(name)}"


def program(settings: Settings, name: str, word: str) -> str:
    """A program of an environment."""
    return str(path(settings, name) / "bin" / word)


def is_ready(settings: Settings, name: str) -> bool:
    """Whether an environment is built."""
    return (path(settings, name) / COMPLETE).exists()


def has_tests(settings: Settings, name: str) -> bool:
    """Whether an environment has the test tools."""
    stamp = path(settings, name) / f".{TESTS}"
    return stamp.exists() and stamp.read_text() == key(TESTS)


def prepare(settings: Settings, report: Report, names: Sequence[str] = NAMES) -> None:
    """Build the environments that are missing.

    With those of a lab among them, environments of former pins are removed.

    :raises LabError: an installation failed.
    """
    wanted = [name for name in names if not is_ready(settings, name)]
    if not wanted:
        return
    prepare_tools(settings, report)
    with ThreadPoolExecutor(len(wanted)) as pool:
        # A list, to see the exceptions.
        list(pool.map(lambda name: _build(settings, report, name), wanted))
    # A lab may run with environments of this cache, be they former ones.
    in_use = files.is_named_by_processes(f"{settings.cache}/envs/", "cmdline")
    if set(NAMES) <= set(names) and not in_use:
        _remove_former(settings)


def prepare_tools(settings: Settings, report: Report) -> None:
    """Build the environment that has uv.

    :raises LabError: an installation failed.
    """
    if not is_ready(settings, TOOLS):
        _build(settings, report, TOOLS)


def add_tests(settings: Settings, report: Report, name: str) -> None:
    """Put the test tools into an environment."""
    if has_tests(settings, name):
        return
    environment = path(settings, name)
    with report.step(f"test tools, {name}"):
        install(settings, environment, ["--no-deps", "-r", str(pins(TESTS))])
        (environment / f".{TESTS}").write_text(key(TESTS))


def install(settings: Settings, environment: Path, arguments: Sequence[str]) -> None:
    """Install what *arguments* of pip name into an environment, with uv, else with pip.

    :raises LabError: both failed; with pip's reason.
    """
    python = str(environment / "bin" / "python")
    log = settings.cache / "install.log"
    uv = program(settings, TOOLS, "uv")
    pip = program(settings, TOOLS, "pip")
    fast = [uv, "pip", "install", "--quiet", "--python", python]
    plain = [pip, "--python", python, "install", "--quiet"]
    env = uv_variables(settings)
    try:
        command.run([*fast, *arguments], limit=LIMIT, log=log, env=env)
    except LabError:
        command.run([*plain, *arguments], limit=LIMIT, log=log)
    _compile(environment)


def _build(settings: Settings, report: Report, name: str) -> None:
    target = path(settings, name)
    with report.step(f"environment {name}"):
        shutil.rmtree(target, ignore_errors=True)
        target.parent.mkdir(parents=True, exist_ok=True)
        venv = [SYSTEM_PYTHON, "-m", "venv"]
        if name == TOOLS:
            command.run([*venv, str(target)], limit=LIMIT)
            pip = program(settings, TOOLS, "pip")
            arguments = ["install", "--quiet", "-r", str(pins(name))]
            command.run(
                [pip, *arguments], limit=LIMIT, log=settings.cache / "install.log"
            )
        else:
            command.run([*venv, "--without-pip", str(target)], limit=LIMIT)
            install(settings, target, ["--no-deps", "-r", str(pins(name))])
        (target / COMPLETE).touch()


def _compile(target: Path) -> None:
    """Byte code for all but tests: nothing in a lab writes any, hosts cannot even."""
    arguments = ["-m", "compileall", "-q", "-j", "0", "-x", "/tests?/", "lib"]
    # A file that is no Python of this version is not imported either.
    subprocess.run(
        [str(target / "bin" / "python"), *arguments],
        cwd=target,
        capture_output=True,
        timeout=LIMIT,
        check=False,
    )


def uv_variables(settings: Settings) -> dict[str, str]:
    """The index and certificates that pip is configured for; uv reads other files."""
    pip = program(settings, TOOLS, "pip")
    found = {}
    for line in command.run([pip, "config", "list"], limit=60).splitlines():
        name, _, value = line.partition("=")
        found[name.rpartition(".")[2]] = value.strip("'")
    variables = {
        "UV_CACHE_DIR": str(settings.cache / "uv"),
        "UV_SYSTEM_CERTS": "1",
        "UV_NO_CONFIG": "1",
    }
    if "index-url" in found:
        variables["UV_DEFAULT_INDEX"] = found["index-url"]
    if "cert" in found:
        variables["SSL_CERT_FILE"] = found["cert"]
    return {**os.environ, **variables}


def _remove_former(settings: Settings) -> None:
    current = {path(settings, name) for name in (*NAMES, LOWEST, DOCS, SCHEMAS, TOOLS)}
    for found in (settings.cache / "envs").iterdir():
        if found not in current:
            shutil.rmtree(found)


PROJECT_PARTS = (
    "LICENSE",
    "MANIFEST.in",
    "README.rst",
    "pyproject.toml",
    "samples",
    "scripts",
    "setup.py",
    "tacker_k8s_mgmt",
)
PROJECT_IGNORED = shutil.ignore_patterns(
    "__pycache__", "*.pyc", "*~", ".*", "*.egg-info"
)


def project_stamp(settings: Settings, name: str) -> Path:
    """File in an environment with the digest of the installed contents."""
    return path(settings, name) / ".project"


def project_sources(root: Path = ROOT) -> Iterator[Path]:
    """Every file that belongs to the installed project."""
    for part in PROJECT_PARTS:
        path = root / part
        if path.is_file():
            yield path
        else:
            hidden = (p for p in path.rglob("*") if p.is_file())
            yield from (p for p in hidden if not _is_by_product(p.relative_to(root)))


def project_digest(root: Path = ROOT) -> str:
    """What the project's files are, in short."""
    paths = list(project_sources(root))
    names = sorted(str(path.relative_to(root)) for path in paths)
    return files.digest(paths, *names)


def has_project(settings: Settings, name: str) -> bool:
    """Whether an environment has the project as it is now."""
    file = project_stamp(settings, name)
    return file.exists() and file.read_text() == project_digest()


def install_project(settings: Settings, report: Report, name: str) -> None:
    """Install the project into an environment unless it is installed as it is now.

    :raises LabError: it could not be built.
    """
    if has_project(settings, name):
        return
    current = project_digest()
    # Always the same place: the installer's cache goes by the path.
    copy = settings.cache / "project"
    with report.step(f"project, {name}"):
        shutil.rmtree(copy, ignore_errors=True)
        copy.mkdir()
        for part in PROJECT_PARTS:
            source = ROOT / part
            if source.is_dir():
                shutil.copytree(source, copy / part, ignore=PROJECT_IGNORED)
            else:
                shutil.copy(source, copy)
        environment = path(settings, name)
        arguments = [
            "--no-deps",
            "--no-build-isolation",
            "--force-reinstall",
            str(copy),
        ]
        install(settings, environment, arguments)
        shutil.rmtree(copy)
        project_stamp(settings, name).write_text(current)


def _is_by_product(path: Path) -> bool:
    return path.suffix == ".pyc" or any(p.startswith(".") for p in path.parts)
