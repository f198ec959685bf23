# SPDX-License-Identifier: Apache-2.0
"""What applications are to be: their files, read and rendered."""

import base64
import secrets
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from oslo_log import log as logging

from tacker_k8s_mgmt import errors
from tacker_k8s_mgmt.model import applications, chart_archive, manifests, untrusted
from tacker_k8s_mgmt.model.applications import Chart, Content, Record
from tacker_k8s_mgmt.model.manifests import Object, Unusable
from tacker_k8s_mgmt.remote.kubernetes.application_host import ApplicationHost
from tacker_k8s_mgmt.remote.site import Site
from tacker_k8s_mgmt.request.applications import Application, SourceFile

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
        """All of its objects."""
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
        records: Mapping[str, Record] | None = None,
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
        config = applications.salted(salt, stages[0])
        stages = [manifests.with_config(stage, config) for stage in stages]
        digest = applications.digest(app.place, stages)
        return Wanted(app, Content(digest, stages), salt)

    def _of_chart(self, app: Application, file: SourceFile) -> Wanted | None:
        archive = self._archive(app, file)
        if archive is None:
            return None
        try:
            version = chart_archive.version_of(archive)
        except Unusable as error:
            self._complain(app, f"{file.title}: {error}")
            return None
        stages = [self._placed(configuration(app), app)]
        digest = applications.digest(app.place, stages, archive, app.values)
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
            if self._may_come(app) and chart_archive.looks_up(chart.archive):
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
        self._values_left -= untrusted.size(objects)
        if self._values_left < 0:
            raise Unusable(f"has, with those before it, more than {MOST_VALUES} values")
        return objects

    def _placed(self, objects: Sequence[Object], app: Application) -> list[Object]:
        return list(manifests.placed(objects, app.place, self._wide))

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
        return files[""] if "" in files else chart_archive.packed(files)

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
    """The namespace of an application."""
    metadata = {"name": app.place}
    return {
        "apiVersion": "v1",
        "kind": manifests.NAMESPACE,
        "metadata": metadata,
    }


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
