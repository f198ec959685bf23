"""Tacker's v2 API: the program behind the shim in the VNF package.

Tacker starts it once for every hook; see :mod:`.script`. The hooks themselves are in
:mod:`.v2_hooks`, which is imported only for VNFs that are ours.
"""

import sys

from tacker_k8s_mgmt import errors
from tacker_k8s_mgmt.hooks.call import Call
from tacker_k8s_mgmt.hooks.script import Streams, end_with_conductor


def main() -> None:
    """Do the work of one hook, and end the process."""
    streams = Streams()
    end_with_conductor()
    call: Call | None = None
    try:
        call = Call.read(streams.read())
        if not call.concerns_us:
            sys.exit()
        # Takes half a second, which VNFs that are none of ours shall not wait for.
        from tacker_k8s_mgmt.hooks import v2_hooks

        v2_hooks.perform(call, streams)
        streams.reply(call.result())
    except errors.K8sMgmtError as error:
        text = str(error)
    except Exception as error:
        # Not its text: it may quote whatever it was about.
        text = (
            f"This is a defect of tacker-k8s-mgmt or an unforeseen answer: "
            f"{type(error).__name__}. The driver's log on the conductor says more."
        )
    else:
        sys.exit()
    if call is not None:
        streams.reply(call.told())
    streams.fail(text)
    sys.exit(1)
