"""The store as a JSON file, so that a restarted server still has its cluster."""

import json
import os
from pathlib import Path

from .resources import RESOURCES
from .store import Store


def save(store: Store, path: Path, signing_key: str) -> None:
    """Write everything but heartbeats' news, if anything changed since the last time.

    The file replaces the old one in one step and is readable by its owner only: it
    holds the cluster's secrets.
    """
    with store.lock:
        if store.version == store.saved_version and path.exists():
            return
        state = {
            "version": store.version,
            "signingKey": signing_key,
            "objects": [
                [*key, list(objects.values())] for key, objects in store.objects.items()
            ],
        }
        store.saved_version = store.version
    path.parent.mkdir(parents=True, exist_ok=True)
    temporary = path.with_name(path.name + ".new")
    descriptor = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
    with os.fdopen(descriptor, "w") as file:
        json.dump(state, file)
        file.flush()
        os.fsync(file.fileno())
    temporary.replace(path)


def load(store: Store, path: Path) -> str | None:
    """Fill an empty store from the file.

    :returns: the key that the tokens in it were signed with, or None without a file.
    """
    if not path.exists():
        return None
    state = json.loads(path.read_text())
    store.version = store.saved_version = state["version"]
    for group, plural, objects in state["objects"]:
        if (group, plural) in RESOURCES:
            store.objects[group, plural] = {
                (o["metadata"].get("namespace"), o["metadata"]["name"]): o
                for o in objects
            }
    return str(state["signingKey"])
