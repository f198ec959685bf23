# SPDX-License-Identifier: Apache-2.0
"""Images in the storage directory of a registry, put there without one running.

The layout is that of the ``filesystem`` driver of the distribution project
(``registry:2`` and ``registry:3``): blobs by their digest, and for each repository
links to its layers, manifests and tags.
"""

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from lab.artifacts import archives

_ROOT = Path("docker/registry/v2")
_MEDIA = "application/vnd.oci.image"
# Something fixed: the same contents shall be the same image.
_CREATED = "1970-01-01T00:00:00Z"
PATH = "PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"


@dataclass(frozen=True)
class Layer:
    """A layer that a storage has.

    :ivar digest: SHA-256 of its blob, in hexadecimal.
    :ivar plain: the same of what it is uncompressed.
    :ivar size: of the blob, in bytes.
    """

    digest: str
    plain: str
    size: int


@dataclass(frozen=True)
class Start:
    """The default command of an image's containers."""

    entrypoint: Sequence[str] = ()
    command: Sequence[str] = ()
    labels: Mapping[str, str] = field(default_factory=dict)


class Storage:
    """The storage directory of a registry."""

    def __init__(self, directory: Path) -> None:
        self._root = directory / _ROOT

    def layer(self, entries: Iterable[archives.Entry]) -> Layer:
        """Add a layer."""
        unfinished = self._root / "unfinished"
        unfinished.parent.mkdir(parents=True, exist_ok=True)
        digest, plain = archives.write(unfinished, entries)
        blob = self._blob(digest)
        blob.parent.mkdir(parents=True, exist_ok=True)
        unfinished.replace(blob)
        return Layer(digest, plain, blob.stat().st_size)

    def image(
        self, repository: str, tag: str, layers: Sequence[Layer], start: Start
    ) -> str:
        """Add an image for amd64 and let a tag name it.

        :returns: the digest of its manifest, in hexadecimal.
        """
        config = {
            "created": _CREATED,
            "architecture": "amd64",
            "os": "linux",
            "config": {
                "Env": [PATH],
                "Entrypoint": list(start.entrypoint) or None,
                "Cmd": list(start.command) or None,
                "Labels": dict(start.labels) or None,
            },
            "rootfs": {
                "type": "layers",
                "diff_ids": [f"sha256:{layer.plain}" for layer in layers],
            },
        }
        described, size = self._document(config)
        manifest = {
            "schemaVersion": 2,
            "mediaType": f"{_MEDIA}.manifest.v1+json",
            "config": _descriptor("config.v1+json", described, size),
            "layers": [
                _descriptor("layer.v1.tar+gzip", layer.digest, layer.size)
                for layer in layers
            ],
        }
        digest, _ = self._document(manifest)
        parts = [described, *(layer.digest for layer in layers)]
        self._name(repository, tag, digest, parts)
        return digest

    def adopt(self, repository: str, tag: str, directory: Path) -> None:
        """Move an image for amd64 from a directory that skopeo has copied it to.

        :param directory: as skopeo's ``dir:`` is.
        """
        document = directory / "manifest.json"
        manifest = json.loads(document.read_text())
        described = (manifest["config"], *manifest["layers"])
        names = {part["digest"].partition(":")[2] for part in described}
        parts = [self._keep(directory / name) for name in names]
        self._name(repository, tag, self._keep(document), parts)

    def lacks(self, repository: str, tag: str) -> bool:
        """Whether an image, or a part of it for amd64, is missing."""
        home = self._root / "repositories" / repository / "_manifests/tags"
        try:
            digest = (home / tag / "current/link").read_text().partition(":")[2]
            manifest = self._read(digest)
            if "manifests" in manifest:
                manifest = self._read(_of_amd64(manifest["manifests"]))
            parts = [manifest["config"], *manifest["layers"]]
        except (OSError, ValueError, KeyError, StopIteration):
            return True
        blobs = (self._blob(part["digest"].partition(":")[2]) for part in parts)
        return not all(blob.is_file() for blob in blobs)

    def _read(self, digest: str) -> Any:
        return json.loads(self._blob(digest).read_text())

    def _document(self, content: Mapping[str, Any]) -> tuple[str, int]:
        data = json.dumps(content, sort_keys=True).encode()
        unfinished = self._root / "unfinished"
        unfinished.write_bytes(data)
        return self._keep(unfinished), len(data)

    def _keep(self, file: Path) -> str:
        """Move a file to the blobs; its digest."""
        digest = archives.sha256(file)
        blob = self._blob(digest)
        blob.parent.mkdir(parents=True, exist_ok=True)
        file.replace(blob)
        return digest

    def _name(
        self, repository: str, tag: str, digest: str, parts: Iterable[str]
    ) -> None:
        """Let a tag name the manifest with a digest, whose parts are there."""
        home = self._root / "repositories" / repository
        for part in parts:
            _link(home / "_layers/sha256" / part, part)
        _link(home / "_manifests/revisions/sha256" / digest, digest)
        named = home / "_manifests/tags" / tag
        _link(named / "index/sha256" / digest, digest)
        _link(named / "current", digest)

    def _blob(self, digest: str) -> Path:
        return self._root / "blobs/sha256" / digest[:2] / digest / "data"


def _of_amd64(manifests: Iterable[Mapping[str, Any]]) -> str:
    found = (
        manifest["digest"].partition(":")[2]
        for manifest in manifests
        if manifest.get("platform", {}).get("architecture") == "amd64"
    )
    return str(next(found))


def _descriptor(kind: str, digest: str, size: int) -> dict[str, Any]:
    return {"mediaType": f"{_MEDIA}.{kind}", "digest": f"sha256:{digest}", "size": size}


def _link(directory: Path, digest: str) -> None:
    directory.mkdir(parents=True, exist_ok=True)
    (directory / "link").write_text(f"sha256:{digest}")
