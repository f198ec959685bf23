# SPDX-License-Identifier: Apache-2.0
"""Barbican's web application with the paste file of its package.

The one that Barbican brings reads its paste file from /etc only.
"""

import sys
from pathlib import Path

from paste import deploy

PASTE = Path(sys.prefix) / "etc" / "barbican" / "barbican-api-paste.ini"

application = deploy.loadapp(f"config:{PASTE}", name="main")
