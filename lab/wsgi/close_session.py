# SPDX-License-Identifier: Apache-2.0
"""Paste filter: give a request's database session back when the request ends.

Tacker's API never closes it. A session keeps one pooled connection until Python's
cyclic garbage collection happens to run, so after some dozens of requests the API would
answer 500 (QueuePool limit).
"""

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from wsgiref.types import StartResponse, WSGIApplication, WSGIEnvironment


class CloseSession:
    """The filter, around one pipeline's application."""

    def __init__(self, app: "WSGIApplication") -> None:
        self._app = app

    @classmethod
    def factory(cls, global_conf: Any, **local_conf: str) -> "type[CloseSession]":
        """What paste calls."""
        return cls

    def __call__(
        self, environ: "WSGIEnvironment", start_response: "StartResponse"
    ) -> Iterable[bytes]:
        """Hand the request on, then close what it opened."""
        try:
            return self._app(environ, start_response)
        finally:
            session = getattr(environ.get("tacker.context"), "_session", None)
            if session is not None:
                session.close()
