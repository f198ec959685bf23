# SPDX-License-Identifier: Apache-2.0
"""Namespaces that are being deleted: what is in them goes first."""

from .. import custom
from ..objects import is_terminating, name_of
from ..resources import NAMESPACES
from ..store import Store


def step(store: Store) -> None:
    """One round over all namespaces."""
    for namespace in store.all(NAMESPACES):
        if not is_terminating(namespace):
            continue
        kinds = [kind for kind in store.kinds.values() if kind.namespaced]
        name = name_of(namespace)
        # Objects that cannot be listed cannot be deleted: the namespace waits for them.
        known = [kind for kind in kinds if not custom.unreadable(store, kind)]
        for kind in known:
            for obj in store.all(kind, name):
                store.delete(kind, obj)
        if known == kinds and not any(store.all(kind, name) for kind in kinds):
            store.remove(NAMESPACES, namespace)
