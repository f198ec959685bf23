# SPDX-License-Identifier: Apache-2.0
"""gunicorn's settings for Keystone, Heat and Barbican.

One worker: Keystone's cache is in memory, and two of them would not agree.
"""

import os
import sys
from typing import Any

logger_class = "access_log.Logger"
accesslog = "-"
access_log_format = '%(t)s "%(r)s" %(s)s'
worker_class = "gthread"
workers = 1
threads = int(os.environ.get("LAB_THREADS", "8"))
timeout = 300
graceful_timeout = 1
control_socket_disable = True


def post_fork(server: Any, worker: Any) -> None:
    """Give the application a command line of its own: oslo.config reads gunicorn's."""
    sys.argv = os.environ["LAB_ARGUMENTS"].split("\n")
