# SPDX-License-Identifier: Apache-2.0
"""The laboratory: a real Tacker with everything around it, on one machine.

``python3 -m lab`` starts it, looks at it and takes it away. It runs with the system's
Python and the standard library only, because it is what builds the environments that
everything else runs in.
"""

import os
import sys

if os.stat(__file__).st_uid != os.geteuid():
    # Byte code that root leaves in another user's tree cannot be removed by its owner.
    sys.dont_write_bytecode = True
    os.environ["PYTHONDONTWRITEBYTECODE"] = "1"


class LabError(Exception):
    """The lab cannot do what was asked; the text is for the user, with what to do.

    :ivar code: exit code of the command.
    """

    def __init__(self, text: str, code: int = 1) -> None:
        super().__init__(text)
        self.code = code
