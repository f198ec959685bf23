"""What ``prepare`` was told and every later command needs to know."""

import json
from dataclasses import dataclass
from pathlib import Path

from lab.cloud import CloudError

LAYER_OF_ALL = "common"


@dataclass(frozen=True)
class Settings:
    """Where things are; kept as ``settings.json`` in the state directory.

    :ivar state: the cloud's state directory.
    :ivar cache: environments and downloads; hosts see it read-only.
    :ivar masks: directories of the machine that hosts must not see.
    :ivar ansible_environment: virtual environment with Ansible, inside the cache.
    :ivar kubectl: the program, inside the cache.
    """

    state: Path
    cache: Path
    masks: tuple[Path, ...]
    ansible_environment: Path
    kubectl: Path

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

    def layers(self, role: str) -> tuple[Path, ...]:
        """The layers of a host with a role, topmost first.

        :raises CloudError: there is no such role.
        """
        layers = (self.layer(role), self.layer(LAYER_OF_ALL))
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
            "kubectl": str(self.kubectl),
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
            kubectl=Path(values["kubectl"]),
        )

    @staticmethod
    def _file(state: Path) -> Path:
        return state / "settings.json"
