# SPDX-License-Identifier: Apache-2.0
"""The project's own code as trees, for tests that look through all of it."""

import ast
import functools
from pathlib import Path

from tacker_k8s_mgmt.model import untrusted


@functools.cache
def module(path: Path) -> ast.Module:
    """A module as a tree, which is read and not changed."""
    found = untrusted.parse_python(path.read_text())
    assert found, path
    return found
