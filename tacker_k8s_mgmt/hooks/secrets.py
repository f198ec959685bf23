"""Secrets that a request gives by reference, found when a hook begins.

Files lie below the operator's directory on this host. Barbican is asked as the VNF's
OpenStack VIM, at the place that its catalogue names: of a secret's URL only the id
counts, so no request leads Tacker to another host.
"""

import logging
from collections.abc import Callable
from typing import Any

from keystoneauth1 import adapter, exceptions
from keystoneauth1.session import Session
from oslo_log import log
from pydantic import SecretStr

from tacker_k8s_mgmt import config
from tacker_k8s_mgmt.remote import restricted_files
from tacker_k8s_mgmt.request.secret_references import FILE, Reference, Unresolved

LOG: logging.LoggerAdapter[logging.Logger] = log.getLogger(__name__)

_AGAIN = 2  # times, where nobody answers or all are busy
_UNKNOWN = "Barbican has no such secret in what the VIM's user may see"
_FORBIDDEN = "the VIM's user may not read this secret in Barbican"
# Of the VIM's own credentials: what Keystone says to them is told by Heat as well.
_REFUSED = "Keystone or Barbican refuses the VIM's credentials"

#: Opens a session as the VNF's VIM, and tells the region or "".
Login = Callable[[], tuple[Session, str]]


class Secrets:
    """Tells what references lead to, each asked for once.

    :param login: is called when Barbican has to be asked.
    :param options: the ``[k8s_mgmt]`` group of Tacker's configuration.
    :param project_id: of the VNF instance; "" where it is not known.
    """

    def __init__(self, login: Login, options: Any, project_id: str) -> None:
        self._login = login
        self._limit = options.secret_timeout
        self._directory = config.secret_directory(options, project_id)
        self._barbican: adapter.Adapter | None = None
        self._silent = ""
        self._known: dict[Reference, SecretStr] = {}

    def __call__(self, reference: Reference) -> str:
        """The secret.

        :raises Unresolved: there is none, or none that can be read.
        """
        if reference not in self._known:
            told = (
                self._in_file(reference.target)
                if reference.kind == FILE
                else self._in_barbican(reference.secret_id)
            )
            self._known[reference] = SecretStr(told)
        return self._known[reference].get_secret_value()

    def _in_file(self, path: str) -> str:
        try:
            return restricted_files.secret(path, self._directory)
        except restricted_files.Refused as error:
            raise Unresolved(str(error)) from None

    def _in_barbican(self, secret_id: str) -> str:
        if self._silent:
            # Whoever does not answer is not waited for again for each secret.
            raise Unresolved(self._silent)
        try:
            answer = self._ask(secret_id)
        except exceptions.Unauthorized:
            self._silent = _REFUSED
        except exceptions.EndpointNotFound:
            self._silent = "the VIM's OpenStack has no Barbican in its catalogue"
        except Exception as error:
            # Whatever Tacker, the session or the token's renewal may raise.
            LOG.warning("Barbican cannot be asked: %s", error)
            self._silent = (
                "Barbican cannot be asked with the VIM's credentials: "
                f"{type(error).__name__}"
            )
        else:
            return _told(answer)
        raise Unresolved(self._silent)

    def _ask(self, secret_id: str) -> Any:
        if self._barbican is None:
            session, region = self._login()
            # Of each answer, Keystone's included.
            session.timeout = self._limit
            if session.verify is False:
                LOG.warning(
                    "Barbican is asked without verifying its certificate, so secrets "
                    "can be read on the way: Tacker's configuration turns that off "
                    "(v2 API: [v2_vnfm] heat_verify_cert)."
                )
            self._barbican = adapter.Adapter(
                session,
                service_type="key-manager",
                interface="public",
                region_name=region or None,
                version="v1",
                connect_retries=_AGAIN,
                status_code_retries=_AGAIN,
            )
        answer = None
        # The kind that a secret was stored as is the only one in which it is told.
        for kind in ("text/plain", "application/octet-stream"):
            answer = self._barbican.get(
                f"/secrets/{secret_id}/payload",
                headers={"Accept": kind},
                raise_exc=False,
                log=False,  # the session would log the secret
            )
            if answer.status_code != 406:
                break
        return answer


def _told(answer: Any) -> str:
    """The secret in an answer of Barbican.

    :raises Unresolved: there is none.
    """
    if answer.status_code != 200:
        known = {401: _REFUSED, 403: _FORBIDDEN, 404: _UNKNOWN, 406: "is no text"}
        reason = known.get(answer.status_code, f"Barbican answers {answer.status_code}")
        raise Unresolved(reason)
    if not answer.content:
        raise Unresolved("is an empty secret")
    try:
        return str(answer.content.decode())
    except UnicodeDecodeError:
        raise Unresolved("is no text in UTF-8") from None
