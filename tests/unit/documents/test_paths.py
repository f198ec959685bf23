# SPDX-License-Identifier: Apache-2.0
"""Pages name no file of this project that is not there."""

import re

import pytest

from tests import tree

_PATH = re.compile(r"``([\w.]+(?:/[\w.]+)*\.py)(?:::\w+)*``")
# First parts of paths in other projects and in VNF packages.
_OTHERS = (
    *("tacker/", "sol_refactored/", "playbooks/", "roles/", "heat/"),
    *("Scripts/", "../Scripts/", "UserData/"),
)
PAGES = [
    name
    for name in tree.files()
    if name.endswith(".rst") and not name.startswith("releasenotes/")
]
_BELOW = ("", "tacker_k8s_mgmt/", "tests/", "doc/source/")


def missing(text: str) -> set[str]:
    """Paths with a directory that are neither ours nor known to be another's."""
    paths = {match[1] for match in _PATH.finditer(text) if "/" in match[1]}
    return {
        path
        for path in paths
        if not path.startswith(_OTHERS)
        and not any((tree.ROOT / below / path).exists() for below in _BELOW)
    }


@pytest.mark.parametrize("page", PAGES)
def test_every_file_that_a_page_names_is_there(page: str) -> None:
    assert not missing((tree.ROOT / page).read_text())


def test_a_file_that_is_not_there_is_noticed() -> None:
    assert missing("see ``operations/no_such.py`` and ``operations/heal.py``") == {
        "operations/no_such.py"
    }
    assert not missing("``tests/mutation.py``, ``Scripts/x.py`` and ``errors.py``")
