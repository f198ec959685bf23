# SPDX-License-Identifier: Apache-2.0
"""A real control plane on loopback: etcd, API server, controllers, scheduler.

The options are those that kubeadm and kubespray give, as far as they change answers.
"""

import socket
import ssl
import subprocess
import time
import urllib.error
import urllib.request
from collections.abc import Mapping
from pathlib import Path

from tests.real.differential.site import ADMIN_TOKEN

_START_LIMIT = 180.0  # seconds for each program, on a machine that does much else
_STOP_LIMIT = 30.0
#: kubespray: ``kube_controller_node_monitor_grace_period``.
NODE_GRACE = 40


def free_port() -> int:
    """A port of loopback that nothing listens on now."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def openssl(directory: Path, *words: str) -> None:
    """Run openssl in a directory."""
    subprocess.run(["openssl", *words], cwd=directory, check=True, capture_output=True)


def make_certificates(directory: Path) -> None:
    """``ca``, ``server`` and ``admin`` (``.crt``, ``.key``), and ``sa.key``."""
    curve = ("-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes")
    authority = ("-subj", "/CN=kubernetes", "-keyout", "ca.key", "-out", "ca.crt")
    openssl(directory, "req", "-x509", *curve, "-days", "2", *authority)
    names = "subjectAltName=IP:127.0.0.1,DNS:localhost,DNS:kubernetes"
    for name, subject, extension in (
        ("server", "/CN=kube-apiserver", names),
        ("admin", "/O=system:masters/CN=admin", "keyUsage=digitalSignature"),
    ):
        made = ("-subj", subject, "-keyout", f"{name}.key", "-out", f"{name}.csr")
        openssl(directory, "req", "-new", *curve, *made)
        (directory / f"{name}.ext").write_text(extension)
        signed = ("-CA", "ca.crt", "-CAkey", "ca.key", "-CAcreateserial", "-days", "2")
        files = ("-in", f"{name}.csr", "-out", f"{name}.crt", "-extfile", f"{name}.ext")
        openssl(directory, "x509", "-req", *signed, *files)
    openssl(directory, "genrsa", "-out", "sa.key", "2048")


class ControlPlane:
    """The programs of a real control plane.

    :param binaries: paths of ``etcd``, ``kube-apiserver``, ..., by name.
    :param directory: theirs, with :func:`make_certificates`' files.
    """

    def __init__(self, binaries: Mapping[str, Path], directory: Path) -> None:
        self._binaries = binaries
        self._directory = directory
        self._running: dict[str, subprocess.Popen[bytes]] = {}
        self._etcd_ports = (free_port(), free_port())
        self._port = free_port()
        self.url = f"https://127.0.0.1:{self._port}"
        (directory / "tokens.csv").write_text(
            f'{ADMIN_TOKEN},admin,admin,"system:masters"\n'
        )

    def _start(self, program: str, *options: str) -> None:
        with (self._directory / f"{program}.log").open("ab") as log:
            self._running[program] = subprocess.Popen(
                [self._binaries[program], *options],
                cwd=self._directory,
                stdout=log,
                stderr=log,
            )

    def start_etcd(self) -> None:
        client, peer = (f"http://127.0.0.1:{port}" for port in self._etcd_ports)
        self._start(
            "etcd",
            *("--data-dir", str(self._directory / "etcd"), "--unsafe-no-fsync"),
            *("--listen-client-urls", client, "--advertise-client-urls", client),
            *("--listen-peer-urls", peer, "--initial-advertise-peer-urls", peer),
            *("--initial-cluster", f"default={peer}"),
        )

    def start_api_server(self) -> None:
        self._start(
            "kube-apiserver",
            f"--etcd-servers=http://127.0.0.1:{self._etcd_ports[0]}",
            *("--bind-address=127.0.0.1", "--advertise-address=127.0.0.1"),
            "--endpoint-reconciler-type=none",
            f"--secure-port={self._port}",
            *("--tls-cert-file=server.crt", "--tls-private-key-file=server.key"),
            *("--client-ca-file=ca.crt", "--token-auth-file=tokens.csv"),
            *("--authorization-mode=Node,RBAC", "--allow-privileged=true"),
            "--enable-admission-plugins=NodeRestriction",
            "--service-account-issuer=https://kubernetes.default.svc.cluster.local",
            *("--service-account-key-file=sa.key",),
            "--service-account-signing-key-file=sa.key",
            "--service-cluster-ip-range=10.233.0.0/18",
        )

    def start_controllers(self) -> None:
        kubeconfig = self._directory / "admin.conf"
        kubeconfig.write_text(_KUBECONFIG.format(url=self.url))
        common = (f"--kubeconfig={kubeconfig}", "--leader-elect=false")
        bound = ("--bind-address=127.0.0.1", f"--secure-port={free_port()}")
        self._start(
            "kube-controller-manager",
            *(*common, *bound, "--service-account-private-key-file=sa.key"),
            *("--root-ca-file=ca.crt", f"--node-monitor-grace-period={NODE_GRACE}s"),
        )
        bound = ("--bind-address=127.0.0.1", f"--secure-port={free_port()}")
        self._start("kube-scheduler", *common, *bound)

    def start(self) -> None:
        """Start everything; returns once the API server is ready."""
        self.start_etcd()
        self.start_api_server()
        self.await_ready()
        self.start_controllers()

    def await_ready(self) -> None:
        """Wait for ``/readyz``."""
        deadline = time.monotonic() + _START_LIMIT
        while not self._is_ready():
            program = self._running["kube-apiserver"]
            if program.poll() is not None or time.monotonic() > deadline:
                log = (self._directory / "kube-apiserver.log").read_text()
                raise AssertionError(f"kube-apiserver is not ready:\n{log[-3000:]}")
            time.sleep(0.2)

    def _is_ready(self) -> bool:
        context = ssl.create_default_context(cafile=str(self._directory / "ca.crt"))
        try:
            with urllib.request.urlopen(  # noqa: S310  (https, our own)
                f"{self.url}/readyz", timeout=10, context=context
            ) as answer:
                return bool(answer.status == 200)
        except (OSError, urllib.error.URLError):
            return False

    def stop(self, program: str) -> None:
        """End one program and wait for its end."""
        process = self._running.pop(program, None)
        if process is None:
            return
        process.terminate()
        try:
            process.wait(_STOP_LIMIT)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()

    def stop_all(self) -> None:
        """End every program at once: nothing that they keep is read again."""
        for process in self._running.values():
            process.kill()
        for process in self._running.values():
            process.wait()


_KUBECONFIG = """\
apiVersion: v1
kind: Config
clusters:
- name: real
  cluster: {{server: "{url}", certificate-authority: ca.crt}}
users:
- name: admin
  user: {{client-certificate: admin.crt, client-key: admin.key}}
contexts:
- name: real
  context: {{cluster: real, user: admin}}
current-context: real
"""
