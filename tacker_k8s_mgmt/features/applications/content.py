# SPDX-License-Identifier: Apache-2.0
"""What an application consists of, and the record of it in the cluster.

Records are Secrets in a namespace of this driver's own. They are not in the
applications' namespaces: users who may write Secrets there could have this driver apply
objects of their choice, with its own rights.
"""

import base64
import gzip
import hashlib
import hmac
import json
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field, replace
from datetime import datetime, timezone
from typing import Any

from tacker_k8s_mgmt import errors
from tacker_k8s_mgmt.model import untrusted
from tacker_k8s_mgmt.model.manifests import OWNER, Object
from tacker_k8s_mgmt.remote.kubernetes.kubectl import KubeClient
from tacker_k8s_mgmt.remote.kubernetes.owned_objects import Manifests

_FORMAT = 1
#: Bytes of all records of a cluster. The Secret of one has at most a megabyte.
LARGEST = 64 * 1024 * 1024
#: Owner of an application's objects, exposures and record.
_PREFIX = "app."

APPLYING, APPLIED, FAILED = "being applied", "applied", "failed"
#: A change of it failed, and it is what it was before.
BACK = "gone back"
#: Its removal has begun: nothing is known to be there still.
REMOVING = "being removed"


class DamagedRecord(Exception):
    """A record that is not as it was written."""


def owner_of(name: str) -> str:
    """The owner of the objects of an application."""
    return f"{_PREFIX}{name}"


