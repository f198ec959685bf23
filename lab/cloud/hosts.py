# SPDX-License-Identifier: Apache-2.0
"""The hosts: which exist, which run, and what can be done to them.

A host is a directory ``hosts/<id>`` under the cloud's state: ``host.json`` is the
document that it was created from, ``pid`` names its process 1 while it has one,
``boot.log`` is what it said when it started.
"""

import contextlib
import fcntl
import json
import os
import re
import shutil
import signal
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from lab.cloud import CloudError, boot, networks
from lab.cloud.boot import SystemdMachine
from lab.cloud.settings import PREPARED, STOCK, VM, Settings
from lab.cloud.state import Refusals
from lab.cloud.systemd import cgroups
from lab.namespace import start_time
from lab.settings import PATH

STOP_LIMIT = 10.0


@dataclass(frozen=True)
class Host:
    """A host as it was asked for.

    :ivar role: file layer that makes it what it is: ``vm-stock`` for a VM of a stock
        cloud image, ``vm`` for one of the prepared image, or ``ansible-server``.
    :ivar public_key: of the key pair in Nova's stand-in; "" without one.
    :ivar cloud_config: the user data for the stand-in for cloud-init.
    """

    id: str
    name: str
    role: str
    nics: tuple[networks.Nic, ...]
    public_key: str = ""
    cloud_config: Mapping[str, Any] = field(default_factory=dict)

    @classmethod
    def from_document(cls, document: Mapping[str, Any]) -> "Host":
        """A host from the document that Heat sends; unknown keys are left alone.

        :raises CloudError: the document lacks something.
        """
        names = networks.Nic.__dataclass_fields__
        try:
            nics = [{key: n[key] for key in names} for n in document.get("nics", [])]
            return cls(
                id=document["id"],
                name=document["name"],
                role=document.get("role") or _role(document.get("image", PREPARED)),
                nics=tuple(networks.Nic(**nic) for nic in nics),
                public_key=document.get("public_key") or "",
                cloud_config=document.get("cloud_config") or {},
            )
        except KeyError as error:
            raise CloudError(f"The server's document has no {error}") from error

    @property
    def addresses(self) -> tuple[str, ...]:
        """The addresses in the order of the ports."""
        return tuple(nic.address for nic in self.nics)

    def matches(self, text: str) -> bool:
        """Whether a user may mean this host: name, start of the id, or address."""
        by_id = len(text) >= 4 and self.id.startswith(text)
        return text == self.name or by_id or text in self.addresses


def _role(image: str | None) -> str:
    return VM if image == PREPARED else STOCK


def host_name(server_name: str) -> str:
    """The host name that a server of this name gets: lower case, RFC 1123."""
    name = re.sub(r"[^a-z0-9-]+", "-", server_name.lower())[:63].strip("-")
    return name or "host"


def find(hosts: Sequence[Host], text: str) -> Host:
    """The one host that is meant.

    :raises CloudError: none, or several: then all of them are named.
    """
    found = [host for host in hosts if host.matches(text)]
    if len(found) == 1:
        return found[0]
    if not found:
        known = ", ".join(sorted(host.name for host in hosts)) or "none"
        raise CloudError(f"No host {text}; there are: {known}")
    listed = "; ".join(f"{h.id} {h.name} {' '.join(h.addresses)}" for h in found)
    raise CloudError(f"{text} means more than one host: {listed}")


