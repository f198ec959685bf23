# SPDX-License-Identifier: Apache-2.0
"""Container images for a mirror, made of programs and Debian packages."""

import gzip
import hashlib
import io
import json
import re
import shutil
import tarfile
import tempfile
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from types import MappingProxyType
from typing import Any

from lab import LabError, command, packages
from lab.artifacts import releases
from lab.files import digest
from lab.settings import Settings

# The fastest: it is packed once and unpacked on every node.
LEVEL = 1


@dataclass(frozen=True)
class Entry:
    """A member of an archive.

    :ivar name: without a leading slash.
    :ivar source: a file with its contents, or the contents themselves. None: a
        directory.
    :ivar link: where a symbolic link points to; then there is no source.
    """

    name: str
    source: Path | bytes | None = None
    mode: int = 0o755
    link: str = ""


def write_archive(target: Path, entries: Iterable[Entry]) -> tuple[str, str]:
    """Write a compressed archive, whose members all belong to root.

    :returns: SHA-256 of the archive and of what it is uncompressed, in hexadecimal.
    """
    with tempfile.TemporaryFile(dir=target.parent) as plain:
        with tarfile.open(fileobj=plain, mode="w", format=tarfile.GNU_FORMAT) as tar:
            for entry in entries:
                _add(tar, entry)
        plain.seek(0)
        digest = hashlib.file_digest(plain, "sha256").hexdigest()
        plain.seek(0)
        with (
            target.open("wb") as file,
            gzip.GzipFile("", "wb", LEVEL, file, mtime=0) as packed,
        ):
            shutil.copyfileobj(plain, packed)
    return sha256(target), digest


def sha256(path: Path) -> str:
    """SHA-256 of a file, in hexadecimal."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def of_directory(root: Path) -> list[Entry]:
    """All that is in a directory, in the order of the names."""
    entries = []
    for path in sorted(root.rglob("*")):
        name, mode = str(path.relative_to(root)), path.lstat().st_mode & 0o7777
        if path.is_symlink():
            entries.append(Entry(name, link=str(path.readlink())))
        else:
            source = None if path.is_dir() else path
            entries.append(Entry(name, source, mode))
    return entries


def _add(tar: tarfile.TarFile, entry: Entry) -> None:
    info = tarfile.TarInfo(entry.name)
    info.mode = entry.mode
    if entry.link:
        info.type, info.linkname = tarfile.SYMTYPE, entry.link
        tar.addfile(info)
    elif entry.source is None:
        info.type = tarfile.DIRTYPE
        tar.addfile(info)
    elif isinstance(entry.source, bytes):
        info.size = len(entry.source)
        tar.addfile(info, io.BytesIO(entry.source))
    else:
        info.size = entry.source.stat().st_size
        with entry.source.open("rb") as file:
            tar.addfile(info, file)


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

    def layer(self, entries: Iterable[Entry]) -> Layer:
        """Add a layer."""
        unfinished = self._root / "unfinished"
        unfinished.parent.mkdir(parents=True, exist_ok=True)
        digest, plain = write_archive(unfinished, entries)
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
        digest = sha256(file)
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


DEBIAN_LIMIT = 600
OS_RELEASE = Path("/etc/os-release")
# Change it to keep other parts of packages.
DEBIAN_RECIPE = "1"
# What packages need for their installation only, and nginx for a check of its own.
_SKIPPED = frozenset(
    {"debconf", "cdebconf", "dpkg", "init-system-helpers", "install-info", "iproute2"}
)
_NEEDLESS = (
    *("usr/share/doc", "usr/share/man", "usr/share/locale", "usr/share/lintian"),
    *("usr/share/bash-completion", "usr/share/bug", "usr/lib/systemd"),
)
# Directories of the root that are links on an installed system; newer packages leave
# them out, older ones have them as directories.
_MERGED = ("bin", "sbin", "lib", "lib64")
_ONLY = tuple(
    f"--no-{kind}"
    for kind in (
        "recommends",
        "suggests",
        "conflicts",
        "breaks",
        "replaces",
        "enhances",
    )
)


def debian_tree(settings: Settings, names: Sequence[str]) -> Path:
    """A directory with the contents of packages and of all that they depend on.

    :param settings: the tree is kept in the cache, for this Debian's release.
    :raises LabError: apt does not have them, or there is no apt.
    """
    if not shutil.which("apt-get"):
        raise LabError(
            f"Images need programs of Debian ({', '.join(names)}) and there is no apt:"
            " give a mirror, MIRROR=<directory>",
            2,
        )
    key = digest([OS_RELEASE], *names, DEBIAN_RECIPE)
    target = settings.cache / "artifacts" / f"{names[0]}-debian-{key}"
    if target.exists():
        return target
    target.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=target.parent) as name:
        wanted = sorted(debian_closure(names))
        root = packages.unpack(wanted, Path(name), DEBIAN_LIMIT)
        _merge_usr(root)
        for part in _NEEDLESS:
            shutil.rmtree(root / part, ignore_errors=True)
        root.rename(target)
    return target


def debian_closure(names: Sequence[str]) -> set[str]:
    """Packages and all that they need to run."""
    found: set[str] = set()
    new = set(names)
    while new:
        found |= new
        new = set(_needs(sorted(new))) - found - _SKIPPED
    return found


def _merge_usr(root: Path) -> None:
    """Make a tree's layout that of an installed system."""
    for name in _MERGED:
        former, merged = root / name, root / "usr" / name
        if former.is_dir():
            shutil.copytree(former, merged, symlinks=True, dirs_exist_ok=True)
            shutil.rmtree(former)
        merged.mkdir(parents=True, exist_ok=True)
        former.symlink_to(f"usr/{name}")


