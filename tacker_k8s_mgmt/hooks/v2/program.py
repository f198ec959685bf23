# SPDX-License-Identifier: Apache-2.0
"""Tacker's v2 API: the program behind the shim in the VNF package.

Tacker starts it once for every hook; see :mod:`.process`. The hooks themselves are in
:mod:`.driver`, which is imported only for VNFs that are clusters.
"""

import gc
import importlib
import logging
import sys
import traceback
from collections.abc import Callable
from types import ModuleType

from tacker_k8s_mgmt import errors
from tacker_k8s_mgmt.hooks.v2.process import Streams, end_with_conductor
from tacker_k8s_mgmt.hooks.v2.request import Call
from tacker_k8s_mgmt.model import core_dumps, redaction
from tacker_k8s_mgmt.plain_text import printable

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


def run(driver: str, concerns: Callable[[Call], bool]) -> None:
    """Run one hook, and end the process.

    :param driver: name of the module with the hooks.
    :param concerns: whether they have anything to do with this VNF.
    """
    streams = Streams()
    end_with_conductor(streams)
    core_dumps.forbid()
    call: Call | None = None
    trace = ""
    try:
        call = Call.read(streams.read())
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
        secrets = redaction.in_variables([call.additional_params, call.instance])
        redact = redaction.Redactor(secrets)
        LOG.error("%s failed: %s %s", call.operation, text, printable(redact(trace)))
        streams.reply(call.failure())
    streams.fail(text)
    sys.exit(1)
