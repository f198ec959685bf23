# SPDX-License-Identifier: Apache-2.0
"""What the operator sends to Tacker when a hook has failed.

Which verbs Tacker has for an operation depends on its API, the operation and the hook,
so only the hooks name them. Errors raised below the hooks say what to correct.

The request of an operation cannot be corrected: a wrong one has to be given up.
"""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from tacker_k8s_mgmt import errors

#: Before any VM exists, in an operation that has a rollback.
UNCHANGED_SEND_ROLLBACK = (
    "Nothing was changed. Send `rollback` for this operation, then a corrected request."
)
#: After Heat has created VMs.
SEND_ROLLBACK = (
    "Send `rollback` for this operation, which deletes the new VMs, then a corrected "
    "request."
)
#: After Heat has created control-plane VMs, which block all other operations.
SEND_ROLLBACK_ONLY = (
    "Send `rollback` for this operation, which deletes the new VMs. If it is given up "
    "instead, they stay, and every later operation is refused."
)
#: When something may have changed, or the error already says that nothing has.
SEND_FAIL = "Send `fail` for this operation, then a corrected request."
#: Before any change.
UNCHANGED_SEND_FAIL = f"Nothing was changed. {SEND_FAIL}"


@dataclass(frozen=True)
class Advice:
    """What to send when a step of a hook has failed.

    :param failed: when the same operation may still succeed.
    :param refused: when it cannot, and another one may.
    """

    failed: str
    refused: str = "Send `fail` for this operation first."

    def __call__(self, error: Exception) -> str:
        """The advice after this error."""
        unsupported = isinstance(error, errors.UnsupportedOperation)
        return self.refused if unsupported else self.failed


#: In a hook that only checks.
CHECK = Advice("Send `retry` when that is mended, or `fail` to give the operation up.")
RESUME = Advice("`retry` goes on from here; `fail` gives the operation up.")
NO_VM_YET = Advice(
    "Send `retry` when that is mended; or `rollback`, then a corrected request."
)
VMS_EXIST = Advice(
    "`retry` goes on from here, `rollback` removes what there is, and after `fail` it "
    "stays until the VNF is instantiated again."
)
_HEAL_OF_ALL = (
    "`retry` goes on from here; after `fail` what there is stays until the whole VNF "
    "is healed again."
)
#: Tacker's v1 API calls only the ``_end`` hook again.
V1_HEAL_OF_ALL = Advice(
    _HEAL_OF_ALL,
    refused="Send `fail` for this operation, and heal the whole VNF again: `retry` "
    "would have Heat replace nothing.",
)
#: The v2 API begins the whole operation again.
V2_HEAL_OF_ALL = Advice(
    _HEAL_OF_ALL,
    refused="`retry` has Heat replace them again; after `fail` the cluster stays as it "
    "is.",
)


@contextmanager
def attached(advice: Callable[[Exception], str]) -> Iterator[None]:
    """Add the advice to the hint of an error that does not have it yet."""
    try:
        yield
    except (errors.StepFailed, errors.ParamError):
        raise
    except errors.K8sMgmtError as exc:
        exc.hint = f"{exc.hint} {advice(exc)}".lstrip()
        raise
