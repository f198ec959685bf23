# SPDX-License-Identifier: Apache-2.0
"""gunicorn's logger, with times that can be held against those of a journal."""

import time

from gunicorn import glogging


class Logger(glogging.Logger):
    """Says when a request was answered: seconds since the epoch, with milliseconds."""

    def now(self) -> str:
        return f"{time.time():.3f}"
