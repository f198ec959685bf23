# SPDX-License-Identifier: Apache-2.0
"""Locks, digests and directories that are certainly ours."""

import threading

import pytest

from lab import LabError, files


def test_a_directory_with_contents_is_not_claimed(tmp_path):
    (tmp_path / "letters").touch()
    with pytest.raises(LabError, match="not empty"):
        files.claim(tmp_path)


def test_a_directory_that_is_not_ours_is_not_removed(tmp_path):
    (tmp_path / "letters").touch()
    with pytest.raises(LabError, match="not removed"):
        files.remove(tmp_path)
    assert (tmp_path / "letters").exists()


def test_what_was_claimed_can_be_claimed_again_and_removed(tmp_path):
    ours = tmp_path / "deep" / "lab"
    files.claim(ours)
    (ours / "data").mkdir()
    files.claim(ours)
    files.remove(ours)
    assert not ours.exists()
    files.remove(ours)


@pytest.mark.parametrize("below", ["lab", "data/lab"])
def test_a_directory_inside_a_lab_is_not_claimed(tmp_path, below):
    outer = tmp_path / "outer"
    files.claim(outer)
    inner = outer / below
    with pytest.raises(LabError, match=f"is inside the lab {outer}"):
        files.claim(inner)
    assert not files.is_ours(inner)


@pytest.mark.parametrize(
    "change",
    [
        pytest.param(lambda d: (d / "a").write_text("2"), id="contents"),
        pytest.param(lambda d: (d / "a").rename(d / "c"), id="name"),
        pytest.param(lambda d: (d / "b").unlink(), id="number"),
    ],
)
def test_a_digest_changes_with(tmp_path, change):
    (tmp_path / "a").write_text("1")
    (tmp_path / "b").write_text("1")
    before = files.digest(tmp_path.iterdir(), "word")
    assert files.digest(reversed(list(tmp_path.iterdir())), "word") == before
    assert files.digest(tmp_path.iterdir(), "other") != before
    change(tmp_path)
    assert files.digest(tmp_path.iterdir(), "word") != before


def test_a_lock_has_one_holder_and_the_next_prints_that_it_waits(tmp_path):
    order, waits = [], threading.Event()

    def second():
        with files.locked(tmp_path / "lock", waits.set):
            order.append("second")

    with files.locked(tmp_path / "lock"):
        other = threading.Thread(target=second)
        other.start()
        assert waits.wait(10)
        order.append("first")
    other.join(10)
    assert order == ["first", "second"]


def test_a_lock_survives_that_its_holder_removes_it(tmp_path):
    path, inside = tmp_path / "lab" / "lock", []
    waits = threading.Event()

    def second():
        with files.locked(path, waits.set):
            inside.append(path.exists())

    with files.locked(path):
        other = threading.Thread(target=second)
        other.start()
        assert waits.wait(10)
        path.unlink()
        path.parent.rmdir()
    other.join(10)
    assert inside == [True]