class Hosts:
    """The hosts of one lab; usable only inside the lab's namespaces.

    :param state: the cloud's state directory.
    """

    def __init__(self, state: Path) -> None:
        self._state = state
        self._directory = state / "hosts"

    def create(self, document: Mapping[str, Any]) -> None:
        """Start a host; one that exists already is rebuilt from scratch.

        :raises CloudError: it is refused, or did not come up.
        """
        host = Host.from_document(document)
        Refusals(self._state).check(host.name)
        settings = Settings.load(self._state)
        with self._locked(host.id):
            home = self._directory / host.id
            self._stop(host)
            home.mkdir(parents=True, exist_ok=True)
            self._keep(document)
            pid = boot.start(self._machine(host, settings), home / "boot.log")
            (home / "pid").write_text(f"{pid} {start_time(pid)}")

    def _machine(self, host: Host, settings: Settings) -> boot.Machine | SystemdMachine:
        layers = settings.layers(host.role)
        first_start = self._first_start(host.id)
        given = host.public_key, host.cloud_config
        shutil.rmtree(first_start, ignore_errors=True)
        if any(given):
            boot.make_first_start_layer(first_start, layers, *given)
            layers = (first_start, *layers)
        if not settings.boots_systemd(host.role):
            return boot.Machine(
                hostname=host_name(host.name),
                nics=host.nics,
                layers=layers,
                mount=settings.mount_point,
                masks=settings.masks,
                visible=settings.cache,
            )
        groups = self._groups(host)
        groups.make(settings.memory)
        return SystemdMachine(
            hostname=host_name(host.name),
            nics=host.nics,
            layers=layers,
            mount=settings.mount_point,
            home=self._directory / host.id,
            visible=settings.cache,
            groups=groups,
        )

    def delete(self, host_id: str) -> None:
        """Stop a host and forget it; it may be gone already.

        :raises CloudError: it is refused.
        """
        with self._locked(host_id):
            host = self._load(host_id)
            if host and Refusals(self._state).concern(host.name):
                raise CloudError(f"The hypervisor of {host.name} does not answer")
            if host:
                self._stop(host)
                shutil.rmtree(self._directory / host_id)
                shutil.rmtree(self._first_start(host_id), ignore_errors=True)

    def kill(self, host: Host) -> None:
        """Switch a host off at once; its file system is lost, its record stays."""
        with self._locked(host.id):
            self._stop(host)

    def detach(self, host_id: str) -> None:
        """Take away a host's ports for good, so that another host can have them."""
        with self._locked(host_id):
            host, pid = self._load(host_id), self.pid(host_id)
            if host and pid:
                networks.unplug(len(host.nics), pid)

    def rewire(self, document: Mapping[str, Any]) -> None:
        """Give a host other ports or addresses while it runs.

        :param document: as it was created from, with the new ``nics``.
        :raises CloudError: ``ip`` refused.
        """
        host = Host.from_document(document)
        with self._locked(host.id):
            before, pid = self._load(host.id), self.pid(host.id)
            if before is None:
                return
            if pid:
                networks.rewire(before.nics, host.nics, pid)
            self._keep(document)

    def connect(self, host: Host, *, up: bool) -> None:
        """Plug in the cables of a host, or pull them out at the bridge.

        :raises CloudError: the host is off.
        """
        self._running(host)
        networks.set_links(host.nics, up=up)

    def all(self) -> list[Host]:
        """Every host, running or not, by name."""
        ids = [path.parent.name for path in self._directory.glob("*/host.json")]
        hosts = [host for host in map(self._load, ids) if host]
        return sorted(hosts, key=lambda host: (host.name, host.id))

    def pid(self, host_id: str) -> int | None:
        """Process 1 of a host that runs."""
        try:
            pid, started = (self._directory / host_id / "pid").read_text().split()
        except FileNotFoundError:
            return None
        return int(pid) if start_time(int(pid)) == started else None

    def states(self) -> dict[str, str]:
        """``running``, ``cut`` (a cable is out) or ``off``, by id."""
        down = networks.links_down()
        states = {}
        for host in self.all():
            cut = any(nic.link in down for nic in host.nics)
            running = "cut" if cut else "running"
            states[host.id] = running if self.pid(host.id) else "off"
        return states

    def enter(self, host: Host, argv: Sequence[str]) -> list[str]:
        """The command that runs ``argv`` as root on a host's console.

        :raises CloudError: the host is off.
        """
        pid = self._running(host)
        # --wd without a value: with --wd=/ the working directory is broken.
        namespaces = ["--mount", "--uts", "--ipc", "--pid", "--net", "--root", "--wd"]
        clean = ["env", "-i", f"PATH={PATH}", "HOME=/root", "LANG=C.UTF-8"]
        enter = ["nsenter", "--target", str(pid), *namespaces]
        if not Settings.load(self._state).boots_systemd(host.role):
            return [*enter, *clean, *argv]
        entrances = self._groups(host).entrances()
        return cgroups.join(entrances, [*enter, "--cgroup", *clean, *argv])

    def _running(self, host: Host) -> int:
        pid = self.pid(host.id)
        if not pid:
            raise CloudError(f"Host {host.name} is off")
        return pid

    def _first_start(self, host_id: str) -> Path:
        """The file layer of what cloud-init's stand-in did; in memory as all layers."""
        return self._state / "base" / "first-start" / host_id

    def _groups(self, host: Host) -> cgroups.HostGroups:
        return cgroups.HostGroups(self._state, host.id, cgroups.current())

    def _keep(self, document: Mapping[str, Any]) -> None:
        path = self._directory / document["id"] / "host.json"
        # Readers take no lock.
        new = path.with_suffix(".new")
        new.write_text(json.dumps(document))
        new.replace(path)

    def _load(self, host_id: str) -> Host | None:
        try:
            text = (self._directory / host_id / "host.json").read_text()
        except FileNotFoundError:
            return None
        return Host.from_document(json.loads(text))

    def _stop(self, host: Host) -> None:
        pid = self.pid(host.id)
        if pid:
            networks.unplug(len(host.nics), pid)
            # Process 1 of the namespace: the kernel ends all others with it.
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
            _wait_for_end(pid, host.name)
        # An ordinary host has none.
        self._groups(host).remove()
        (self._directory / host.id / "pid").unlink(missing_ok=True)

    @contextlib.contextmanager
    def _locked(self, host_id: str) -> Iterator[None]:
        self._directory.mkdir(parents=True, exist_ok=True)
        with open(self._directory / f"{host_id}.lock", "w") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            yield


def _wait_for_end(pid: int, name: str) -> None:
    deadline = time.monotonic() + STOP_LIMIT
    while start_time(pid):
        if time.monotonic() > deadline:
            raise CloudError(f"Host {name} (process {pid}) does not end")
        time.sleep(0.005)
