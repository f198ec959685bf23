# SPDX-License-Identifier: Apache-2.0
"""Settings of ``prepare`` that every later command needs."""

import json
from dataclasses import dataclass
from pathlib import Path

from lab.cloud import CloudError

#: VMs of a stock cloud image, and of one that is prepared for logins with passwords.
STOCK = "vm-stock"
VM = "vm"
#: The name of that image; every other one is a stock image.
PREPARED = "lab-prepared"
LAYER_OF_ALL = "common"
#: In its place for VMs that boot systemd.
LAYER_OF_SYSTEMD = "systemd"


@dataclass(frozen=True)
class Settings:
    """Where things are; kept as ``settings.json`` in the state directory.

    :ivar state: the cloud's state directory.
    :ivar cache: environments and downloads; hosts see it read-only.
    :ivar masks: directories of the machine that hosts must not see.
    :ivar ansible_environment: virtual environment with Ansible, inside the cache.
    :ivar programs: directory of kubectl, Helm and etcd, inside the cache.
    :ivar root: Debian root file system of VMs that boot systemd; None: ordinary VMs.
    :ivar memory: limit of each such VM in bytes.
    :ivar kubespray: a checkout of the real kubespray; None: the stand-in.
    """

    state: Path
    cache: Path
    masks: tuple[Path, ...]
    ansible_environment: Path
    programs: Path
    root: Path | None = None
    memory: int = 0
    kubespray: Path | None = None

    @property
    def base(self) -> Path:
        """Where the file layers lie; mounted in the lab's mount namespace only."""
        return self.state / "base"

    @property
    def mount_point(self) -> Path:
        """An empty directory on which every host mounts its own disk, unseen."""
        return self.state / "mnt"

    def layer(self, name: str) -> Path:
        """Directory of a file layer."""
        return self.base / name

    def boots_systemd(self, role: str) -> bool:
        """Whether the hosts with a role do."""
        return role in (VM, STOCK) and self.root is not None

    def layers(self, role: str) -> tuple[Path, ...]:
        """The layers of a host with a role, topmost first.

        :raises CloudError: there is no such role.
        """
        layers: tuple[Path, ...] = (self.layer(role), self.layer(LAYER_OF_ALL))
        if self.root and self.boots_systemd(role):
            layers = (self.layer(role), self.layer(LAYER_OF_SYSTEMD), self.root)
        if not all(layer.is_dir() for layer in layers):
            raise CloudError(
                f"No file layer for role {role} in {self.base}: prepare makes it, and"
                " it is visible only inside the lab's namespaces"
            )
        return layers

    def save(self) -> None:
        """Write the settings where :meth:`load` finds them."""
        values = {
            "cache": str(self.cache),
            "masks": [str(mask) for mask in self.masks],
            "ansible_environment": str(self.ansible_environment),
            "programs": str(self.programs),
            "root": str(self.root) if self.root else None,
            "memory": self.memory,
            "kubespray": str(self.kubespray) if self.kubespray else None,
        }
        self._file(self.state).write_text(json.dumps(values))

    @classmethod
    def load(cls, state: Path) -> "Settings":
        """The settings of a prepared lab.

        :raises CloudError: it is not prepared.
        """
        try:
            values = json.loads(cls._file(state).read_text())
        except FileNotFoundError:
            raise CloudError(f"No prepared cloud in {state}: run prepare") from None
        return cls(
            state=state,
            cache=Path(values["cache"]),
            masks=tuple(map(Path, values["masks"])),
            ansible_environment=Path(values["ansible_environment"]),
            programs=Path(values["programs"]),
            root=Path(values["root"]) if values["root"] else None,
            memory=values["memory"],
            kubespray=Path(values["kubespray"]) if values["kubespray"] else None,
        )

    @staticmethod
    def _file(state: Path) -> Path:
        return state / "settings.json"
