# SPDX-License-Identifier: Apache-2.0
"""No process of the driver's own leaves its memory in a file."""

import subprocess
import sys

import pytest

ALLOW = """
import resource
hard = resource.getrlimit(resource.RLIMIT_CORE)[1]
resource.setrlimit(resource.RLIMIT_CORE, (hard, hard))
"""
SHOW = "print('soft limit', resource.getrlimit(resource.RLIMIT_CORE)[0])"
COMMAND = f"""
from tacker_k8s_mgmt.tools.cli import main
try:
    main(["--version"])
except SystemExit:
    pass
{SHOW}
"""
# The hook ends before it reads anything.
HOOK = f"""
from tacker_k8s_mgmt.hooks.v2 import program

class Streams:
    def read(self):
        {SHOW}
        raise SystemExit

program.Streams = Streams
program.main()
"""


@pytest.mark.parametrize("code", [COMMAND, HOOK], ids=["command", "v2 hook"])
def test_memory_with_secrets_is_in_no_file(code):
    done = subprocess.run(
        [sys.executable, "-c", ALLOW + code],
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert "soft limit 0" in done.stdout, done.stderr
