# SPDX-License-Identifier: Apache-2.0
"""Tacker's database and registries in long-running hooks.

Tacker's v1 API gives a hook the context of the request. Its database session begins a
transaction with the first query and keeps the connection until the transaction ends,
so through a whole playbook; a database that restarts meanwhile, or a proxy that closes
idle connections, breaks it ("Lost connection"). oslo.db tests a pooled connection
before its next use, and replaces a broken one.
"""

import threading
from collections.abc import Callable
from concurrent.futures import Future
from concurrent.futures import TimeoutError as FutureTimeout
from typing import Any, TypeVar

from oslo_db import api
from oslo_db import exception as db_exception
from tacker import context as tacker_context

from tacker_k8s_mgmt import errors

T = TypeVar("T")

_RETRIES = 4  # with growing pauses 15 seconds, enough for a restart
# Tacker repeats nothing itself. A database ends one of two transactions that wait for
# each other, and rolls it back.
_repeated = api.wrap_db_retry(
    max_retries=_RETRIES, retry_on_disconnect=True, retry_on_deadlock=True
)


def release(context: Any) -> None:
    """End the transaction of a request's session, if it is in one.

    Tacker uses it again after the hook.
    """
    session = getattr(context, "_session", None)
    if session is None:
        return
    try:
        session.commit()
    except db_exception.DBConnectionError:
        session.rollback()


def ask(context: Any, question: Callable[[Any], T], limit: float | None = None) -> T:
    """Ask Tacker with a database session of its own.

    :param context: of the request; *question* gets another one for the same user.
    :param question: is repeated when the connection is lost, or after a deadlock.
    :param limit: seconds for an answer, where more than the database is asked; beyond
        it, the call continues in its thread and its answer is dropped.
    :raises TackerError: there is no answer within the limit.
    """

    def once() -> T:
        own = tacker_context.Context.from_dict(context.to_dict())
        try:
            return question(own)
        finally:
            if own._session is not None:
                own._session.close()

    repeated: Callable[[], T] = _repeated(once)
    return repeated() if limit is None else _within(limit, repeated)


def save(vnf_instance: Any) -> None:
    """Store what was changed in an object of Tacker's, in a transaction of its own.

    It is repeated as the questions of :func:`ask` are. A failed try has changed neither
    the database nor what the object takes for changed.
    """
    _repeated(vnf_instance.save)()


def _within(limit: float, work: Callable[[], T]) -> T:
    """Do *work* in a thread, and wait for it no longer than *limit*."""
    outcome: Future[T] = Future()

    def run() -> None:
        try:
            outcome.set_result(work())
        except BaseException as error:
            outcome.set_exception(error)

    threading.Thread(target=run, daemon=True).start()
    try:
        return outcome.result(limit)
    except FutureTimeout:
        if outcome.done():
            raise
    raise errors.TackerError(detail=f"There is no answer after {limit:.0f} s.")
