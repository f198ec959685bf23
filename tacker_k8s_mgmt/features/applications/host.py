# SPDX-License-Identifier: Apache-2.0
"""What a control plane does for applications: Helm, and downloads.

Helm is root's there, with the administrator's credentials, as kubectl is. Values pass
over standard input, because they may have secrets.

Helm's ``--timeout`` is for each of its waits, not for the command. For each hook it
waits up to three times: until a former one is deleted, until the hook has ended, and
until it is deleted again; and once more for the release itself. A command gets as much.

With ``keep_volumes`` the PersistentVolumeClaims of a chart stay, whatever Helm does.
Helm deletes them with the release, and at an upgrade or a rollback those that the new
manifest lacks. It leaves what is annotated with ``helm.sh/resource-policy: keep``. At
an upgrade and a rollback it asks the object in the cluster (``pkg/kube/client.go``), at
the end of the release the manifest in its record (``pkg/action/uninstall.go``).

Files at URLs are read by a control plane. The cluster is its users' own, Tacker's
conductor is not: so no request can direct the conductor to another host. The proxy is
that of the nodes.
"""

import base64
import gzip
import hashlib
import json
import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

from tacker_k8s_mgmt import errors
from tacker_k8s_mgmt.features.applications.content import ApplicationRecords, Chart
from tacker_k8s_mgmt.features.applications.workloads import Workloads
from tacker_k8s_mgmt.kubespray.inventory import ADMIN_CONFIG
from tacker_k8s_mgmt.model import manifests, untrusted
from tacker_k8s_mgmt.model.manifests import CLAIM, KEEP, Unusable
from tacker_k8s_mgmt.model.nodes import Node
from tacker_k8s_mgmt.remote.kubernetes.kubectl import NOT_UNDERSTOOD, KubeClient
from tacker_k8s_mgmt.remote.kubernetes.owned_objects import Manifests
from tacker_k8s_mgmt.remote.site import Site
from tacker_k8s_mgmt.remote.ssh.session import Session
from tacker_k8s_mgmt.request.installation import Proxy

# Between two documents, as Helm reads them (pkg/releaseutil/manifest.go).
_SEPARATOR = re.compile(r"(?:^|\n)---\s*", re.ASCII)
# Of the records of a release (pkg/storage/driver/secrets.go).
_REVISION = (".metadata.labels.version", ".metadata.name")
_LARGEST = 32 * 1024 * 1024  # bytes of a record, which a Secret has compressed


class ChartVolumes:
    """The claims of one cluster's releases.

    Each method raises ``RemoteError`` if kubectl fails or the node cannot be reached.

    :param client: kubectl on a control plane.
    """

    def __init__(self, client: KubeClient) -> None:
        self._client = client
        self._manifests = Manifests(client)

    def keep(self, manifest: str, namespace: str) -> None:
        """Have upgrades and rollbacks leave the claims of a manifest.

        :raises ClusterError: the manifest cannot be understood.
        """
        claims = manifests.in_namespace(_claims(manifest), namespace, ())
        change = {"metadata": {"annotations": KEEP}}
        present = self._manifests.present(claims)
        with self._client.understanding("get -f -"):
            places = [manifests.identity(one)[2:] for one in present]
        for place, name in places:
            about = ("persistentvolumeclaims", name, f"--namespace={place}")
            self._client.patch(*about, change=change, read=lambda answer: None)

    def keep_at_end(self, manifest: str, name: str, namespace: str) -> None:
        """Have the end of a release leave its claims.

        :param manifest: of its latest revision.
        :raises ClusterError: its record cannot be understood; nothing was changed.
        """
        if is_kept(manifest):
            return
        where = f"--namespace={namespace}"
        selector = f"--selector=owner=helm,name={name}"
        revisions = self._client.table("secrets", _REVISION, _revision, where, selector)
        if not revisions:
            raise errors.ClusterError(
                detail=f"The record of the release {namespace}/{name} is gone."
            )
        _, latest = max(revisions)
        secret = self._client.get("secret", latest, where, read=dict)
        with self._client.understanding("get secrets"):
            release = _unpacked(secret["data"]["release"])
            release["manifest"] = _kept(release["manifest"])
        secret["data"]["release"] = _packed(release)
        # With its resourceVersion: what another Helm has written meanwhile stays.
        shown = f"kubectl replace Secret {secret['metadata']['name']}"
        self._client.run("replace", "-f", "-", stdin=json.dumps(secret), shown=shown)


