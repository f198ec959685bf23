# SPDX-License-Identifier: Apache-2.0
"""What Python imports first in the laboratory's services."""

import subprocess
import sys

from lab.services.config import WSGI
from lab.settings import SYSTEM_PYTHON

LOADER = "import yaml; print(yaml.SafeLoader.__name__, yaml.safe_load('a: [1]'))"


def said(program, line):
    done = subprocess.run(
        [program, "-c", line],
        env={"PYTHONPATH": str(WSGI)},
        capture_output=True,
        text=True,
        timeout=60,
        check=True,
    )
    return done.stdout + done.stderr


def test_services_parse_yaml_in_c():
    assert said(sys.executable, LOADER) == "CSafeLoader {'a': [1]}\n"


def test_system_python_starts_without_yaml():
    assert said(SYSTEM_PYTHON, "") == ""
