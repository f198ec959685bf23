# SPDX-License-Identifier: Apache-2.0
"""The files of applications, read and rendered, and the archives of their charts.

The layout of an archive is Helm's ("Charts", "The Chart File Structure"): a ``.tgz``
with one directory, which has ``Chart.yaml``.
"""

import base64
import gzip
import io
import re
import secrets
import tarfile
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import yaml
from oslo_log import log as logging

from tacker_k8s_mgmt import errors
from tacker_k8s_mgmt.features.applications.content import (
    Chart,
    Content,
    InstalledApplication,
    digest_of,
    salted_digest,
)
from tacker_k8s_mgmt.features.applications.host import ApplicationHost
from tacker_k8s_mgmt.model import kubernetes_yaml, manifests, untrusted
from tacker_k8s_mgmt.model.manifests import Object, Unusable
from tacker_k8s_mgmt.model.yaml_text import size
from tacker_k8s_mgmt.remote.site import Site
from tacker_k8s_mgmt.request.applications import Application, SourceFile

_CHART = "Chart.yaml"
_NAME = "chart"
_LONGEST = 250  # characters of name or version
_LARGEST = 1024 * 1024  # bytes of Chart.yaml
#: Bytes of a chart when it is unpacked, as for Helm itself.
LARGEST_UNPACKED = 100 * 1024 * 1024
# A call of Helm's function that reads objects of the cluster.
_LOOKUP = re.compile(rb"\blookup\s")
_MOST_MEMBERS = 10_000
# What tarfile raises beside its own errors, also for members that it cannot follow.
_NO_ARCHIVE = (
    *(tarfile.TarError, untrusted.Damaged, ValueError, LookupError),
    *(ArithmeticError, RecursionError),
)


class _Member(tarfile.TarInfo):
    """A member that comes after the one before it.

    One of a negative size has tarfile read the same header for ever (CVE-2025-8194, in
    Python before 3.11.14, 3.12.12 and 3.13.6).
    """

    def _block(self, count: int) -> int:
        if count < 0:
            raise tarfile.ReadError("a member has a negative size")
        blocks: int = super()._block(count)  # type: ignore[misc]
        return blocks


def packed(files: Mapping[str, bytes]) -> bytes:
    """The archive of a chart's files, by their paths in it; the same each time."""
    tar = io.BytesIO()
    with tarfile.open(fileobj=tar, mode="w", format=tarfile.PAX_FORMAT) as archive:
        for path in sorted(files):
            entry = tarfile.TarInfo(f"{_NAME}/{path}")
            entry.size = len(files[path])
            entry.mode = 0o644
            archive.addfile(entry, io.BytesIO(files[path]))
    return gzip.compress(tar.getvalue(), mtime=0)


def version_of(archive: bytes) -> str:
    """Name and version of a chart, such as ``keystone 0.3.1``.

    :raises Unusable: it is not a chart.
    """
    try:
        text = _chart_file(archive)
    except _NO_ARCHIVE:
        raise Unusable("is no archive of a chart (.tgz)") from None
    if text is None:
        raise Unusable(f"has no {_CHART}")
    return _version(text)


def looks_up(archive: bytes) -> bool:
    """Whether a template of the chart, or of one within, may read the cluster.

    :raises Unusable: it is not a chart.
    """
    try:
        with _opened(archive) as tar:
            return any(
                _LOOKUP.search(file.read())
                for entry in _members(tar)
                if entry.isreg() and "/templates/" in entry.name
                if (file := tar.extractfile(entry))
            )
    except _NO_ARCHIVE:
        raise Unusable("is no archive of a chart (.tgz)") from None


def _opened(archive: bytes) -> tarfile.TarFile:
    # Unpacked before it is parsed: a header may claim any size, which tarfile reads.
    try:
        unpacked = untrusted.unpack_gzip(archive, LARGEST_UNPACKED)
    except untrusted.TooLarge as error:
        raise Unusable(f"has {error}") from None
    return tarfile.open(fileobj=io.BytesIO(unpacked), mode="r:", tarinfo=_Member)


def _members(tar: tarfile.TarFile) -> Iterator[tarfile.TarInfo]:
    for number, entry in enumerate(tar, 1):
        if number > _MOST_MEMBERS:
            raise Unusable(f"has more than {_MOST_MEMBERS} files")
        yield entry


