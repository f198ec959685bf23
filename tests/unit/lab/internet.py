# SPDX-License-Identifier: Apache-2.0
"""The hosts that kubespray downloads from, as one HTTPS server on loopback.

Its contents are a mirror's directory. curl and skopeo reach it by configuration files
in their home directory, so that the code under test uses kubespray's own addresses.
"""

import hashlib
import ssl
import subprocess
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

from lab.artifacts import releases
from lab.artifacts.images import Start, Storage

HOSTS = (
    *("dl.k8s.io", "get.helm.sh", "github.com"),
    *("registry.k8s.io", "registry-1.docker.io"),
)
REGISTRIES = ("registry.k8s.io", "docker.io")
MANIFEST = "application/vnd.oci.image.manifest.v1+json"


def published(directory: Path, release: releases.Release) -> Path:
    """A mirror of files and images with a release's own names."""
    for file in releases.FILES:
        place = directory / "files" / file.place(release.wanted[file.part])
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_text(file.name)
    storage = Storage(directory / "images")
    for image in (*releases.IMAGES, *releases.OPTIONAL_IMAGES):
        reference = image.reference(release.wanted[image.part])
        storage.image(*reference, [storage.layer([])], Start())
    return directory


def kubespray(directory: Path, release: releases.Release, source: Path) -> Path:
    """What a checkout of kubespray has on the checksums of published files."""
    role = directory / "roles/kubespray_defaults"
    downloads, tables = ["---\n"], ["---\n"]
    for file in releases.FILES:
        version = release.wanted[file.part]
        content = (source / "files" / file.place(version)).read_bytes()
        table = f"{file.checksum.removesuffix('_checksum')}_checksums"
        downloads.append(
            f'{file.checksum}: "{{{{ {table}[image_arch][x_version] }}}}"\n'
        )
        tables.append(
            f"{table}:\n"
            f"  arm64:\n    {version}: sha256:{'a' * 64}\n"
            f"  amd64:\n    9.9.9: sha256:{'b' * 64}\n"
            f"    {version}: sha256:{hashlib.sha256(content).hexdigest()}\n"
            f"  ppc64le:\n    {version}: sha256:{'c' * 64}\n"
        )
    for name, lines in (
        ("defaults/main/download.yml", downloads),
        ("vars/main/checksums.yml", tables),
    ):
        (role / name).parent.mkdir(parents=True, exist_ok=True)
        (role / name).write_text("".join(lines))
    return directory


class Internet:
    """The server.

    :ivar requests: the path of every request, with the range that it wanted.
    :ivar broken: paths that are answered by an error, with its status.
    """

    def __init__(self, contents: Path, work: Path) -> None:
        self.requests: list[str] = []
        self.broken: dict[str, int] = {}
        self._contents = contents
        self._registry = contents / "images/docker/registry/v2"
        certificate, key = work / "cert.pem", work / "key.pem"
        names = ",".join(f"DNS:{host}" for host in HOSTS)
        subprocess.run(
            [
                *(
                    "openssl",
                    "req",
                    "-x509",
                    "-newkey",
                    "ec",
                    "-nodes",
                    "-subj",
                    "/CN=a",
                ),
                *("-pkeyopt", "ec_paramgen_curve:prime256v1", "-keyout", str(key)),
                *("-out", str(certificate), "-addext", f"subjectAltName={names}"),
            ],
            check=True,
            capture_output=True,
            timeout=60,
        )
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(certificate, key)
        self._server = ThreadingHTTPServer(("127.0.0.1", 0), self._handler())
        self._server.socket = context.wrap_socket(
            self._server.socket, server_side=True, do_handshake_on_connect=False
        )
        self.port = self._server.server_address[1]
        (work / ".curlrc").write_text(
            f'connect-to = "::127.0.0.1:{self.port}"\ncacert = "{certificate}"\n'
        )
        registries = work / ".config/containers/registries.conf"
        registries.parent.mkdir(parents=True)
        registries.write_text(
            "".join(
                f'[[registry]]\nprefix = "{name}"\ninsecure = true\n'
                f'location = "127.0.0.1:{self.port}/{name}"\n'
                for name in REGISTRIES
            )
        )
        threading.Thread(target=self._server.serve_forever, daemon=True).start()

    def close(self) -> None:
        """Answer no more."""
        self._server.shutdown()
        self._server.server_close()

    def answer(self, host: str, path: str) -> Path | None:
        """The file with the answer to a request."""
        if path == "/v2/":
            return self._registry.parent
        if not path.startswith("/v2/"):
            return self._contents / "files" / f"{host}{path}"
        name, kind, reference = path.removeprefix("/v2/").rsplit("/", 2)
        repository = name.partition("/")[2]
        digest = reference.removeprefix("sha256:")
        if kind == "manifests" and digest == reference:
            tags = self._registry / "repositories" / repository / "_manifests/tags"
            link = tags / reference / "current/link"
            if not link.exists():
                return None
            digest = link.read_text().removeprefix("sha256:")
        return self._registry / "blobs/sha256" / digest[:2] / digest / "data"

    def _handler(internet) -> type[BaseHTTPRequestHandler]:
        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_GET(self) -> None:
                wanted = self.headers.get("Range", "")
                internet.requests.append(f"{self.path} {wanted}".strip())
                source = internet.answer(self.headers["Host"], self.path)
                status = internet.broken.get(self.path, 200)
                if source is None or not source.exists():
                    status = 404
                found = status == 200 and source and source.is_file()
                data = source.read_bytes() if found else b""
                first = int(wanted.removeprefix("bytes=").partition("-")[0] or 0)
                if found and wanted:
                    status = 206 if first < len(data) else 416
                self.send_response(status)
                if status == 206:
                    place = f"bytes {first}-{len(data) - 1}/{len(data)}"
                    self.send_header("Content-Range", place)
                self.send_header("Content-Type", MANIFEST)
                data = data[first:]
                self.send_header("Content-Length", str(len(data)))
                self.end_headers()
                if self.command == "GET":
                    self.wfile.write(data)

            do_HEAD = do_GET

            def log_message(self, *_: object) -> None:
                pass

        return Handler
