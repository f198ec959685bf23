# SPDX-License-Identifier: Apache-2.0
"""The store as JSON, and the file it is kept in where there is no etcd."""

import json
import os
from pathlib import Path
from typing import Any, Protocol

from .resources import RESOURCES
from .store import Store

State = dict[str, Any]

# Writes that were not stored in time are lost with their resource versions, which must
# not be used again for others.
_VERSIONS_LOST = 1000


class Keeper(Protocol):
    """Where the state is between two lives of a server."""

    def load(self) -> State | None:
        """The state; None if there is none yet."""

    def save(self, state: State) -> None:
        """Keep this one instead."""


def dump(store: Store, signing_key: str) -> State:
    """Everything in the store, as of now."""
    with store.lock:
        return {
            "version": store.version,
            "signingKey": signing_key,
            "objects": [
                [*key, list(objects.values())] for key, objects in store.objects.items()
            ],
        }


def fill(store: Store, state: State) -> str:
    """Fill an empty store.

    :returns: the key that the tokens in it were signed with.
    """
    store.version = store.saved_version = state["version"] + _VERSIONS_LOST
    for group, plural, objects in state["objects"]:
        if (group, plural) in RESOURCES or objects:
            store.objects[group, plural] = {
                (o["metadata"].get("namespace"), o["metadata"]["name"]): o
                for o in objects
            }
    return str(state["signingKey"])


class StateFile:
    """A file that is replaced in one step; for its owner only: it holds secrets."""

    def __init__(self, path: Path) -> None:
        self._path = path

    def load(self) -> State | None:
        """:raises ValueError: the file is not of this program."""
        return json.loads(self._path.read_text()) if self._path.exists() else None

    def save(self, state: State) -> None:
        """:raises OSError: it cannot be written."""
        self._path.parent.mkdir(parents=True, exist_ok=True)
        temporary = self._path.with_name(self._path.name + ".new")
        descriptor = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
        with os.fdopen(descriptor, "w") as file:
            json.dump(state, file)
            file.flush()
            os.fsync(file.fileno())
        temporary.replace(self._path)
