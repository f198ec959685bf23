# SPDX-License-Identifier: Apache-2.0
"""How much is free where files are to lie."""

import os

import pytest

from tacker_k8s_mgmt.remote.ssh.session import Space, free


def test_a_path_that_is_not_there_has_the_space_of_what_is_above(session, tmp_path):
    found = free(session, f"{tmp_path}/not/there yet")
    there = os.statvfs(tmp_path)
    assert found is not None
    total = there.f_blocks * there.f_frsize // 2**20
    assert 0 <= found.mebibytes <= total
    assert os.path.ismount(found.place)


@pytest.mark.parametrize(
    ("told", "found"),
    [
        ("12 65536 65000 /srv", Space(12, 65000, "/srv")),
        ("12 0 0 /srv/of all", Space(12, None, "/srv/of all")),
        ("12 - - /", Space(12, None, "/")),
        ("- - - /", None),
        ("", None),
    ],
    ids=["both", "no inodes", "not counted", "pseudo", "nothing"],
)
def test_disk_space_is_read_from_df(session, sshd, tmp_path, told, found):
    sshd.program("df", f"echo Avail; echo '{told}'")
    assert free(session, str(tmp_path)) == found


def test_without_df_options_disk_space_is_unknown(session, sshd, tmp_path):
    sshd.program("df", "echo 'unrecognized option' >&2; exit 1")
    assert free(session, str(tmp_path)) is None


@pytest.mark.parametrize(
    ("space", "suffices"),
    [
        (Space(100, 500, "/"), True),
        (Space(100, None, "/"), True),
        (Space(99, 500, "/"), False),
        (Space(100, 499, "/"), False),
    ],
)
def test_megabytes_and_files_have_to_suffice(space, suffices):
    assert space.suffices(100, 500) is suffices
