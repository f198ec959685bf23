# SPDX-License-Identifier: Apache-2.0
"""Metadata of an option, among the annotations of its field.

:class:`Becomes` names the kubespray variables that it sets; :class:`Changeable` or
:class:`Fixed` states whether a later request may change it. The metadata of secrets is
in their types (:class:`.field_types.SecretForm`).
"""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from itertools import chain
from typing import Any

from pydantic import SecretStr
from pydantic.fields import FieldInfo

from tacker_k8s_mgmt.request import key_aliases
from tacker_k8s_mgmt.request.key_aliases import Location, Structure


def opened(option: Any) -> Any:
    """The option's value, as text if it is a secret."""
    return option.get_secret_value() if isinstance(option, SecretStr) else option


def _itself(option: Any) -> Any:
    """The option's value; True for a structure."""
    return True if isinstance(option, Structure) else option


class Becomes:
    """Variables of kubespray that an option sets unless it is None or False.

    A field may have several of these. A structure has the variables of its options,
    too.

    :param names: the variables; ``kubespray_vars`` must not have them beside the
        option.
    :param value: computes the value of all of them; None where it depends on other
        options (:mod:`tacker_k8s_mgmt.kubespray.variables`).
    :param is_default: whether ``kubespray_vars`` may override the value.
    """

    def __init__(
        self,
        *names: str,
        value: Callable[[Any], Any] | None = _itself,
        is_default: bool = False,
    ) -> None:
        self.names = names
        self.value = value
        self.is_default = is_default


@dataclass(frozen=True)
class Changeable:
    """A later request may change the option.

    :param unless_new: why it may not add an option that the instantiation did not have.
    """

    unless_new: str = ""


@dataclass(frozen=True)
class Fixed:
    """A later request may repeat the option, but not change it.

    :param reason: end of the sentence that refuses a change.
    :param but_by_upgrade: whether an upgrade may change it.
    """

    reason: str
    but_by_upgrade: bool = False


CHANGEABLE = Changeable()
BUILT_ON = Fixed("the cluster was built on it")


def variables(structure: Structure) -> dict[str, Any]:
    """The variables of a structure's options that depend on a single option each."""
    built: dict[str, Any] = {}
    for name, info in type(structure).model_fields.items():
        option = opened(getattr(structure, name))
        if option is None or option is False:
            continue
        for mark in _marks(info):
            if mark.value:
                built |= dict.fromkeys(mark.names, mark.value(option))
        if isinstance(option, Structure):
            built |= variables(option)
    return built


@cache
def variable_names(
    model: type[Structure], *, defaults: bool = False
) -> Mapping[Location, tuple[str, ...]]:
    """By attribute, the variables that it sets and ``kubespray_vars`` must not have.

    :param defaults: return the variables that ``kubespray_vars`` may override, instead.
    """
    return dict(_variable_names(model, (), defaults))


def _variable_names(
    model: type[Structure], place: Location, defaults: bool
) -> Iterator[tuple[Location, tuple[str, ...]]]:
    for name, inner in key_aliases.border_names(model).items():
        here = (*place, name)
        below = dict(_variable_names(inner, here, defaults)) if inner else {}
        marks = _marks(key_aliases.attributes(model)[name].info)
        own = [v for mark in marks if mark.is_default is defaults for v in mark.names]
        if own:
            yield here, (*own, *chain.from_iterable(below.values()))
        else:
            yield from below.items()


@cache
def later(model: type[Structure]) -> Mapping[str, Changeable | Fixed | None]:
    """By attribute, whether it may change; None if its own attributes state that."""
    rules: dict[str, Changeable | Fixed | None] = {}
    for name, attribute in key_aliases.attributes(model).items():
        marks = attribute.info.metadata
        rule = (mark for mark in marks if isinstance(mark, Changeable | Fixed))
        rules[name] = next(rule, None)
    return rules


def _marks(info: FieldInfo) -> Iterator[Becomes]:
    return (mark for mark in info.metadata if isinstance(mark, Becomes))
