"""Paste filter: give a request's database session back when the request ends.

Tacker's API never closes it. A session keeps one pooled connection until Python's
cyclic garbage collection happens to run, so after some dozens of requests the API would
answer 500 (QueuePool limit).
"""


class CloseSession:
    """The filter, around one pipeline's application."""

    def __init__(self, app):
        self._app = app

    @classmethod
    def factory(cls, global_conf, **local_conf):
        """What paste calls."""
        return cls

    def __call__(self, environ, start_response):
        """Hand the request on, then close what it opened."""
        try:
            return self._app(environ, start_response)
        finally:
            session = getattr(environ.get("tacker.context"), "_session", None)
            if session is not None:
                session.close()
