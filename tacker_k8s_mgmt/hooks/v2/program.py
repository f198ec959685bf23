"""Tacker's v2 API: the program behind the shim in the VNF package.

Tacker starts it once for every hook; see :mod:`.process`. The hooks themselves are in
:mod:`.driver`, which is imported only for VNFs that are clusters.
"""

import gc
import logging
import sys
import traceback
from types import ModuleType

from tacker_k8s_mgmt import errors
from tacker_k8s_mgmt.hooks.v2.process import Streams, end_with_conductor
from tacker_k8s_mgmt.hooks.v2.request import Call
from tacker_k8s_mgmt.model import redaction

LOG = logging.getLogger(__name__)


def _hooks() -> ModuleType:
    """The hooks, whose import takes half a second."""
    # An import creates no garbage, and the collector would take as long as the import.
    gc.disable()
    from tacker_k8s_mgmt.hooks.v2 import driver

    gc.freeze()
    gc.enable()
    return driver


def main() -> None:
    """Run one hook, and end the process."""
    streams = Streams()
    end_with_conductor()
    call: Call | None = None
    trace = ""
    try:
        call = Call.read(streams.read())
        if call.concerns_us:
            _hooks().perform(call, streams)
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
        LOG.error("%s failed: %s %s", call.operation, text, redact(trace))
        streams.reply(call.failure())
    streams.fail(text)
    sys.exit(1)