def _chart_file(archive: bytes) -> bytes | None:
    with _opened(archive) as tar:
        for entry in _members(tar):
            directory, slash, path = entry.name.removeprefix("./").partition("/")
            # No link, which may be one to itself.
            if directory and slash and path == _CHART and entry.isreg():
                file = tar.extractfile(entry) if entry.size <= _LARGEST else None
                return file.read() if file else None
    return None


def _version(text: bytes) -> str:
    try:
        chart = kubernetes_yaml.document(text.decode())
        parts = [chart["name"], chart["version"]]
    except (yaml.YAMLError, TypeError, KeyError, ValueError):
        parts = []
    words = [str(part) for part in parts if isinstance(part, str | int | float)]
    if len(words) != 2 or not all(map(_is_word, words)):
        raise Unusable(f"has a {_CHART} without name or version")
    return " ".join(words)


def _is_word(text: str) -> bool:
    return text.isprintable() and 0 < len(text) <= _LONGEST


LOG = logging.getLogger(__name__)

#: Bytes of the files of all applications, which are in memory at the same time.
LARGEST = 64 * 1024 * 1024
#: Values of all their objects; each takes 100 bytes or more.
MOST_VALUES = 1_000_000


@dataclass(frozen=True)
class Wanted:
    """An application as it is to be.

    :param content: without its namespace.
    :param chart: None for manifests.
    :param rendered: the objects of the chart; none where they need what its request
        makes before it.
    """

    app: Application
    content: Content
    salt: str = field(repr=False)
    chart: Chart | None = None
    rendered: Sequence[Object] = field(default=(), repr=False)

    @property
    def objects(self) -> list[Object]:
        return [*self.content.objects, *self.rendered]


