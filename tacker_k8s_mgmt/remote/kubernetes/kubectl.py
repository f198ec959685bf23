"""Runs ``kubectl`` on a control-plane node.

There the administrator's credentials are, and an API server that can be reached
whatever lies between the nodes and us. The configuration there names the load balancer,
if the cluster has one, which may be the very VM that is to be healed; so the node's own
server is named beside it. The exit code tells how it went; warnings on standard error
are no failures, and a failure is never taken for "there is none".
"""

import json
import logging
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any, TypeVar

from tacker_k8s_mgmt import errors
from tacker_k8s_mgmt.remote.backoff import Backoff
from tacker_k8s_mgmt.remote.ssh.session import Session

LOG = logging.getLogger(__name__)

ADMIN_CONFIG = "/etc/kubernetes/admin.conf"

# Seconds for one request to the API server, which without etcd takes 20 s to say so.
_REQUEST_LIMIT = 40
_COMMAND_LIMIT = 180.0  # seconds for kubectl, which may make several
_OPTIONS = ("--kubeconfig", ADMIN_CONFIG, f"--request-timeout={_REQUEST_LIMIT}s")
# How Go's crypto/x509 says that a certificate is for other names or addresses.
_OTHER_NAMES = ("x509: certificate is ", "x509: cannot validate certificate for ")
# What kubectl says while an API server restarts: for up to 34 s nobody listens, and
# then it is not ready for about a second.
_RESTARTING = (
    "The connection to the server ",
    "Error from server (InternalError)",
    "Error from server (ServiceUnavailable)",
    "etcdserver: ",
)

Answer = TypeVar("Answer")


class KubeClient:
    """kubectl behind one session; its user may use sudo.

    Several threads may use it at once: each command has an SSH channel of its own.

    :param server: URL of the node's own API server; None: what its configuration names.
    :param patience: seconds for an API server that restarts.
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

        It is run again while the API server restarts, as all that is asked of it may be
        asked twice.

        :param limit: seconds after which it is ended.
        :param shown: what errors name instead of the whole command line.
        :param patience: seconds for a restart; None: those of this client.
        :raises RemoteError: it failed or the node cannot be reached.
        """
        waiting = Backoff(self._patience if patience is None else patience)
        while True:
            try:
                return self._run(args, stdin, limit, shown)
            except errors.CommandFailed as error:
                tail = error.fields["tail"]
                if waiting.spent() or not any(text in tail for text in _RESTARTING):
                    raise
                LOG.info("%s: asked again: %s", self.host, tail)
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
        """Whether the API server's certificate is also for this name or address.

        :raises RemoteError: kubectl failed or the node cannot be reached.
        """
        try:
            self.run("get", "--raw=/version", "--tls-server-name", name)
        except errors.CommandFailed as error:
            if any(text in error.fields["tail"] for text in _OTHER_NAMES):
                return False
            raise
        return True

    def get(self, *args: str, read: Callable[[dict[str, Any]], Answer]) -> Answer:
        """Get an object or a list as JSON and let ``read`` make something of it.

        With ``--ignore-not-found`` it is empty where there is none.

        :raises RemoteError: kubectl failed or the node cannot be reached.
        :raises ClusterError: its answer could not be understood.
        """
        text = self.run("get", *args, "-o", "json")
        with self._understanding(f"get {' '.join(args)}"):
            answer = json.loads(text) if text.strip() else {}
            if not isinstance(answer, dict):
                raise TypeError(type(answer))
            return read(answer)

    def raw(self, path: str, read: Callable[[dict[str, Any]], Answer]) -> Answer:
        """Ask the API server for what is no object, as JSON.

        :raises RemoteError: kubectl failed or the node cannot be reached.
        :raises ClusterError: its answer could not be understood.
        """
        text = self.run("get", "--raw", path)
        with self._understanding(f"get --raw {path}"):
            return read(json.loads(text))

    def table(
        self, kind: str, paths: Iterable[str], read: Callable[..., Answer]
    ) -> list[Answer]:
        """Get a few fields of every object of a kind and let ``read`` take each row.

        A whole Node is about 20 kB, most of it names of images: a few hundred of them
        would be more than a session takes.

        :param paths: JSONPath of each field. A field that is a list or an object comes
            as JSON, anything else as its text, what is not there as "".
        :raises RemoteError: kubectl failed or the node cannot be reached.
        :raises ClusterError: its answer could not be understood.
        """
        row = r'{"\t"}'.join(f"{{{path}}}" for path in paths)
        # The first line tells an empty list from an answer that is cut off.
        template = r'jsonpath={.kind}{"\n"}{range .items[*]}' + row + r'{"\n"}{end}'
        command = f"get {kind}"
        text = self.run("get", kind, "-o", template, shown=f"kubectl {command}")
        with self._understanding(command):
            head, *lines = text.split("\n")
            if not head.endswith("List") or lines.pop():
                raise ValueError(head)
            return [read(*line.split("\t")) for line in lines]

    def delete(self, objects: Iterable[Mapping[str, Any]], *options: str) -> None:
        """Delete objects, some of which may be gone already; waits for none of them.

        They are handed over on standard input: a node may have hundreds of pods.

        :raises RemoteError: kubectl failed or the node cannot be reached.
        """
        found = {"apiVersion": "v1", "kind": "List", "items": list(objects)}
        ways = ("--ignore-not-found", "--wait=false", *options)
        self.run("delete", "-f", "-", *ways, stdin=json.dumps(found))

    @contextmanager
    def _understanding(self, command: str) -> Iterator[None]:
        try:
            yield
        except (KeyError, TypeError, ValueError) as error:
            # Not the answer itself: it may hold a secret.
            raise errors.ClusterError(
                detail=f"The answer to `kubectl {command}` on {self.host} could not be "
                f"understood ({type(error).__name__})."
            ) from error
