# SPDX-License-Identifier: Apache-2.0
"""Fixtures: the built `simple` package, and copies of it with something broken."""

import json
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest

from tacker_k8s_mgmt.tools.csar import archive
from tacker_k8s_mgmt.tools.csar.build import build
from tacker_k8s_mgmt.tools.csar.package_check import check
from tacker_k8s_mgmt.tools.csar.parts import samples
from tacker_k8s_mgmt.tools.csar.tacker_api import V1, V2, Api

ENTRY = "Definitions/kubernetes_top.vnfd.yaml"
TYPES = "Definitions/kubernetes_types.yaml"
DF = "Definitions/kubernetes_df_simple.yaml"
HOT = "BaseHOT/simple/base_hot_top.yaml"
NESTED = "BaseHOT/simple/nested/base_hot_nested_worker.yaml"


def sample(name: str, api: Api = V1) -> Any:
    """The body of a sample request."""
    return json.loads((samples(api) / "requests" / f"{name}.json").read_text())


def replaced(files: Mapping[str, bytes], *changes: tuple[str, str, str]) -> Any:
    """The files, with texts in the place of others: file, old, new."""
    made = dict(files)
    for name, old, new in changes:
        assert old in made[name].decode(), f"the sample has changed: no {old}"
        made[name] = made[name].decode().replace(old, new, 1).encode()
    return made


def packed(
    files: Mapping[str, bytes], directory: Path, tosca_meta: bytes | None = None
) -> Path:
    """A package of these files; unless TOSCA.meta is given, it has their hashes."""
    path = directory / "changed.zip"
    listed = {name: text for name, text in files.items() if name != archive.PATH}
    meta = tosca_meta or archive.render(listed, ENTRY)
    archive.write(path, {**listed, archive.PATH: meta})
    return path


class Packages(dict[tuple[str, str], Path]):
    """Packages by flavour and API, each built when it is asked for."""

    def __init__(self, root: Path) -> None:
        super().__init__()
        self._root = root

    def __missing__(self, key: tuple[str, str]) -> Path:
        flavour, name = key
        path = self._root / f"{flavour}-{name}.zip"
        self[key] = build(flavour, path, api={"v1": V1, "v2": V2}[name]).path
        return path


@pytest.fixture(scope="session")
def packages(tmp_path_factory: pytest.TempPathFactory) -> Packages:
    return Packages(tmp_path_factory.mktemp("csar"))


@pytest.fixture(scope="session")
def package(packages: Packages) -> Path:
    return packages["simple", "v1"]


@pytest.fixture(scope="session")
def parts(package: Path) -> Mapping[str, bytes]:
    """The package's files without TOSCA.meta."""
    files = archive.read(package)
    del files[archive.PATH]
    return files


@pytest.fixture
def problems_of(
    parts: Mapping[str, bytes], tmp_path: Path
) -> Callable[..., tuple[str, ...]]:
    """Return a function: the problems of a package with some files changed.

    A file that is changed to None is left out. The hashes fit unless `tosca_meta`
    gives other ones.
    """

    def problems(
        changes: Mapping[str, bytes | None], tosca_meta: bytes | None = None
    ) -> tuple[str, ...]:
        files = {**parts, **changes}
        kept = {name: text for name, text in files.items() if text is not None}
        return check(packed(kept, tmp_path, tosca_meta)).problems

    return problems