class Sources:
    """Reads applications, with every problem that they have.

    :param host: a control plane; None before there is one: then the files of the
        package are read, and charts are not rendered.
    :param records: what the cluster records, by name.
    """

    def __init__(
        self,
        package: Site,
        host: ApplicationHost | None = None,
        records: Mapping[str, InstalledApplication] | None = None,
        version: str = "",
    ) -> None:
        self._package = package
        self._host = host
        self._records = records or {}
        self._version = version
        self._apps: Sequence[Application] = ()
        self._wide = host.objects.cluster_wide() if host else frozenset()
        self._api_versions: Sequence[str] = ()
        self._left, self._values_left = LARGEST, MOST_VALUES
        self.problems: list[str] = []

    def read(self, apps: Sequence[Application]) -> tuple[Wanted, ...]:
        """Read all of them; those with problems are left out of the result."""
        found = []
        self._apps = apps
        for app in apps:
            if self._left < 0 or self._values_left < 0:
                break  # the problem that this is has been named
            before = len(self.problems)
            chart = app.chart
            wanted = self._of_chart(app, chart) if chart else self._of_manifests(app)
            if wanted and len(self.problems) == before:
                found.append(wanted)
        return tuple(found)

    def _of_manifests(self, app: Application) -> Wanted | None:
        texts = [(file, self._file(app, file)) for file in app.manifests]
        stages: list[Sequence[Object]] = [self._placed(configuration(app), app)]
        for file, text in texts:
            if text is None:
                return None
            try:
                objects = self._parsed(text.decode())
            except UnicodeDecodeError:
                self._complain(app, f"{file.title} is no text in UTF-8")
            except Unusable as error:
                self._complain(app, f"{file.title}: {error}")
            else:
                if not objects:
                    self._complain(app, f"{file.title} has no object")
                stages.append(self._placed(objects, app))
        self._refuse_repeated(app, [one for stage in stages for one in stage])
        record = self._records.get(app.name)
        salt = record.salt if record and record.salt else secrets.token_hex(16)
        config = salted_digest(salt, stages[0])
        stages = [manifests.with_config(stage, config) for stage in stages]
        digest = digest_of(app.place, stages)
        return Wanted(app, Content(digest, stages), salt)

    def _of_chart(self, app: Application, file: SourceFile) -> Wanted | None:
        archive = self._archive(app, file)
        if archive is None:
            return None
        try:
            version = version_of(archive)
        except Unusable as error:
            self._complain(app, f"{file.title}: {error}")
            return None
        stages = [self._placed(configuration(app), app)]
        digest = digest_of(app.place, stages, archive, app.values)
        chart = Chart(app.name, version, archive, app.values)
        rendered = self._rendered(app, chart, self._host) if self._host else ()
        content = Content(digest, stages, version)
        return Wanted(app, content, secrets.token_hex(16), chart, rendered)

    def _rendered(
        self, app: Application, chart: Chart, host: ApplicationHost
    ) -> Sequence[Object]:
        self._api_versions = self._api_versions or host.objects.api_versions()
        place = (app.name, app.place, self._version, self._api_versions)
        record = self._records.get(app.name)
        upgrade = record is not None and record.good is not None
        try:
            text = host.charts.render(chart, *place, upgrade=upgrade)
            return self._placed(self._parsed(text), app)
        except errors.CommandFailed as error:
            reason = error.fields["tail"].removeprefix("Error: ")
            if self._may_come(app) and looks_up(chart.archive):
                text = "Application %s: its chart cannot be rendered yet: %s"
                LOG.warning(text, app.name, reason)
            else:
                self._complain(app, f"Helm cannot render the chart: {reason}")
        except Unusable as error:
            self._complain(app, f"what Helm renders of the chart {error}")
        return ()

    def _may_come(self, app: Application) -> bool:
        """Whether something that its chart looks up may be made before it."""
        return bool(app.config or app.secrets or self._apps[0].name != app.name)

    def _parsed(self, text: str) -> Sequence[Object]:
        """The objects of a manifest.

        :raises Unusable: also if there are too many, with those before them.
        """
        objects = manifests.parse(text)
        self._values_left -= size(objects)
        if self._values_left < 0:
            raise Unusable(f"has, with those before it, more than {MOST_VALUES} values")
        return objects

    def _placed(self, objects: Sequence[Object], app: Application) -> list[Object]:
        return list(manifests.in_namespace(objects, app.place, self._wide))

    def _file(self, app: Application, file: SourceFile) -> bytes | None:
        """A file; None as for :meth:`_files`."""
        files = self._files(app, file)
        if files is None:
            return None
        if "" not in files:
            self._complain(app, f"{file.title} is a directory")
            return None
        return files[""]

    def _archive(self, app: Application, file: SourceFile) -> bytes | None:
        files = self._files(app, file)
        if files is None:
            return None
        return files[""] if "" in files else packed(files)

    def _files(self, app: Application, file: SourceFile) -> Mapping[str, bytes] | None:
        """What a file has, or a directory; None if it cannot be had, or not yet."""
        if self._left < 0:
            return None
        files = self._read_files(app, file)
        self._left -= sum(map(len, (files or {}).values()))
        if self._left < 0:
            text = f"{file.title} has, with the files before it, more than {LARGEST}"
            self._complain(app, f"{text} bytes")
            return None
        return files

    def _read_files(
        self, app: Application, file: SourceFile
    ) -> Mapping[str, bytes] | None:
        try:
            if file.path:
                return self._package.package_files(file.path)
            if self._host and file.url and file.sha256:
                return {"": self._host.fetch(file.url, file.sha256)}
        except errors.ConnectError:
            raise
        except errors.RemoteError as error:
            self._complain(app, str(error).rstrip("."))
        except OSError as error:
            reason = error.strerror or str(error)
            self._complain(app, f"{file.title} in the VNF package: {reason}")
        return None

    def _refuse_repeated(self, app: Application, objects: Sequence[Object]) -> None:
        seen = set()
        for one in objects:
            identity = manifests.identity(one)
            if identity in seen:
                self._complain(app, f"{manifests.title(one)} is given twice")
            seen.add(identity)

    def _complain(self, app: Application, text: str) -> None:
        self.problems.append(f"application {app.name}: {text}")


def namespace_of(app: Application) -> Object:
    metadata = {"name": app.place}
    return {"apiVersion": "v1", "kind": manifests.NAMESPACE, "metadata": metadata}


def configuration(app: Application) -> tuple[Object, ...]:
    """The ConfigMaps and Secrets of an application."""
    return (*_config_maps(app), *_secrets(app))


def _config_maps(app: Application) -> Iterator[Object]:
    for config in app.config:
        data = {entry.key: entry.value for entry in config.data}
        yield _object("ConfigMap", app, config.name, data=data)


def _secrets(app: Application) -> Iterator[Object]:
    for secret in app.secrets:
        # Not stringData: a key that is left out later would stay.
        data = {
            entry.key: base64.b64encode(entry.value.get_secret_value().encode())
            for entry in secret.data
        }
        texts = {key: value.decode() for key, value in data.items()}
        yield _object("Secret", app, secret.name, type=secret.type, data=texts)


def _object(kind: str, app: Application, name: str, **content: Any) -> Object:
    metadata = {"name": name, "namespace": app.place}
    return {"apiVersion": "v1", "kind": kind, "metadata": metadata, **content}
