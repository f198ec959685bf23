# SPDX-License-Identifier: Apache-2.0
"""What the operator sends to Tacker when a hook has failed.

Which verbs Tacker has for an operation depends on its API, the operation and the hook,
so only the hooks name them. Errors raised below the hooks say what to correct.

The request of an operation cannot be corrected: a wrong one has to be abandoned.
"""

import enum
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from tacker_k8s_mgmt import errors


class Verb(str, enum.Enum):
    """What Tacker's API has for an operation in ``FAILED_TEMP``."""

    RETRY = "retry"
    ROLLBACK = "rollback"
    FAIL = "fail"


RETRY, ROLLBACK, FAIL = Verb


@dataclass(frozen=True)
class Advice:
    """What to send when a hook has failed.

    :param verbs: those that help, in the order of the text.
    :param text: whole sentences.
    :param refused: when the same operation cannot succeed; None:
        :data:`SEND_FAIL_FIRST`.
    """

    verbs: tuple[Verb, ...]
    text: str
    refused: "Advice | None" = None

    def __call__(self, error: Exception) -> "Advice":
        """The advice after this error."""
        if not isinstance(error, errors.UnsupportedOperation):
            return self
        return SEND_FAIL_FIRST if self.refused is None else self.refused


#: Returns what to send after an error; an :class:`Advice` does that, too.
AdviceFor = Callable[[Exception], Advice]

SEND_FAIL_FIRST = Advice((FAIL,), "Send `fail` for this operation first.")
#: Before any VM exists, in an operation that has a rollback.
UNCHANGED_SEND_ROLLBACK = Advice(
    (ROLLBACK,),
    "Nothing was changed. Send `rollback` for this operation, then a corrected "
    "request.",
)
#: After Heat has created VMs.
SEND_ROLLBACK = Advice(
    (ROLLBACK,),
    "Send `rollback` for this operation, which deletes the new VMs, then a corrected "
    "request.",
)
#: After Heat has created control-plane VMs, which block all other operations.
SEND_ROLLBACK_ONLY = Advice(
    (ROLLBACK,),
    "Send `rollback` for this operation, which deletes the new VMs. If it is abandoned "
    "instead, they stay, and every later operation is refused.",
)
#: When something may have changed, or the error already says that nothing has.
SEND_FAIL = Advice((FAIL,), "Send `fail` for this operation, then a corrected request.")
#: Before any change.
UNCHANGED_SEND_FAIL = Advice((FAIL,), f"Nothing was changed. {SEND_FAIL.text}")
#: In a hook that only checks.
CHECK = Advice(
    (RETRY, FAIL),
    "Send `retry` when that is fixed, or `fail` to give the operation up.",
)
RESUME = Advice(
    (RETRY, FAIL), "`retry` continues from here; `fail` gives the operation up."
)
NO_VM_YET = Advice(
    (RETRY, ROLLBACK),
    "Send `retry` when that is fixed; or `rollback`, then a corrected request.",
)
VMS_EXIST = Advice(
    (RETRY, ROLLBACK, FAIL),
    "`retry` continues from here, `rollback` removes what there is, and after `fail` "
    "it stays until the VNF is instantiated again.",
)
_HEAL_OF_ALL = (
    "`retry` continues from here; after `fail` what there is stays until the whole VNF "
    "is healed again."
)
#: Tacker's v1 API calls only the ``_end`` hook again.
V1_HEAL_OF_ALL = Advice(
    (RETRY, FAIL),
    _HEAL_OF_ALL,
    refused=Advice(
        (FAIL,),
        "Send `fail` for this operation, and heal the whole VNF again: `retry` would "
        "have Heat replace nothing.",
    ),
)
#: The v2 API begins the whole operation again.
V2_HEAL_OF_ALL = Advice(
    (RETRY, FAIL),
    _HEAL_OF_ALL,
    refused=Advice(
        (RETRY, FAIL),
        "`retry` has Heat replace them again; after `fail` the cluster stays as it is.",
    ),
)


@contextmanager
def attached(advice: AdviceFor) -> Iterator[None]:
    """Add the advice to the hint of an error that does not have it yet."""
    try:
        yield
    except (errors.StepFailed, errors.ParamError):
        raise
    except errors.K8sMgmtError as exc:
        exc.hint = f"{exc.hint} {advice(exc).text}".lstrip()
        raise
