# SPDX-License-Identifier: Apache-2.0
"""Core dumps of this process, whose memory has passwords and keys."""

import resource


def forbid() -> None:
    """Have neither this process nor those that it starts leave a core dump."""
    _, hard = resource.getrlimit(resource.RLIMIT_CORE)
    resource.setrlimit(resource.RLIMIT_CORE, (0, hard))
