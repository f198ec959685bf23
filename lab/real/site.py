# SPDX-License-Identifier: Apache-2.0
"""What one real laboratory is made of, for every command that comes after ``up``."""

import json
from dataclasses import asdict, dataclass
from pathlib import Path

from lab import LabError


@dataclass(frozen=True)
class Wanted:
    """What a laboratory is made of.

    :ivar kubespray: see :func:`.checkout.find`.
    :ivar also: other releases of kubespray whose downloads it is to serve as well.
    :ivar source: directory of files and images, ``internet`` or ``build``; None: the
        internet if it answers.
    """

    kubespray: str
    also: tuple[str, ...] = ()
    source: Path | str | None = None


@dataclass(frozen=True)
class Site:
    """A real laboratory.

    :ivar kubespray: directory of the checkout.
    :ivar version: the checkout's, such as ``2.31.0``.
    :ivar ansible: virtual environment with the Ansible that the checkout requires.
    :ivar mirrors: by release of kubespray the directory with ``files``, ``images`` and
        perhaps ``checksums.yaml``.
    """

    kubespray: str
    version: str
    ansible: str
    mirrors: dict[str, str]

    @property
    def release(self) -> str:
        """The checkout's own: ``v2.31.0``."""
        return f"v{self.version}"

    @property
    def mirror(self) -> Path:
        """The mirror of the checkout's own release."""
        return Path(self.mirrors[self.release])

    @property
    def others(self) -> dict[str, Path]:
        """The mirrors of other releases."""
        own = self.release
        return {name: Path(p) for name, p in self.mirrors.items() if name != own}

    def save(self, state: Path) -> None:
        """Write it where :meth:`load` finds it."""
        self._path(state).write_text(json.dumps(asdict(self)))

    @classmethod
    def load(cls, state: Path) -> "Site":
        """What the laboratory in a state directory is made of.

        :raises LabError: it is not a real one.
        """
        if found := cls.find(state):
            return found
        raise LabError(f"The laboratory in {state} has no real kubespray", 2)

    @classmethod
    def find(cls, state: Path) -> "Site | None":
        """The same; None for a laboratory with the stand-in for kubespray."""
        path = cls._path(state)
        return cls(**json.loads(path.read_text())) if path.exists() else None

    @staticmethod
    def _path(state: Path) -> Path:
        return state / "site.json"
