# SPDX-License-Identifier: Apache-2.0
"""A headless Chromium that this program commands through a pipe: one page at a time.

The protocol is that of Chrome's developer tools: JSON messages, each ended by a zero
byte. The browser reads file descriptor 3 and writes file descriptor 4.
"""

import base64
import contextlib
import json
import os
import select
import shutil
import subprocess
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

PROGRAM = "chromium"
#: Seconds for one answer of the browser; a loaded machine starts it in ten.
LIMIT = 120.0
_OPTIONS = (
    *("--headless", "--disable-gpu", "--in-process-gpu", "--hide-scrollbars"),
    # A build may run as root, and in a container; the pages are our own.
    *("--no-sandbox", "--disable-dev-shm-usage", "--remote-debugging-pipe"),
    *("--host-resolver-rules=MAP * ~NOTFOUND", "--disable-background-networking"),
    *("--no-first-run", "--disable-extensions", "--disable-component-update"),
    # One process for all pages.
    "--disable-site-isolation-trials",
    "--disable-features=ProactivelySwapBrowsingInstance,BackForwardCache,PaintHolding",
)
#: Not sh: Debian's takes no file descriptor of two digits.
_SHELL = "bash"
_START = 'exec "$0" "$@" 3<&"$IN" 4>&"$OUT"'


class BrowserError(Exception):
    """The browser did not start, gave no answer in time, or refused a command."""


def is_installed() -> bool:
    """Whether there is a browser on this machine."""
    return shutil.which(PROGRAM) is not None


class Page:
    """The browser's only tab."""

    def __init__(self, commands: int, answers: int) -> None:
        self._commands = commands
        self._answers = answers
        self._number = 0
        self._session = ""
        self._rest = b""
        target = self.call("Target.createTarget", url="about:blank")["targetId"]
        attached = self.call("Target.attachToTarget", targetId=target, flatten=True)
        self._session = attached["sessionId"]
        self.call("Page.enable")

    def call(self, method: str, **params: Any) -> dict[str, Any]:
        """The result of a command.

        :raises BrowserError: it was refused, or there was no answer.
        """
        self._number += 1
        message = {"id": self._number, "method": method, "params": params}
        if self._session:
            message["sessionId"] = self._session
        try:
            os.write(self._commands, json.dumps(message).encode() + b"\0")
        except BrokenPipeError:
            raise BrowserError(f"{PROGRAM} has ended at {method}") from None
        while True:
            answer = self._next(method)
            if answer.get("id") == self._number:
                break
        if "error" in answer:
            raise BrowserError(f"{method}: {answer['error']['message']}")
        result: dict[str, Any] = answer["result"]
        return result

    def open(self, path: Path) -> None:
        """Show a file, completely.

        :raises BrowserError: it is not shown.
        """
        shown = self.call("Page.navigate", url=path.resolve().as_uri())
        if "errorText" in shown:
            raise BrowserError(f"{path}: {shown['errorText']}")
        while self._next("Page.navigate").get("method") != "Page.loadEventFired":
            pass

    def resize(self, width: int, height: int) -> None:
        """Make the window as large, in pixels."""
        self.call(
            "Emulation.setDeviceMetricsOverride",
            **{"width": width, "height": height},
            **{"deviceScaleFactor": 1, "mobile": False},
        )

    def prefer(self, scheme: str) -> None:
        """Have the user prefer a ``light`` or ``dark`` page."""
        feature = {"name": "prefers-color-scheme", "value": scheme}
        self.call("Emulation.setEmulatedMedia", features=[feature])

    def evaluate(self, script: str) -> Any:
        """The value of an expression of JavaScript in the page.

        :raises BrowserError: it failed.
        """
        answer = self.call(
            "Runtime.evaluate", expression=script, returnByValue=True, awaitPromise=True
        )
        if "exceptionDetails" in answer:
            raise BrowserError(json.dumps(answer["exceptionDetails"]))
        return answer["result"].get("value")

    def screenshot(self, path: Path, width: int) -> None:
        """Keep the page, from its top to its end, as a PNG."""
        height = self.evaluate("document.documentElement.scrollHeight")
        clip = {"x": 0, "y": 0, "width": width, "height": height, "scale": 1}
        shot = self.call(
            "Page.captureScreenshot",
            **{"format": "png", "optimizeForSpeed": True},
            **{"clip": clip, "captureBeyondViewport": True},
        )
        path.write_bytes(base64.b64decode(shot["data"]))

    def _next(self, method: str) -> dict[str, Any]:
        """The browser's next message."""
        deadline = time.monotonic() + LIMIT
        while b"\0" not in self._rest:
            left = max(deadline - time.monotonic(), 0)
            ready, _, _ = select.select([self._answers], [], [], left)
            part = os.read(self._answers, 1 << 20) if ready else b""
            if not part:
                why = "has ended" if ready else f"was silent for {LIMIT:.0f} s"
                raise BrowserError(f"{PROGRAM} {why} at {method}")
            self._rest += part
        message, _, self._rest = self._rest.partition(b"\0")
        decoded: dict[str, Any] = json.loads(message)
        return decoded


@contextlib.contextmanager
def started() -> Iterator[Page]:
    """A browser with an empty page, for as long as the block lasts.

    :raises BrowserError: it does not start.
    """
    reads, commands = os.pipe()
    answers, writes = os.pipe()
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as home:
        process = subprocess.Popen(
            [_SHELL, "-c", _START, PROGRAM, f"--user-data-dir={home}", *_OPTIONS],
            env={**os.environ, "HOME": home, "IN": str(reads), "OUT": str(writes)},
            pass_fds=(reads, writes),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        os.close(reads)
        os.close(writes)
        try:
            yield Page(commands, answers)
        finally:
            # Closing the pipe ends it, too, but not at once.
            process.terminate()
            with contextlib.suppress(subprocess.TimeoutExpired):
                process.wait(10)
            process.kill()
            process.wait()
            os.close(commands)
            os.close(answers)
