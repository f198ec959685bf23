# SPDX-License-Identifier: Apache-2.0
"""Helm on a control plane, for the charts of applications.

It is root's, with the administrator's credentials, as kubectl is. Values pass over
standard input, because they may have secrets.

Helm's ``--timeout`` is for each of its waits, not for the command. For each hook it
waits up to three times: until a former one is deleted, until the hook has ended, and
until it is deleted again; and once more for the release itself. A command gets as much.

With ``keep_volumes`` the PersistentVolumeClaims of a chart stay, whatever Helm does.
"""

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any, TypeVar

from tacker_k8s_mgmt import errors
from tacker_k8s_mgmt.kubespray.inventory import ADMIN_CONFIG
from tacker_k8s_mgmt.model import manifests, untrusted
from tacker_k8s_mgmt.model.applications import Chart
from tacker_k8s_mgmt.model.manifests import Unusable
from tacker_k8s_mgmt.remote.kubernetes import chart_volumes
from tacker_k8s_mgmt.remote.kubernetes.chart_volumes import ChartVolumes
from tacker_k8s_mgmt.remote.kubernetes.kubectl import NOT_UNDERSTOOD, KubeClient
from tacker_k8s_mgmt.remote.ssh.session import Session

_SHORT = 120.0  # seconds for what does not wait
_MARGIN = 60.0  # seconds from Helm's own limit to that of the command
_HISTORY = 5  # revisions that Helm keeps
_WAITS = 3  # of Helm, for each hook
_PENDING = "pending-"
# Of a release that no upgrade follows: its end is brought about, then it is installed.
_ENDING = ("pending-install", "uninstalling", "uninstalled")
# Of revisions to which a release can go back.
_GOOD = ("deployed", "superseded")
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
        self._volumes = ChartVolumes(KubeClient(session, server))

    def render(
        self,
        chart: Chart,
        name: str,
        namespace: str,
        version: str,
        api_versions: Sequence[str] = (),
        *,
        upgrade: bool = False,
    ) -> str:
        """Return the manifests of a chart with its values; changes nothing.

        As Helm makes them when it installs: with what the chart looks up in the
        cluster, and with the cluster's kinds, to which those of the chart's own
        definitions come.

        :param version: of Kubernetes.
        :param api_versions: see ``Manifests.api_versions``.
        :param upgrade: whether there is a release of that name.
        :raises CommandFailed: the chart cannot be rendered, for example because a
            value that it requires is missing.
        """
        with self._archive(chart) as path:
            own = _defined(self._run(("show", "crds", path), _SHORT))
            known = ",".join((*api_versions, *own))
            options = (
                *("--kube-version", version, "--values", "-", "--dry-run=server"),
                *(("--api-versions", known) if known else ()),
                *(("--is-upgrade",) if upgrade else ()),
            )
            command = ("template", name, path, "--namespace", namespace, *options)
            return self._run(command, _SHORT, chart.values)

    def install(
        self,
        chart: Chart,
        name: str,
        namespace: str,
        limit: float,
        hooks: int,
        *,
        keep_volumes: bool,
    ) -> None:
        """Install a release, or upgrade it, and wait for the chart's hooks.

        :param limit: seconds for each of Helm's waits.
        :param hooks: how many hooks Helm runs at most.
        """
        if keep_volumes:
            self._volumes.keep(self._part("manifest", name, namespace), namespace)
        with self._archive(chart) as path:
            command = ("upgrade", name, path, "--install", "--namespace", namespace)
            options = ("--values", "-", f"--history-max={_HISTORY}")
            timeout = f"--timeout={limit:g}s"
            wait = _longest(limit, hooks)
            self._run((*command, *options, timeout), wait, chart.values)

    def rollback(
        self,
        name: str,
        namespace: str,
        revision: int,
        limit: float,
        *,
        keep_volumes: bool,
    ) -> None:
        """Go back to a revision of a release.

        :param limit: seconds for each of Helm's waits.
        """
        if keep_volumes:
            self._volumes.keep(self._part("manifest", name, namespace), namespace)
        where = ("--namespace", namespace)
        hooks = self._hooks(name, "rollback", *where, f"--revision={revision}")
        options = (*where, f"--timeout={limit:g}s")
        command = ("rollback", name, str(revision), *options)
        self._run(command, _longest(limit, hooks))

    def uninstall(
        self, name: str, namespace: str, limit: float, *, keep_volumes: bool
    ) -> None:
        """Remove a release and its objects, and wait until they are gone.

        :param limit: seconds for each of Helm's waits.
        :raises ClusterError: also if Helm would not leave the volumes; nothing was
            removed.
        """
        if keep_volumes:
            self._keep_at_end(name, namespace)
        where = ("--namespace", namespace)
        hooks = self._hooks(name, "delete", *where)
        options = (
            *("--ignore-not-found", "--wait", "--cascade=foreground"),
            f"--timeout={limit:g}s",
        )
        command = ("uninstall", name, *where, *options)
        self._run(command, _longest(limit, hooks))

    def _hooks(self, name: str, action: str, *where: str) -> int:
        """How many hooks of a release Helm runs at an action."""
        try:
            text = self._run(("get", "hooks", name, *where), _SHORT)
        except errors.CommandFailed as error:
            if _GONE not in error.fields["tail"]:
                raise
            return 0
        try:
            return manifests.hook_runs(manifests.parse(text), action)
        except Unusable:
            return text.count(action)  # at least as many

    def revision(self, name: str, namespace: str) -> int:
        """Return the number of the release's latest revision; 0 if there is none."""
        status = self._status(name, namespace)
        with self._understanding("status"):
            return int(status["version"]) if status else 0

    def manifest(self, name: str, namespace: str) -> str:
        """Return the manifests of a release with its hooks; "" if there is none."""
        texts = [self._part(part, name, namespace) for part in ("manifest", "hooks")]
        return "\n---\n".join(filter(None, texts))

    def _part(self, part: str, name: str, namespace: str) -> str:
        """``manifest`` or ``hooks`` of a release; "" if there is none."""
        try:
            return self._run(("get", part, name, "--namespace", namespace), _SHORT)
        except errors.CommandFailed as error:
            if _GONE not in error.fields["tail"]:
                raise
            return ""

    def _keep_at_end(self, name: str, namespace: str) -> None:
        place = (name, namespace)
        self._volumes.keep_at_end(self._part("manifest", *place), *place)
        if not chart_volumes.is_kept(self._part("manifest", *place)):
            raise errors.ClusterError(
                detail=f"Helm would delete volumes of the release {namespace}/{name}, "
                "which are to be kept.",
                hint="Nothing was removed. Annotate the chart's PersistentVolumeClaims "
                "with `helm.sh/resource-policy: keep`, or let `volumes` be `delete`.",
            )

    def recover(
        self, name: str, namespace: str, *, keep_volumes: bool
    ) -> frozenset[int]:
        """End what an operation that was killed has left; Helm would wait for it.

        The end of a release that was being removed, or installed for the first time, is
        that it is gone.

        :returns: the revisions to which the release can go back.
        """
        state = self.state(name, namespace)
        if state in _ENDING:
            self.uninstall(name, namespace, _SHORT, keep_volumes=keep_volumes)
            return frozenset()
        if not state:
            return frozenset()
        history = self._json(("history", name, "--namespace", namespace), list)
        with self._understanding("history"):
            ended = [o for o in history if not o["status"].startswith(_PENDING)]
            good = [one for one in ended if one["status"] in _GOOD]
            now = [one for one in good if one["status"] == "deployed"]
            revisions = [int(one["revision"]) for one in now or good or ended]
        if state.startswith(_PENDING) and revisions:
            place = (name, namespace, revisions[-1], _SHORT)
            self.rollback(*place, keep_volumes=keep_volumes)
        return frozenset(int(one["revision"]) for one in good)

    def state(self, name: str, namespace: str) -> str:
        """Return the state of a release, such as ``deployed``; "" if there is none."""
        status = self._status(name, namespace)
        with self._understanding("status"):
            return str(status["info"]["status"]) if status else ""

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
            return read(untrusted.parse_json(text))

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


def _longest(limit: float, hooks: int) -> float:
    """Seconds that a command may take whose hooks all take as long as they may."""
    return limit * (_WAITS * hooks + 1) + _MARGIN


def _defined(text: str) -> list[str]:
    """What the definitions of custom resources in a chart add to the API's versions."""
    try:
        objects = manifests.parse(text)
    except Unusable:
        return []  # Helm says what is wrong with it when it installs the chart
    found = []
    for one in manifests.of_kinds(objects, "CustomResourceDefinition"):
        spec = one.get("spec") or {}
        kind = (spec.get("names") or {}).get("kind")
        for version in spec.get("versions") or ():
            if version.get("served"):
                found += [f"{spec.get('group')}/{version.get('name')}"]
                found += [f"{found[-1]}/{kind}"]
    return found
