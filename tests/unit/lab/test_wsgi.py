# SPDX-License-Identifier: Apache-2.0
"""What the lab puts into OpenStack's own processes."""

import importlib.util
import sys

import pytest

from lab.services.config import WSGI


class Session:
    closed = False

    def close(self):
        self.closed = True


class Context:
    def __init__(self, session):
        self._session = session


def load(name):
    spec = importlib.util.spec_from_file_location(name, WSGI / f"{name}.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.mark.parametrize("fails", [False, True], ids=["answered", "failed"])
def test_the_session_of_a_request_is_closed(fails):
    session = Session()

    def app(environ, start_response):
        # The context comes with the request, further in.
        environ["tacker.context"] = Context(session)
        if fails:
            raise OSError("gone")
        return ["answer"]

    close_session = load("close_session").CloseSession.factory({})(app)
    if fails:
        with pytest.raises(OSError, match="gone"):
            close_session({}, None)
    else:
        assert close_session({}, None) == ["answer"]
    assert session.closed


@pytest.mark.parametrize(
    "environ",
    [{}, {"tacker.context": object()}, {"tacker.context": Context(None)}],
    ids=["no context", "no session attribute", "no session"],
)
def test_a_request_without_a_session_passes(environ):
    app = load("close_session").CloseSession.factory({})(lambda *_: ["answer"])
    assert app(environ, None) == ["answer"]


def test_an_application_does_not_see_the_command_line_of_gunicorn(monkeypatch):
    monkeypatch.setenv("LAB_ARGUMENTS", "heat-api\n--config-file\n/x/heat.conf")
    monkeypatch.setattr("sys.argv", ["gunicorn", "-b", "127.0.0.1:1"])
    load("gunicorn_conf").post_fork(None, None)
    assert sys.argv == ["heat-api", "--config-file", "/x/heat.conf"]
