# SPDX-License-Identifier: Apache-2.0
"""The databases that a new lab gets."""

import pytest

from lab import LabError, seed
from lab.settings import Settings


@pytest.fixture
def lab(tmp_path):
    settings = Settings(tmp_path / "state", tmp_path / "cache")
    settings.state.mkdir()
    for part in seed.PARTS:
        directory = seed.path(settings) / part
        directory.mkdir(parents=True)
        (directory / "table").write_text("new")
    return settings


def test_a_new_lab_gets_its_own_copy(lab):
    seed.copy(lab)
    (lab.data / "mysql" / "table").write_text("used")
    assert (seed.path(lab) / "mysql" / "table").read_text() == "new"


def test_a_kept_lab_keeps_what_it_stored(lab):
    seed.copy(lab)
    (lab.data / "mysql" / "table").write_text("used")
    seed.copy(lab)
    assert (lab.data / "mysql" / "table").read_text() == "used"


def test_a_copy_that_was_cut_off_is_made_again(lab):
    seed.copy(lab)
    (lab.data / "seed").unlink()
    (lab.data / "keystone" / "rest").touch()
    seed.copy(lab)
    assert not (lab.data / "keystone" / "rest").exists()


def test_a_lab_of_another_version_is_not_used(lab, monkeypatch):
    seed.copy(lab)
    monkeypatch.setattr(seed, "PASSWORD", "another")
    with pytest.raises(LabError, match="lab down"):
        seed.copy(lab)