def is_kept(manifest: str) -> bool:
    """Whether the end of a release with this manifest leaves its claims."""
    return all(map(manifests.is_kept, _claims(manifest)))


def _claims(manifest: str) -> list[dict[str, Any]]:
    """The claims in a manifest of a release.

    :raises ClusterError: it cannot be understood.
    """
    return [
        one for part in _parts(manifest) for one in _objects(part) if _is_claim(one)
    ]


def _parts(manifest: str) -> Iterator[str]:
    return filter(str.strip, _SEPARATOR.split(manifest))


def _objects(part: str) -> tuple[dict[str, Any], ...]:
    if CLAIM not in part:
        return ()
    try:
        return manifests.parse(part)
    except Unusable as error:
        raise errors.ClusterError(
            detail="What volumes a release has cannot be known, because its manifest "
            f"{error}.",
            hint="Nothing was changed. With `volumes: delete` it need not be known.",
        ) from None


def _is_claim(one: Mapping[str, Any]) -> bool:
    return manifests.key(one) == ("", CLAIM)


def _kept(manifest: str) -> str:
    """The manifest, with claims that Helm leaves; everything else is as it was."""
    texts = []
    for part in _parts(manifest):
        objects = _objects(part)
        if any(map(_is_claim, objects)):
            # Helm reads the policy of a List, not of what is in it.
            texts += [json.dumps(_annotated(one)) for one in objects]
        else:
            texts.append(part)
    return "".join(f"---\n{text}\n" for text in texts)


def _annotated(one: Mapping[str, Any]) -> Mapping[str, Any]:
    if not _is_claim(one):
        return one
    metadata = one["metadata"]
    annotations = {**(metadata.get("annotations") or {}), **KEEP}
    return {**one, "metadata": {**metadata, "annotations": annotations}}


def _revision(number: str, name: str) -> tuple[int, str]:
    return int(number), name


def _unpacked(text: str) -> dict[str, Any]:
    try:
        data = base64.b64decode(base64.b64decode(text))
        release = untrusted.parse_json(untrusted.unpack_gzip(data, _LARGEST).decode())
    except (untrusted.Damaged, untrusted.TooLarge) as error:
        raise ValueError from error
    if not isinstance(release, dict):
        raise TypeError(type(release))
    return release


def _packed(release: Mapping[str, Any]) -> str:
    data = gzip.compress(json.dumps(release).encode(), mtime=0)
    return base64.b64encode(base64.b64encode(data)).decode()


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
_AS_JSON = ("--output", "json")


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
        text = self._ask("get", "hooks", name, *where) or ""
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
        return self._ask("get", part, name, "--namespace", namespace) or ""

    def _keep_at_end(self, name: str, namespace: str) -> None:
        place = (name, namespace)
        self._volumes.keep_at_end(self._part("manifest", *place), *place)
        if not is_kept(self._part("manifest", *place)):
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
        command = ("history", name, "--namespace", namespace, *_AS_JSON)
        text = self._run(command, _SHORT)
        with self._understanding("history"):
            history = list(untrusted.parse_json(text))
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
        text = self._ask("status", name, "--namespace", namespace, *_AS_JSON)
        with self._understanding("status"):
            return {} if text is None else dict(untrusted.parse_json(text))

    def _ask(self, *command: str) -> str | None:
        """What Helm says about a release; None if there is none."""
        try:
            return self._run(command, _SHORT)
        except errors.CommandFailed as error:
            if _GONE not in error.fields["tail"]:
                raise
            return None

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


