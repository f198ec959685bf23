# SPDX-License-Identifier: Apache-2.0
"""``kubectl`` on a control-plane node.

That node has the administrator's credentials and can reach an API server. Its
``admin.conf`` names the load balancer, if there is one, which may be the VM to heal; so
``--server`` names the node's own API server. Only the exit code decides about success:
warnings on standard error are ignored, and a failure never means "not found".
"""

import json
import logging
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any, TypeVar

from tacker_k8s_mgmt import errors
from tacker_k8s_mgmt.kubespray.inventory import ADMIN_CONFIG
from tacker_k8s_mgmt.model import untrusted
from tacker_k8s_mgmt.remote.ssh.session import Session
from tacker_k8s_mgmt.remote.timing import Backoff

LOG = logging.getLogger(__name__)

# Seconds for one request; an API server without etcd takes 20 s to fail.
_REQUEST_LIMIT = 40
_COMMAND_LIMIT = 180.0  # seconds for kubectl, which may send several requests
_OPTIONS = ("--kubeconfig", ADMIN_CONFIG, f"--request-timeout={_REQUEST_LIMIT}s")
# Errors of Go's crypto/x509 about a certificate for other names or addresses.
_OTHER_NAMES = ("x509: certificate is ", "x509: cannot validate certificate for ")
# Errors while an API server restarts: for up to 34 s it does not listen, and then it is
# not ready for about a second, in which it does not know the administrator's roles.
_RESTARTING = (
    "The connection to the server ",
    "Unable to connect to the server: net/http: TLS handshake timeout",
    'User "kubernetes-admin" cannot ',
    "Error from server (InternalError)",
    "Error from server (ServiceUnavailable)",
    "etcdserver: ",
)

# What tells the objects of a list apart.
_NAME = ".metadata.name"
_IDENTITY = (".apiVersion", ".kind", ".metadata.namespace", _NAME)
_SEVERAL = frozenset("*?")  # in paths with any number of results
_MAY_BE_NONE = "--ignore-not-found"

Answer = TypeVar("Answer")
#: What reading an answer raises that has another form than it should.
NOT_UNDERSTOOD = (
    *(LookupError, TypeError, ValueError, AttributeError),
    *(ArithmeticError, RecursionError),
)


