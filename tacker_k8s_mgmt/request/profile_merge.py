# SPDX-License-Identifier: Apache-2.0
"""Merges the values of a profile below those of a request."""

from collections.abc import Callable, Mapping
from typing import Any

from tacker_k8s_mgmt.request import field_types, key_aliases
from tacker_k8s_mgmt.request.key_aliases import Location, Reading, Structure

_ROLES = ("master_node", "worker_node")


def _taint_key(taint: Any) -> tuple[str, str]:
    key, _, effect = str(taint).rpartition(":")
    return key.partition("=")[0], effect


def _item_key(name: str) -> Callable[[Any], Any]:
    return lambda item: item.get(name) if isinstance(item, Mapping) else item


#: The lists that are merged, with the key of an item.
_KEYS: Mapping[Location, Callable[[Any], Any]] = {
    **{
        (role, "node_labels"): (lambda label: str(label).partition("=")[0])
        for role in _ROLES
    },
    **{(role, "node_taints"): _taint_key for role in _ROLES},
    ("cluster", "registries"): _item_key("prefix"),
    ("private_registry_connection_info",): _item_key("server"),
}


def _is_there(model: type[Structure], name: str) -> bool:
    """Whether a structure has its defaults where a request does not have it."""
    return key_aliases.attributes(model)[name].info.default is not None


class Merge:
    """Merges a profile's values below those of a request.

    :ivar places: see :class:`.Expansion`, and so is *replaced*.
    """

    def __init__(self, reading: Reading) -> None:
        self._reading = reading
        self.places: dict[Location, Any] = {}
        self.replaced: dict[Location, Any] = {}

    def structure(
        self,
        model: type[Structure],
        given: Mapping[str, Any],
        default: Mapping[str, Any],
        place: Location,
    ) -> tuple[dict[str, Any], dict[str, Any]]:
        """The merged values of a structure, and what of the profile's holds."""
        values, applied = dict(given), {}
        for name, value in default.items():
            here = (*place, name)
            own = field_types.blank_is_absent(given.get(name))
            inner = key_aliases.border_names(model)[name]
            if own is None and self._reading.is_null(here):
                continue
            applied[name] = value
            if own is None and isinstance(value, Mapping) and _is_there(model, name):
                own = {}
            if own is None:
                values[name] = value
                self.places[here] = value
            elif isinstance(own, Mapping) and isinstance(value, Mapping):
                if inner:
                    merged = self.structure(inner, own, value, here)
                    values[name], applied[name] = merged
                else:
                    values[name] = self._variables(own, value, here)
            elif here in _KEYS and isinstance(own, list) and isinstance(value, list):
                values[name] = self._items(own, value, here)
            elif own != value:
                self.replaced[here] = value
        return values, applied

    def _variables(
        self, own: Mapping[str, Any], value: Mapping[str, Any], here: Location
    ) -> dict[str, Any]:
        for name in value:
            if name not in own:
                self.places[(*here, name)] = value[name]
            elif own[name] != value[name]:
                self.replaced[(*here, name)] = value[name]
        return {**value, **own}

    def _items(self, own: list[Any], value: list[Any], here: Location) -> list[Any]:
        key = _KEYS[here]
        known = {str(key(item)): item for item in own}
        items = list(own)
        for item in value:
            if (same := known.get(str(key(item)))) is None:
                self.places[(*here, str(len(items)))] = item
                items.append(item)
            elif same != item:
                self.replaced[(*here, str(own.index(same)))] = item
        return items
