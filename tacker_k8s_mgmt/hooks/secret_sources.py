# SPDX-License-Identifier: Apache-2.0
"""Secrets that a request gives by reference, resolved when a hook begins.

Files are below the operator's directory on this host. Barbican is asked as the VNF's
OpenStack VIM, at the endpoint of its catalogue: of a secret's URL only the id counts,
so no request can direct Tacker to another host.
"""

import functools
from collections.abc import Callable
from typing import Any

from keystoneauth1 import adapter, exceptions
from keystoneauth1.session import Session
from oslo_log import log as logging
from pydantic import SecretStr

from tacker_k8s_mgmt import config
from tacker_k8s_mgmt.remote import local_files
from tacker_k8s_mgmt.request.secrets import FILE, Reference, Unresolved

LOG = logging.getLogger(__name__)

_RETRIES = 2  # without an answer, or when all servers are busy
# Of the VIM's own credentials: Heat reports Keystone's answer to them as well.
_REFUSED = "Keystone or Barbican refuses the VIM's credentials"
_ANSWERS = {
    401: _REFUSED,
    403: "the VIM's user may not read this secret in Barbican",
    404: "Barbican has no such secret in what the VIM's user may see",
    406: "is no text",
}

#: Opens a session as the VNF's VIM, and returns it with the region or "".
Login = Callable[[], tuple[Session, str]]


class Secrets:
    """Resolves references, each once.

    :param login: is called when Barbican has to be asked.
    :param options: the ``[k8s_mgmt]`` group of Tacker's configuration.
    :param project_id: of the VNF instance; "" if unknown.
    """

    def __init__(self, login: Login, options: Any, project_id: str) -> None:
        self._login = login
        self._limit = options.secret_timeout
        self._directory = config.project_directory(options.secret_directory, project_id)
        self._failure = ""
        self._known: dict[Reference, SecretStr] = {}

    def __call__(self, reference: Reference) -> str:
        """The secret.

        :raises Unresolved: it does not exist, or cannot be read.
        """
        if reference not in self._known:
            secret = (
                self._in_file(reference.target)
                if reference.kind == FILE
                else self._in_barbican(reference.secret_id)
            )
            self._known[reference] = SecretStr(secret)
        return self._known[reference].get_secret_value()

    def _in_file(self, path: str) -> str:
        try:
            return local_files.secret(path, self._directory)
        except local_files.FileNotAllowed as error:
            raise Unresolved(str(error)) from None

    def _in_barbican(self, secret_id: str) -> str:
        # Once it has failed, do not wait for it again for each secret.
        if not self._failure:
            try:
                return _text(self._ask(secret_id))
            except Unresolved:
                raise
            except exceptions.Unauthorized:
                self._failure = _REFUSED
            except exceptions.EndpointNotFound:
                self._failure = "the VIM's OpenStack has no Barbican in its catalogue"
            except Exception as error:
                # Tacker, the session and the renewal of tokens raise many kinds.
                LOG.warning("Barbican cannot be asked: %s", error)
                self._failure = (
                    "Barbican cannot be asked with the VIM's credentials: "
                    f"{type(error).__name__}"
                )
        raise Unresolved(self._failure)

    @functools.cached_property
    def _barbican(self) -> adapter.Adapter:
        session, region = self._login()
        # For each answer, including Keystone's.
        session.timeout = self._limit
        if session.verify is False:
            LOG.warning(
                "Barbican is asked without verifying its certificate, so secrets "
                "can be read on the way: Tacker's configuration turns that off "
                "(v2 API: [v2_vnfm] heat_verify_cert)."
            )
        return adapter.Adapter(
            session,
            service_type="key-manager",
            interface="public",
            region_name=region or None,
            version="v1",
            connect_retries=_RETRIES,
            status_code_retries=_RETRIES,
        )

    def _ask(self, secret_id: str) -> Any:
        answer = None
        # Barbican returns a secret only as the type that it was stored with.
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


def _text(answer: Any) -> str:
    """The secret in an answer of Barbican."""
    status = answer.status_code
    if status != 200:
        raise Unresolved(_ANSWERS.get(status, f"Barbican answers {status}"))
    if not answer.content:
        raise Unresolved("is an empty secret")
    try:
        return str(answer.content.decode())
    except UnicodeDecodeError:
        raise Unresolved("is no text in UTF-8") from None
