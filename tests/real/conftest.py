# SPDX-License-Identifier: Apache-2.0
"""What the scenarios share: the real laboratory."""

import pytest

from tests.real.laboratory import RealLab, RealLabV2

__all__ = ["RealLab", "RealLabV2"]


@pytest.fixture(scope="session")
def lab(tmp_path_factory: pytest.TempPathFactory) -> RealLab:
    return RealLab(tmp_path_factory.mktemp("lab"))


@pytest.fixture(scope="session")
def lab_v2(tmp_path_factory: pytest.TempPathFactory) -> RealLabV2:
    return RealLabV2(tmp_path_factory.mktemp("lab-v2"))