LARGEST = 20 * 1024 * 1024  # bytes
_LIMIT = 300.0  # seconds
_FETCH_MARGIN = 30.0
_BLOCK = 512  # bytes, in which a shell counts
# The limit holds while curl writes: not every server tells a length beforehand, and
# not every curl watches it then. Without the signal, curl fails and dumps no core.
_LIMITED = 'trap \'\' XFSZ; ulimit -f "$1" && exec curl --config - --output "$2"'


def fetch(session: Session, url: str, sha256: str, proxy: Mapping[str, str]) -> bytes:
    """Read a URL over TLS, whose certificate is verified.

    :param sha256: of the file, in lower-case hexadecimal digits.
    :param proxy: options of curl for the proxy; they may have a login.
    :raises RemoteError: it cannot be read, is too large, or is another file.
    """
    options = {
        "url": url,
        # Of redirections, too.
        "proto": "=https",
        "max-redirs": "5",
        "max-time": f"{_LIMIT:g}",
        "max-filesize": str(LARGEST),
        **proxy,
    }
    # curl knows JSON's quotes and backslashes, but not its \uXXXX.
    quoted = {n: json.dumps(v, ensure_ascii=False) for n, v in options.items()}
    lines = [f"{name} = {value}" for name, value in quoted.items()]
    # Without globoff, brackets and braces are many URLs.
    flags = "fail\nsilent\nshow-error\nlocation\ngloboff\n"
    with session.scratch() as directory:
        path = f"{directory}/file"
        argv = ["sh", "-c", _LIMITED, "sh", str(LARGEST // _BLOCK + 1), path]
        config = flags + "\n".join(lines) + "\n"
        failure = ""
        try:
            session.run(argv, stdin=config, timeout=_LIMIT + _FETCH_MARGIN)
        except errors.CommandFailed as error:
            failure = error.fields["tail"]
        if _size(session, path) > LARGEST:
            failure = f"it has more than {LARGEST} bytes"
        if failure:
            raise _unusable(url, failure, session.host)
        content = session.get(path) or b""
    if hashlib.sha256(content).hexdigest() != sha256:
        # Not which it is: the answer may be that of a server inside, which the request
        # has no business to know.
        raise _unusable(url, f"its SHA-256 is not {sha256}", session.host)
    return content


def _size(session: Session, path: str) -> int:
    """The size of a file; 0 if there is none."""
    argv = ["stat", "-c", "%s", path]
    text = session.run(argv, timeout=30, check=False).stdout.strip()
    return int(text) if text.isdecimal() and len(text) < 20 else 0


def _unusable(url: str, reason: str, host: str) -> errors.RemoteError:
    return errors.RemoteError(
        detail=f"{untrusted.shown(url)} cannot be used, as {host} reads it: "
        f"{reason.rstrip('.')}."
    )


class ApplicationHost:
    """kubectl, Helm and curl on one control plane.

    :param session: with it; its user may use sudo.
    :param server: URL of the node's own API server.
    :param patience: seconds for the restart of an API server.
    :param proxy: of the nodes.
    """

    @classmethod
    def through(cls, site: Site, control_plane: Node) -> "ApplicationHost":
        """What applications need, through a control plane."""
        return cls(*site.api_access(control_plane), site.params.proxy)

    def __init__(
        self, session: Session, server: str, patience: float, proxy: Proxy | None
    ) -> None:
        client = KubeClient(session, server, patience)
        self.objects = Manifests(client)
        self.records = ApplicationRecords(client)
        self.workloads = Workloads(client)
        self.charts = Charts(session, server)
        self._session = session
        self._proxy = proxy

    def fetch(self, url: str, sha256: str) -> bytes:
        """Return the file at a URL; see :func:`fetch`."""
        options = {}
        if self._proxy and self._proxy.https_proxy:
            options["proxy"] = self._proxy.https_proxy.get_secret_value()
            options["noproxy"] = ",".join(self._proxy.no_proxy)
        return fetch(self._session, url, sha256, options)
