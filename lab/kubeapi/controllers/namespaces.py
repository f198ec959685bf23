# SPDX-License-Identifier: Apache-2.0
"""Namespaces that are being deleted: what is in them goes first."""

from ..objects import is_terminating, name_of
from ..resources import NAMESPACES, RESOURCES
from ..store import Store

_NAMESPACED = [resource for resource in RESOURCES.values() if resource.namespaced]


def step(store: Store) -> None:
    """One round over all namespaces."""
    for namespace in store.all(NAMESPACES):
        if not is_terminating(namespace):
            continue
        _clear(store, name_of(namespace))
        if not any(store.all(kind, name_of(namespace)) for kind in _NAMESPACED):
            store.remove(NAMESPACES, namespace)


def _clear(store: Store, name: str) -> None:
    for resource in _NAMESPACED:
        for obj in store.all(resource, name):
            store.delete(resource, obj)
