# SPDX-License-Identifier: Apache-2.0
"""Which files have to name their licence, and whether they do."""

from pathlib import Path

MARK = "SPDX-License-Identifier: Apache-2.0"
#: Tacker compares these with the copies in VNF packages: not a byte of them changes.
FROZEN = frozenset(
    f"tacker_k8s_mgmt/{name}.py"
    for name in (
        *("kubespray_mgmt", "kubespray_mgmt_v2"),
        *("cnf_exposure_mgmt", "cnf_exposure_mgmt_v2"),
    )
)
_SUFFIXES = frozenset((".py", ".sh", ".c", ".go", ".css"))
_NAMES = frozenset(("Makefile", "Containerfile", "settings"))


def is_missing(path: Path, name: str) -> bool:
    """Whether a source file does not name the licence in its first two lines.

    :param name: the path relative to the project's root.
    """
    if name in FROZEN:
        return False
    with path.open("rb") as file:
        head = [file.readline(200), file.readline(200)]
    is_source = path.suffix in _SUFFIXES or path.name in _NAMES
    # Empty files have nothing to license.
    if not head[0] or not (is_source or head[0].startswith(b"#!")):
        return False
    return MARK.encode() not in b"".join(head)