def _needs(names: Sequence[str]) -> Iterator[str]:
    """What packages depend on directly; of alternatives the first."""
    said = command.run(["apt-cache", *_ONLY, "depends", *names], limit=DEBIAN_LIMIT)
    alternative = False
    for bar, need in re.findall(r"(?m)^ ([ |])(?:Pre)?Depends: (\S+)$", said):
        if not alternative and not need.startswith("<"):
            yield need
        alternative = bar == "|"


LIMIT = 120
# Both of what kube-proxy has a mode for.
IPTABLES = ("iptables", "nftables", "busybox-static")
NGINX = ("nginx", "libnginx-mod-stream")
BUSYBOX = ("busybox-static",)
MARIADB = ("mariadb-server-core", "mariadb-client-core", "busybox-static")
PYTHON = ("python3", "busybox-static")
PAUSE = Path(__file__).with_name("pause.c")
#: Its scripts stand in for those of the image of Docker Hub.
MARIADB_SCRIPTS = Path(__file__).with_name("mariadb")
_OURS: Mapping[str, str] = MappingProxyType(
    {"org.opencontainers.image.description": "a small one of the laboratory's"}
)
_DIRECTORIES = (
    Entry("tmp", mode=0o1777),
    *(Entry(name) for name in ("etc", "run", "var")),
)
_IPTABLES_NAMES = tuple(
    f"{name}{ending}"
    for name in ("iptables", "ip6tables")
    for ending in ("", "-save", "-restore")
)
# nginx runs its workers as these.
_PASSWD = b"root:x:0:0:root:/root:/bin/sh\nnobody:x:65534:65534:nobody:/:/bin/sh\n"
_GROUP = b"root:x:0:\nnogroup:x:65534:\n"
# kubespray's configuration takes the stream module for granted; Debian's has to be
# loaded. The pages' own name is the pod's: httpd as process 1 would not end by itself.
_STREAM = "load_module /usr/lib/nginx/modules/ngx_stream_module.so; daemon off;"
_ANSWER = (
    "mkdir -p /www && hostname >/www/index.html && trap 'exit 0' TERM"
    " && { httpd -f -p 8080 -h /www & wait; }"
)


