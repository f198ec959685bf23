# SPDX-License-Identifier: Apache-2.0
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tacker_k8s_mgmt.kubespray.strategies import MITOGEN
from tests.unit.prepare.sandbox import ANSIBLES, Sandbox, make_origin, make_wheel


@pytest.fixture(scope="session")
def sources(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A repository of kubespray and a directory of wheels."""
    directory = tmp_path_factory.mktemp("sources")
    for name in ("origin", "wheels"):
        (directory / name).mkdir()
    make_origin(directory / "origin")
    for version, core in ANSIBLES.items():
        make_wheel(directory / "wheels", version, core)
    make_wheel(directory / "wheels", max(MITOGEN), "", name="mitogen")
    return directory


@pytest.fixture(scope="session")
def skeleton(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A virtual environment with pip alone, to which a link leads: copies are small."""
    path = tmp_path_factory.mktemp("skeleton")
    subprocess.run([sys.executable, "-m", "venv", str(path)], check=True)
    (pip,) = path.glob("lib/python*/site-packages/pip")
    pip.symlink_to(pip.rename(tmp_path_factory.mktemp("pip") / "pip"))
    return path


@pytest.fixture(scope="session")
def first(tmp_path_factory: pytest.TempPathFactory, sources: Path) -> list[str]:
    """What the first call said, and where."""
    directory = tmp_path_factory.mktemp("prepared")
    said = Sandbox(directory, sources).do()
    return [str(directory), *said]


@pytest.fixture
def fresh(tmp_path: Path, sources: Path, skeleton: Path) -> Sandbox:
    """A server on which nothing was done yet."""
    return Sandbox(tmp_path, sources, skeleton)


@pytest.fixture
def prepared(
    first: list[str], tmp_path: Path, sources: Path, skeleton: Path
) -> Sandbox:
    """A server that was prepared, which is a copy; its programs are the original's."""
    opt = Path(first[0]) / "opt"
    but_pip = shutil.ignore_patterns("pip", "setuptools")
    shutil.copytree(opt, tmp_path / "opt", symlinks=True, ignore=but_pip)
    for pip in opt.glob("kubespray-venv-*/lib/python*/site-packages/pip"):
        (tmp_path / "opt" / pip.relative_to(opt)).symlink_to(pip)
    return Sandbox(tmp_path, sources, skeleton)
