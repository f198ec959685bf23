# SPDX-License-Identifier: Apache-2.0
"""What Tacker records of clusters, for the commands ``cluster``."""

import sys
import warnings
from typing import Any

from tacker_k8s_mgmt import errors


def lookup() -> Any:
    """The module that finds clusters in Tacker's database.

    :raises TackerError: Tacker is not installed here.
    """
    if not sys.warnoptions:
        # Of libraries. ``python -W`` turns them on again.
        warnings.simplefilter("ignore")
    # Imported late: Tacker is large, and the other commands run without it.
    try:
        from tacker_k8s_mgmt.hooks import lookup as found
    except ImportError as error:
        raise errors.TackerError(
            detail=f"Tacker is not installed beside this program: {error}.",
            hint="Use the tacker-k8s-mgmt of the conductor's Python environment.",
        ) from error
    return found
