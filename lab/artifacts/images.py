# SPDX-License-Identifier: Apache-2.0
"""The images: which programs are in each, and what a container of it runs."""

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from types import MappingProxyType

from lab import command
from lab.artifacts import archives, debian, layout
from lab.artifacts.archives import Entry
from lab.artifacts.registry import Layer, Start, Storage
from lab.settings import Settings

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
            layout.WEB[0]: self._web,
            layout.MARIADB[0]: self._mariadb,
            layout.PYTHON[0]: self._python,
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
            root = debian.tree(self._settings, packages)
            entries = {entry.name: entry for entry in _DIRECTORIES}
            entries |= {entry.name: entry for entry in archives.of_directory(root)}
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