class Builder:
    """Puts images into the storage of a registry.

    :param programs: by part, the directory with its programs.
    """

    def __init__(
        self, settings: Settings, storage: Storage, programs: Mapping[str, Path]
    ) -> None:
        self._settings = settings
        self._storage = storage
        self._programs = programs
        self._bases: dict[Sequence[str], Layer] = {}
        self._special: Mapping[str, Callable[[], tuple[list[Layer], Start]]] = {
            "kube-proxy": self._kube_proxy,
            "pause": self._pause,
            "coredns/coredns": self._coredns,
            "flannel/flannel": self._flannel,
            "flannel/flannel-cni-plugin": self._flannel_cni_plugin,
            "library/nginx": self._nginx,
            "library/registry": self._registry,
            "library/busybox": self._busybox,
            "rancher/local-path-provisioner": self._local_path_provisioner,
            releases.WEB[0]: self._web,
            releases.MARIADB[0]: self._mariadb,
            releases.PYTHON[0]: self._python,
        }

    def add(self, repository: str, tag: str) -> None:
        """Make an image.

        :raises LabError: a program of Debian's could not be fetched.
        """
        make = self._special.get(repository, lambda: self._kubernetes(repository))
        layers, start = make()
        self._storage.image(repository, tag, layers, start)

    def _kubernetes(self, name: str) -> tuple[list[Layer], Start]:
        program = self._program("kubernetes", name, f"usr/local/bin/{name}")
        return [self._storage.layer((*_DIRECTORIES, program))], Start()

    def _kube_proxy(self) -> tuple[list[Layer], Start]:
        program = self._program("kubernetes", "kube-proxy", "usr/local/bin/kube-proxy")
        return [self._base(IPTABLES), self._storage.layer([program])], Start()

    def _coredns(self) -> tuple[list[Layer], Start]:
        program = self._program("coredns", "coredns", "coredns")
        layer = self._storage.layer((*_DIRECTORIES, program))
        return [layer], Start(entrypoint=["/coredns"])

    def _flannel(self) -> tuple[list[Layer], Start]:
        program = self._program("flannel", "flannel", "opt/bin/flanneld")
        layers = [self._base(IPTABLES), self._storage.layer([program])]
        return layers, Start(entrypoint=["/opt/bin/flanneld"])

    def _flannel_cni_plugin(self) -> tuple[list[Layer], Start]:
        program = self._program("flannel-cni-plugin", "flannel", "flannel")
        return [self._base(BUSYBOX), self._storage.layer([program])], Start()

    def _pause(self) -> tuple[list[Layer], Start]:
        program = self._settings.cache / "artifacts" / "pause"
        argv = ["gcc", "-Os", "-static", "-s", "-o", str(program), str(PAUSE)]
        command.run(argv, limit=LIMIT)
        layer = self._storage.layer([Entry("pause", program)])
        return [layer], Start(entrypoint=["/pause"], labels=_OURS)

    def _nginx(self) -> tuple[list[Layer], Start]:
        users = [
            Entry("etc/passwd", _PASSWD, 0o644),
            Entry("etc/group", _GROUP, 0o644),
        ]
        layers = [self._base(NGINX), self._storage.layer(users)]
        return layers, Start(command=["/usr/sbin/nginx", "-g", _STREAM], labels=_OURS)

    def _registry(self) -> tuple[list[Layer], Start]:
        program = self._program("registry", "registry", "bin/registry")
        return [self._storage.layer((*_DIRECTORIES, program))], Start()

    def _local_path_provisioner(self) -> tuple[list[Layer], Start]:
        name = "local-path-provisioner"
        program = self._program(name, name, f"usr/bin/{name}")
        return [self._storage.layer((*_DIRECTORIES, program))], Start()

    def _busybox(self) -> tuple[list[Layer], Start]:
        return [self._base(BUSYBOX)], Start(command=["sh"], labels=_OURS)

    def _web(self) -> tuple[list[Layer], Start]:
        start = Start(command=["/bin/sh", "-c", _ANSWER], labels=_OURS)
        return [self._base(BUSYBOX)], start

    def _mariadb(self) -> tuple[list[Layer], Start]:
        scripts = [
            Entry(f"usr/local/bin/{path.name}", path)
            for path in sorted(MARIADB_SCRIPTS.iterdir())
        ]
        users = [Entry("etc/passwd", _PASSWD, 0o644), Entry("var/lib/mysql")]
        layers = [self._base(MARIADB), self._storage.layer([*users, *scripts])]
        start = Start(entrypoint=["/usr/local/bin/entrypoint.sh"], labels=_OURS)
        return layers, start

    def _python(self) -> tuple[list[Layer], Start]:
        return [self._base(PYTHON)], Start(command=["python3"], labels=_OURS)

    def _program(self, part: str, name: str, place: str) -> Entry:
        return Entry(place, self._programs[part] / name)

    def _base(self, packages: Sequence[str]) -> Layer:
        """The layer with Debian packages; the same for all images that have them."""
        if packages not in self._bases:
            root = debian_tree(self._settings, packages)
            entries = {entry.name: entry for entry in _DIRECTORIES}
            entries |= {entry.name: entry for entry in of_directory(root)}
            entries |= {entry.name: entry for entry in _links(root)}
            self._bases[packages] = self._storage.layer(entries.values())
        return self._bases[packages]


def _links(root: Path) -> list[Entry]:
    """What the packages' installation would have linked."""
    links = []
    if (root / "usr/sbin/xtables-nft-multi").exists():
        # The flavour that hosts of this Debian use.
        links += [
            Entry(f"usr/sbin/{name}", link="xtables-nft-multi")
            for name in _IPTABLES_NAMES
        ]
    busybox = root / "usr/bin/busybox"
    if busybox.exists():
        applets = command.run([str(busybox), "--list"], limit=LIMIT).split()
        links += [
            Entry(f"usr/bin/{name}", link="busybox")
            for name in applets
            if name != "busybox"
        ]
    return links
