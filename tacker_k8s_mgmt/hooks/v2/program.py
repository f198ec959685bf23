# SPDX-License-Identifier: Apache-2.0
"""The program behind the shims in packages, which Tacker's v2 API starts for each hook.

Tacker (``sol_refactored/conductor/vnflcm_driver_v2.py``) writes a pickle to standard
input, reads one from standard output, and shows all of standard error to the user when
the exit code is not 0. A line that a library prints would corrupt either, so both are
set aside at the start, and everything written to them, also by child processes, goes to
the driver's log.

The hooks themselves are in :mod:`.driver`, which is imported only for VNFs that are
clusters.
"""

import ctypes
import gc
import importlib
import logging
import os
import pickle
import signal
import sys
import traceback
from collections.abc import Callable, Mapping
from types import ModuleType
from typing import Any

from tacker_k8s_mgmt import errors
from tacker_k8s_mgmt.hooks.v2.call import HookCall
from tacker_k8s_mgmt.text import Redactor, forbid, in_variables, printable

_OUT, _ERR = 1, 2
_PR_SET_PDEATHSIG = 1
_ENDED = 128 + signal.SIGTERM
_STOPPED = (
    "tacker-conductor was stopped. Start it: `retry` continues from where the work was."
)


class Streams:
    """The standard streams of this process, as Tacker uses them."""

    def __init__(self) -> None:
        self._out, self._err = os.dup(_OUT), os.dup(_ERR)
        self._point_to(os.open(os.devnull, os.O_WRONLY))

    def read(self) -> dict[str, Any]:
        """What Tacker passes to the hook."""
        # Written by Tacker's conductor, which started this process.
        return dict(pickle.load(sys.stdin.buffer))  # noqa: S301

    def divert(self, path: str) -> None:
        """Append everything that is printed to a file, which is created if missing."""
        os.makedirs(os.path.dirname(path), mode=0o700, exist_ok=True)
        flags = os.O_WRONLY | os.O_APPEND | os.O_CREAT
        self._point_to(os.open(path, flags, 0o600))

    def reply(self, output: Mapping[str, Any]) -> None:
        """Return the result to Tacker."""
        with open(self._out, "wb") as stream:
            stream.write(pickle.dumps(dict(output)))

    def fail(self, text: str) -> None:
        """Return an error: in one line, since Tacker shows a line feed as ``\\n``."""
        with open(self._err, "wb") as stream:
            stream.write(" ".join(text.split()).encode())

    @staticmethod
    def _point_to(target: int) -> None:
        sys.stdout.flush()
        sys.stderr.flush()
        os.dup2(target, _OUT)
        os.dup2(target, _ERR)
        os.close(target)


def end_with_conductor(streams: Streams) -> None:
    """Have the kernel end this process when the conductor that started it has gone.

    Its result would be lost, and its lock on the cluster would block the retry, which
    resumes its work: a playbook run outlives both.
    """
    conductor = os.getppid()

    def end(*_: object) -> None:
        try:
            # A conductor that is stopped gently still shows it.
            streams.fail(_STOPPED)
        finally:
            # Not an exception, after which the hook would undo its work.
            os._exit(_ENDED)

    signal.signal(signal.SIGTERM, end)
    ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGTERM)
    if os.getppid() != conductor:
        sys.exit("The conductor has gone.")


LOG = logging.getLogger(__name__)


def _hooks(name: str) -> ModuleType:
    """The module of the hooks, whose import takes half a second."""
    # An import creates no garbage, and the collector would take as long as the import.
    gc.disable()
    driver = importlib.import_module(name)
    gc.freeze()
    gc.enable()
    return driver


def main() -> None:
    """Run one hook of a cluster, and end the process."""
    run("tacker_k8s_mgmt.hooks.v2.driver", lambda call: call.concerns_us)


def main_of_cnf() -> None:
    """Run one hook of a CNF, and end the process."""
    run("tacker_k8s_mgmt.hooks.cnf.v2", lambda call: True)


def run(driver: str, concerns: Callable[[HookCall], bool]) -> None:
    """Run one hook, and end the process.

    :param driver: name of the module with the hooks.
    :param concerns: whether they have anything to do with this VNF.
    """
    streams = Streams()
    end_with_conductor(streams)
    forbid()
    call: HookCall | None = None
    trace = ""
    try:
        call = HookCall.read(streams.read())
        if concerns(call):
            _hooks(driver).perform(call, streams)
            streams.reply(call.result())
        sys.exit()
    except errors.K8sMgmtError as error:
        text = str(error)
    except Exception as error:
        # Not its text: it may quote a secret.
        text = (
            f"This is a defect of tacker-k8s-mgmt or an unforeseen answer: "
            f"{type(error).__name__}. The driver's log on the conductor says more."
        )
        trace = traceback.format_exc()
    # Not above: oslo.log adds the text of the exception being handled.
    if call is not None:
        secrets = in_variables([call.additional_params, call.instance])
        redact = Redactor(secrets)
        LOG.error("%s failed: %s %s", call.operation, text, printable(redact(trace)))
        streams.reply(call.failure())
    streams.fail(text)
    sys.exit(1)