@dataclass
class Progress:
    """How far workloads and Jobs are: why they are not done, by their titles.

    :param failed: those that do not continue by themselves.
    """

    pending: dict[str, str] = field(default_factory=dict)
    failed: dict[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class Chart:
    """A Helm chart, ready for Helm.

    :param archive: a ``.tgz``.
    :param values: with secrets.
    """

    name: str
    version: str
    archive: bytes
    values: Mapping[str, Any] = field(default_factory=dict, repr=False)


@dataclass(frozen=True)
class Content:
    """What an application consists of.

    :param digest: of everything in it.
    :param stages: objects that this driver applies; the first one is namespace,
        configuration and secrets.
    :param version: of the chart; "" for manifests.
    :param revision: of the release in Helm, once it is there; 0 for manifests.
    """

    digest: str
    stages: Sequence[Sequence[Object]] = field(repr=False)
    version: str = ""
    revision: int = 0

    @property
    def objects(self) -> list[Object]:
        """All objects of all stages."""
        return [one for stage in self.stages for one in stage]


@dataclass(frozen=True)
class InstalledApplication:
    """What the cluster records of an application.

    :param state: :data:`APPLYING`, :data:`APPLIED`, :data:`BACK`, :data:`FAILED` or
        :data:`REMOVING`.
    :param chart: whether it is a release of Helm.
    :param detail: why it failed, without secrets.
    :param revision: counts its changes.
    :param updated: when it was written, ISO 8601.
    :param volumes: what becomes of its volumes: ``keep`` or ``delete``.
    :param good: what was last applied completely.
    :param salt: of the digest of configuration that pods have.
    :param leaving: its volumes' claims and its chart's hooks, by name only, which
        cannot be found any more when a removal has begun.
    """

    name: str
    namespace: str
    state: str
    chart: bool = False
    detail: str = ""
    revision: int = 0
    updated: str = ""
    volumes: str = "keep"
    good: Content | None = None
    salt: str = field(default="", repr=False)
    leaving: Sequence[Object] = ()

    def has(self, digest: str) -> bool:
        """Whether the cluster has this content, and nothing of another one."""
        known = self.good is not None and self.good.digest == digest
        return known and self.state in (APPLIED, BACK)

    def pack(self) -> str:
        """As base64 text of compressed JSON."""
        fields = asdict(self)
        if not self.leaving:
            # Earlier releases do not know it.
            del fields["leaving"]
        text = json.dumps({"format": _FORMAT, **fields}, sort_keys=True)
        # Without the time, so that the same record is the same text.
        return base64.b64encode(gzip.compress(text.encode(), mtime=0)).decode()

    def changed(self, **fields: Any) -> "InstalledApplication":
        """A copy with other fields."""
        return replace(self, **fields)

    def enter(self, state: str, **fields: Any) -> "InstalledApplication":
        """A copy as of now, in another state; without a detail if none is given."""
        updated = datetime.now(timezone.utc).isoformat(timespec="seconds")
        fields = {"detail": "", **fields, "updated": updated}
        return replace(self, state=state, **fields)


def unpacked(text: str, largest: int = LARGEST) -> str:
    """The JSON text of a record of :meth:`Record.pack`.

    :param largest: bytes that it may have.
    :raises Damaged: it has more, or is none.
    """
    try:
        data = base64.b64decode(text, validate=True)
        return untrusted.unpack_gzip(data, largest).decode()
    except untrusted.TooLarge:
        raise DamagedRecord("it is too large, by itself or with the others") from None
    except (untrusted.Damaged, ValueError):
        raise DamagedRecord("it is not as it was written") from None


def read(text: str) -> InstalledApplication:
    """The record of a JSON text of :func:`unpacked`.

    :raises Damaged: it is none of this format.
    """
    try:
        fields = untrusted.parse_json(text)
        if fields.pop("format") != _FORMAT:
            raise DamagedRecord("it is of another release of tacker-k8s-mgmt")
        good, leaving = fields.pop("good"), tuple(fields.pop("leaving", ()))
        content = Content(**good) if good else None
        return untrusted.checked(
            InstalledApplication(**fields, good=content, leaving=leaving)
        )
    except (ValueError, TypeError, KeyError, AttributeError, RecursionError):
        raise DamagedRecord("its content cannot be understood") from None


def decoded(text: str) -> str:
    """The text of an entry of a Secret.

    :raises Damaged: it is none.
    """
    try:
        return base64.b64decode(text, validate=True).decode()
    except ValueError:
        raise DamagedRecord("its content cannot be understood") from None


def digest_of(*parts: Any) -> str:
    """The digest of values, as JSON; bytes count by their own digest."""

    def plain(value: Any) -> str:
        return hashlib.sha256(value).hexdigest()

    text = json.dumps(parts, sort_keys=True, default=plain)
    return hashlib.sha256(text.encode()).hexdigest()


def salted_digest(salt: str, objects: Sequence[Object]) -> str:
    """A short digest of configuration, which does not tell a weak secret's value."""
    text = json.dumps(list(objects), sort_keys=True).encode()
    return hmac.new(salt.encode(), text, hashlib.sha256).hexdigest()[:16]


NAMESPACE = "tacker-k8s-mgmt-applications"
_OWNER = "applications"
_KIND = "tacker-k8s-mgmt/application"
_NO_NAMESPACE = f'namespaces "{NAMESPACE}" not found'
_LIMIT = 60.0  # seconds


class ApplicationRecords:
    """The records of one cluster's applications.

    Each method raises ``RemoteError`` if kubectl fails or the node cannot be reached.

    :param client: kubectl on a control plane.
    """

    def __init__(self, client: KubeClient) -> None:
        self._client = client
        self._manifests = Manifests(client)

    def read(self) -> dict[str, InstalledApplication]:
        """Return the records by the applications' names.

        :raises ClusterError: one cannot be understood.
        """
        selector = f"{OWNER}={_OWNER}"
        records, size, values = {}, 0, 0
        for one in self._manifests.get("secrets", NAMESPACE, selector):
            name = one["metadata"]["name"]
            with _naming(name):
                packed = decoded(one["data"]["record"])
                text = unpacked(packed, LARGEST - size)
                size += len(text)
                values += untrusted.limit(text, untrusted.MOST_JSON_VALUES - values)
                records[name] = read(text)
        return records

    def write(self, record: InstalledApplication) -> None:
        content = {"type": _KIND, "stringData": {"record": record.pack()}}
        secret = {**_bare(record.name), **content}
        try:
            self._manifests.apply([secret], owner=_OWNER, timeout=_LIMIT)
        except errors.CommandFailed as error:
            if _NO_NAMESPACE not in error.fields["output"]:
                raise
            metadata = {"name": NAMESPACE}
            space = {"apiVersion": "v1", "kind": "Namespace", "metadata": metadata}
            self._manifests.apply([space, secret], owner=_OWNER, timeout=_LIMIT)

    def remove(self, name: str) -> None:
        self._manifests.delete([_bare(name)], _LIMIT)


def _bare(name: str) -> dict[str, Any]:
    metadata = {"name": name, "namespace": NAMESPACE}
    return {"apiVersion": "v1", "kind": "Secret", "metadata": metadata}


@contextmanager
def _naming(name: str) -> Iterator[None]:
    """Say which record cannot be understood."""
    try:
        yield
    except (DamagedRecord, KeyError, TypeError, ValueError) as error:
        reason = str(error) if isinstance(error, DamagedRecord) else "it is none"
        raise errors.ClusterError(
            detail=f"The record of the application {name}, Secret {NAMESPACE}/{name}, "
            f"cannot be used: {reason}.",
            hint="Delete that Secret; the application is then brought in agreement "
            "with its request as if it were new, and cannot go back.",
        ) from None
