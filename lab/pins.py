# SPDX-License-Identifier: Apache-2.0
"""``python3 -m lab pins``: choose the versions of the environments again.

What an environment is to have is in ``NAME.in`` beside its pins, ``NAME.txt``; what the
project needs itself is in pyproject.toml. uv resolves both for the system's Python and
every later one. The comment at the head of a file is its author's and stays.
"""

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from types import MappingProxyType

from lab import LabError, command, environments
from lab.report import Report
from lab.settings import ROOT, SYSTEM_PYTHON, Settings

UPPER = "upper-constraints"
#: Installed beside Tacker in one environment, in versions of OpenStack's list.
BOUNDED = (environments.TACKER, environments.TESTS)
LIMIT = 600
_PROJECT = (str(ROOT / "pyproject.toml"), "--extra", "csar")
#: What uv is given besides NAME.in. In this order: the later ones read the former.
_WORDS: Mapping[str, Sequence[str]] = MappingProxyType(
    {
        "openstack": (),
        environments.SCHEMAS: ("--no-deps",),
        environments.TACKER: _PROJECT,
        environments.TESTS: (),
        "ansible": (),
        environments.DOCS: _PROJECT,
        environments.LOWEST: (*_PROJECT, "--resolution", "lowest-direct"),
    }
)
NAMES = tuple(_WORDS)


def versions(path: Path) -> dict[str, str]:
    """The packages that a file pins, by normalized name, with their versions."""
    found = re.findall(r"^([\w.-]+)={2,3}([^\s;]+)", path.read_text(), re.MULTILINE)
    return {normalized(name): version for name, version in found}


def normalized(name: str) -> str:
    """A package's name as indexes compare it."""
    return re.sub(r"[-_.]+", "-", name).lower()


def renew(
    settings: Settings, report: Report, names: Sequence[str], upper: Path | None = None
) -> None:
    """Resolve environments and write their pins.

    :param names: of :data:`NAMES`.
    :param upper: OpenStack's whole list; without it, the part of it that is kept here
        binds, which leaves packages free that are new to an environment.
    :raises LabError: there is no such list, or the requirements contradict each other.
    """
    if upper and not upper.is_file():
        raise LabError(f"there is no file {upper}", 2)
    environments.prepare_tools(settings, report)
    for name in _WORDS:
        if name in names:
            with report.step(f"pins of {name}"):
                _write(environments.pins(name), _resolved(settings, name, upper))
    if upper:
        whole = versions(upper)
        used = {name for each in BOUNDED for name in versions(environments.pins(each))}
        kept = sorted(used & whole.keys())
        _write(environments.pins(UPPER), (f"{name}=={whole[name]}" for name in kept))


def _resolved(settings: Settings, name: str, upper: Path | None) -> Iterator[str]:
    """The lines of an environment's pins."""
    arguments = [str(environments.pins(name).with_suffix(".in")), *_WORDS[name]]
    if name in BOUNDED:
        arguments += ["--constraints", str(upper or environments.pins(UPPER))]
    beside: set[str] = set()
    if name == environments.TESTS:
        tacker = environments.pins(environments.TACKER)
        arguments += ["--constraints", str(tacker)]
        beside = set(versions(tacker))
    uv = environments.program(settings, environments.TOOLS, "uv")
    options = ["--quiet", "--universal", "--no-annotate", "--no-header"]
    argv = [uv, "pip", "compile", *options, "--python", SYSTEM_PYTHON, *arguments]
    env = environments.uv_variables(settings)
    for line in command.run(argv, limit=LIMIT, env=env).splitlines():
        package, _, marker = line.partition(" ; ")
        if package.partition("==")[0] in beside or "== 'win32'" in marker:
            continue
        # Every lab is on Linux and CPython; only their versions differ.
        yield line if "python_full_version" in marker else package


def _write(path: Path, lines: Iterable[str]) -> None:
    head = [old for old in path.read_text().splitlines() if old.startswith("#")]
    path.write_text("\n".join([*head, *lines, ""]))