class KubeClient:
    """kubectl behind one session, whose user may use sudo; thread-safe.

    Each method raises ``RemoteError`` if kubectl fails or the node cannot be reached;
    those with ``read`` raise ``ClusterError`` if the answer cannot be parsed.

    :param server: URL of an API server; None for the one in ``admin.conf``.
    :param patience: seconds for the restart of an API server.
    """

    def __init__(
        self, session: Session, server: str | None = None, patience: float = 0
    ) -> None:
        self._session = session
        self._patience = patience
        self._options = (*_OPTIONS, *(("--server", server) if server else ()))

    @property
    def host(self) -> str:
        """The control-plane node's address."""
        return self._session.host

    def run(
        self,
        *args: str,
        stdin: str | None = None,
        limit: float = _COMMAND_LIMIT,
        shown: str = "",
        patience: float | None = None,
    ) -> str:
        """Run kubectl and return its standard output.

        It is repeated while the API server restarts, so use idempotent commands only.

        :param limit: seconds after which it is ended.
        :param shown: the command in errors, instead of the whole command line.
        :param patience: seconds for a restart; None for the client's.
        """
        waiting = Backoff(self._patience if patience is None else patience)
        while True:
            try:
                return self._run(args, stdin, limit, shown)
            except errors.CommandFailed as error:
                tail = error.fields["tail"]
                if waiting.spent() or not any(text in tail for text in _RESTARTING):
                    raise
                LOG.info("%s: kubectl is retried: %s", self.host, tail)
            waiting.pause()

    def _run(
        self, args: Sequence[str], stdin: str | None, limit: float, shown: str
    ) -> str:
        argv = ["kubectl", *self._options, *args]
        try:
            result = self._session.run(argv, stdin=stdin, timeout=limit, sudo=True)
        except (errors.CommandFailed, errors.CommandTimeout) as error:
            if not shown or not error.fields["command"].startswith("kubectl"):
                raise
            fields = {**error.fields, "command": shown}
            raise type(error)(hint=error.hint, **fields) from error
        return result.stdout

    def is_certified(self, name: str) -> bool:
        """Return whether the API server's certificate covers this name or address."""
        try:
            self.run("get", "--raw=/version", "--tls-server-name", name)
        except errors.CommandFailed as error:
            if any(text in error.fields["tail"] for text in _OTHER_NAMES):
                return False
            raise
        return True

    def get(self, *args: str, read: Callable[[dict[str, Any]], Answer]) -> Answer:
        """Get an object or a list, and return ``read``'s result for the JSON.

        With ``--ignore-not-found`` it is empty if there is none.
        """
        text = self.run("get", *args, "-o", "json")
        return self._read(text, f"get {' '.join(args)}", read)

    def patch(
        self,
        *args: str,
        change: Mapping[str, Any],
        read: Callable[[dict[str, Any]], Answer],
    ) -> Answer:
        """Change an object by a JSON merge patch; return ``read``'s result for it."""
        patch = ("--type=merge", "-p", json.dumps(change))
        text = self.run("patch", *args, *patch, "-o", "json")
        return self._read(text, f"patch {' '.join(args)}", read)

    def _read(
        self, text: str, command: str, read: Callable[[dict[str, Any]], Answer]
    ) -> Answer:
        with self.understanding(command):
            answer = untrusted.parse_json(text) if text.strip() else {}
            if not isinstance(answer, dict):
                raise TypeError(type(answer))
            return untrusted.checked(read(answer))

    def raw(self, path: str, read: Callable[[dict[str, Any]], Answer]) -> Answer:
        """Get a path of the API server, and return ``read``'s result for the JSON."""
        text = self.run("get", "--raw", path)
        with self.understanding(f"get --raw {path}"):
            return untrusted.checked(read(untrusted.parse_json(text)))

    def table(
        self,
        kind: str,
        paths: Iterable[str],
        read: Callable[..., Answer],
        *options: str,
        everywhere: bool = False,
        patience: float | None = None,
        shown: str = "",
    ) -> list[Answer]:
        """Get some fields of every object of a kind; return ``read``'s result for each.

        A whole Node is about 20 kB, mostly image names, so a few hundred of them would
        exceed the limit of a session's output. kubectl writes each field as JSON:
        kubelets and tenants choose some texts, with tabs and line feeds in them.

        :param paths: JSONPath of each field. ``read`` gets their values, None for one
            that is absent; the list of all values of a path with ``[*]`` or a filter.
        :param options: of ``kubectl get``.
        :param everywhere: of all namespaces.
        :param patience: seconds for a restart; None for the client's.
        :param shown: the kinds in errors, instead of *kind*.
        """
        wanted = tuple(paths)
        columns = tuple(dict.fromkeys((*_IDENTITY, *wanted)))
        row = "".join(f"{{{path}}}" for path in columns)
        # The kind at both ends distinguishes an empty list from a truncated answer.
        template = f"jsonpath-as-json={{.kind}}{{range .items[*]}}{row}{{end}}{{.kind}}"
        command = f"get {shown or kind}"
        namespaces = ("--all-namespaces",) if everywhere else ()
        args = ("get", kind, *namespaces, *options, "-o", template)
        text = self.run(*args, shown=f"kubectl {command}", patience=patience)
        if _MAY_BE_NONE in options and not text.strip():
            return []
        with self.understanding(command):
            rows = _rows(text, columns)
            return untrusted.checked(
                [read(*(one[path] for path in wanted)) for one in rows]
            )

    def objects(
        self, kind: str, paths: Iterable[str], *options: str, everywhere: bool = False
    ) -> list[dict[str, Any]]:
        """Get some fields of every object of a kind, at their places in objects.

        :param paths: names with a dot before each; absent ones are left out.
        """
        wanted = tuple(paths)

        def read(*values: Any) -> dict[str, Any]:
            one: dict[str, Any] = {}
            for path, value in zip(wanted, values, strict=True):
                *above, name = path.removeprefix(".").split(".")
                place = one
                for part in above:
                    place = place.setdefault(part, {})
                if value is not None:
                    place[name] = value
            return one

        return self.table(kind, wanted, read, *options, everywhere=everywhere)

    def delete(self, objects: Iterable[Mapping[str, Any]], *options: str) -> None:
        """Delete objects that may no longer exist, without waiting for their end.

        They are passed on standard input, because a node may have hundreds of pods.
        """
        items = {"apiVersion": "v1", "kind": "List", "items": list(objects)}
        options = ("--ignore-not-found", "--wait=false", *options)
        self.run("delete", "-f", "-", *options, stdin=json.dumps(items))

    @contextmanager
    def understanding(self, command: str) -> Iterator[None]:
        """Have what reading an answer raises become a ``ClusterError``."""
        try:
            yield
        except NOT_UNDERSTOOD as error:
            # Without the answer, which may hold a secret.
            raise errors.ClusterError(
                detail=f"The answer to `kubectl {command}` on {self.host} could not be "
                f"understood ({type(error).__name__})."
            ) from error


def _rows(text: str, columns: Sequence[str]) -> list[dict[str, Any]]:
    """The values of the columns of each object, of what ``table`` has kubectl print.

    :raises TypeError, ValueError: it is of another form, or has an object twice.
    """
    head, *values, end = untrusted.json_stream(text)
    if len(head) != 1 or not str(head[0]).endswith("List") or end != head:
        raise ValueError("no list")
    rows = []
    for start in range(0, len(values), len(columns)):
        cells = values[start : start + len(columns)]
        rows.append(
            {
                path: _cell(path, *cell)
                for path, cell in zip(columns, cells, strict=True)
            }
        )
    if not all(isinstance(row[_NAME], str) for row in rows):
        raise TypeError("a name is none")
    identities = {tuple(str(row[path]) for path in _IDENTITY) for row in rows}
    if len(identities) != len(rows):
        raise ValueError("an object is there twice")
    return rows


def _cell(path: str, *found: Any) -> Any:
    """The value of a path, of the results that kubectl has for it."""
    if _SEVERAL & set(path):
        return found
    (value,) = found or (None,)
    return value
