# SPDX-License-Identifier: Apache-2.0
"""``python -m tacker_k8s_mgmt.tools.cli``: the same without the console script."""

import sys

from tacker_k8s_mgmt.tools.cli import main

if __name__ == "__main__":
    sys.exit(main())
