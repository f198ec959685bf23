# SPDX-License-Identifier: Apache-2.0
"""Fixtures: the built `simple` package, and copies of it with something broken."""

from collections.abc import Callable, Mapping
from pathlib import Path

import pytest

from tacker_k8s_mgmt.tools.csar import archive
from tacker_k8s_mgmt.tools.csar.build import build
from tacker_k8s_mgmt.tools.csar.package_check import check

ENTRY = "Definitions/kubernetes_top.vnfd.yaml"


@pytest.fixture(scope="session")
def package(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("csar") / "simple.zip"
    build("simple", path)
    return path


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
        kept[archive.PATH] = tosca_meta or archive.render(kept, ENTRY)
        path = tmp_path / "changed.zip"
        archive.write(path, kept)
        return check(path).problems

    return problems
