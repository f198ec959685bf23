# SPDX-License-Identifier: Apache-2.0
"""Helm on a control plane, for the charts of applications.

It is root's, with the administrator's credentials, as kubectl is. Values pass over
standard input, because they may have secrets.
"""

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any, TypeVar

from tacker_k8s_mgmt import errors
from tacker_k8s_mgmt.kubespray.node_files import ADMIN_CONFIG
from tacker_k8s_mgmt.model import json_text
from tacker_k8s_mgmt.model.applications import Chart
from tacker_k8s_mgmt.remote.kubernetes.kubectl import NOT_UNDERSTOOD
from tacker_k8s_mgmt.remote.ssh.session import Session

_SHORT = 120.0  # seconds for what does not wait
_MARGIN = 60.0  # seconds from Helm's own limit to that of the command
_HISTORY = 5  # revisions that Helm keeps
_PENDING = "pending-"
_FIRST = "pending-install"
_GONE = "release: not found"

Answer = TypeVar("Answer")


class Charts:
    """The releases of one cluster.

    Each method raises ``RemoteError`` if Helm fails or the node cannot be reached, and
    ``ClusterError`` if Helm's answer cannot be parsed.

    :param session: with a control plane; its user may use sudo.
    :param server: URL of the node's own API server.
    """

    def __init__(self, session: Session, server: str) -> None:
        self._session = session
        self._options = ("--kubeconfig", ADMIN_CONFIG, "--kube-apiserver", server)

    def render(self, chart: Chart, name: str, namespace: str, version: str) -> str:
        """Return the manifests of a chart with its values; changes nothing.

        :param version: of Kubernetes.
        :raises CommandFailed: the chart cannot be rendered, for example because a
            value that it requires is missing.
        """
        with self._archive(chart) as path:
            options = ("--kube-version", version, "--values", "-")
            command = ("template", name, path, "--namespace", namespace, *options)
            return self._run(command, _SHORT, chart.values)

    def install(self, chart: Chart, name: str, namespace: str, limit: float) -> None:
        """Install a release, or upgrade it, and wait for the chart's hooks.

        :param limit: seconds for each hook.
        """
        self._end_interrupted(name, namespace)
        with self._archive(chart) as path:
            command = ("upgrade", name, path, "--install", "--namespace", namespace)
            options = ("--values", "-", f"--history-max={_HISTORY}")
            timeout = f"--timeout={limit:g}s"
            wait = limit + _MARGIN
            self._run((*command, *options, timeout), wait, chart.values)

    def rollback(self, name: str, namespace: str, revision: int, limit: float) -> None:
        """Go back to a revision of a release.

        :param limit: seconds for each hook.
        """
        where = ("--namespace", namespace, f"--timeout={limit:g}s")
        self._run(("rollback", name, str(revision), *where), limit + _MARGIN)

    def uninstall(self, name: str, namespace: str, limit: float) -> None:
        """Remove a release and its objects, and wait until they are gone."""
        where = ("--namespace", namespace, "--ignore-not-found")
        options = ("--wait", "--cascade=foreground", f"--timeout={limit:g}s")
        self._run(("uninstall", name, *where, *options), limit + _MARGIN)

    def revision(self, name: str, namespace: str) -> int:
        """Return the number of the release's latest revision; 0 if there is none."""
        status = self._status(name, namespace)
        with self._understanding("status"):
            return int(status["version"]) if status else 0

    def manifest(self, name: str, namespace: str) -> str:
        """Return the manifests of a release with its hooks; "" if there is none."""
        where = ("--namespace", namespace)
        texts = []
        for part in ("manifest", "hooks"):
            try:
                texts.append(self._run(("get", part, name, *where), _SHORT))
            except errors.CommandFailed as error:
                if _GONE not in error.fields["tail"]:
                    raise
                return ""
        return "\n---\n".join(texts)

    def _end_interrupted(self, name: str, namespace: str) -> None:
        """End what an operation that was killed has left; Helm would wait for it."""
        status = self._status(name, namespace)
        with self._understanding("status"):
            state = str(status.get("info", {}).get("status", ""))
        if state == _FIRST:
            self.uninstall(name, namespace, _SHORT)
        elif state.startswith(_PENDING):
            history = self._json(("history", name, "--namespace", namespace), list)
            with self._understanding("history"):
                ended = [o for o in history if not o["status"].startswith(_PENDING)]
                good = [one for one in ended if one["status"] == "deployed"] or ended
                revisions = [int(one["revision"]) for one in good]
            if revisions:
                self.rollback(name, namespace, revisions[-1], _SHORT)

    def _status(self, name: str, namespace: str) -> Mapping[str, Any]:
        """Name, version and status of a release; empty if there is none."""
        try:
            return self._json(("status", name, "--namespace", namespace), dict)
        except errors.CommandFailed as error:
            if _GONE not in error.fields["tail"]:
                raise
            return {}

    def _json(self, command: Sequence[str], read: Callable[[Any], Answer]) -> Answer:
        text = self._run((*command, "--output", "json"), _SHORT)
        with self._understanding(command[0]):
            return read(json_text.parse(text))

    @contextmanager
    def _understanding(self, command: str) -> Iterator[None]:
        try:
            yield
        except NOT_UNDERSTOOD as error:
            # Without the answer, which may hold a secret.
            raise errors.ClusterError(
                detail=f"The answer to `helm {command}` on {self._session.host} "
                f"could not be understood ({type(error).__name__})."
            ) from None

    def _run(
        self,
        command: Sequence[str],
        limit: float,
        values: Mapping[str, Any] | None = None,
    ) -> str:
        argv = ["helm", *command, *self._options]
        stdin = json.dumps(dict(values)) if values is not None else None
        result = self._session.run(argv, stdin=stdin, timeout=limit, sudo=True)
        return result.stdout

    @contextmanager
    def _archive(self, chart: Chart) -> Iterator[str]:
        """Put the chart onto the node, and yield its path."""
        with self._session.scratch() as directory:
            path = f"{directory}/{chart.name}.tgz"
            self._session.put(path, chart.archive)
            yield path
