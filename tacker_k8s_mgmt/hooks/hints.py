"""What the operator does about wrong parameters, by the moment at which they are told.

The request of an operation cannot be corrected: one that was wrong has to be given up.
"""

from collections.abc import Iterator
from contextlib import contextmanager

from tacker_k8s_mgmt import errors

#: Before anything was made, in an operation that has a rollback.
ROLLBACK = (
    "Nothing was changed. Send `rollback` for this operation, then a corrected request."
)
#: When Heat has made VMs.
VMS_GO = (
    "Send `rollback` for this operation, which deletes the new VMs, then a corrected "
    "request."
)
#: When Heat has made VMs of the control plane, which keep all other work from going on.
PLANES_GO = (
    "Send `rollback` for this operation, which deletes the new VMs. If it is given up "
    "instead, they stay, and every later operation is refused."
)
#: When something may have changed, or the error says already that nothing has.
FAIL_ALREADY = "Send `fail` for this operation, then a corrected request."
#: Before anything was changed.
FAIL = f"Nothing was changed. {FAIL_ALREADY}"

# The request cannot be corrected in an operation; what it refers to can.
_MEND = "If the request is right, mend what it refers to and send `retry`. If not:"


@contextmanager
def told(way_out: str | None, retried: bool = True) -> Iterator[None]:
    """Have wrong parameters told with the way out at this moment.

    :param retried: whether Tacker calls the hook again at a retry.
    """
    try:
        yield
    except errors.ParamError as exc:
        exc.hint = way_out or exc.hint
        if exc.elsewhere and retried:
            exc.hint = f"{_MEND} {exc.hint}"
        raise
