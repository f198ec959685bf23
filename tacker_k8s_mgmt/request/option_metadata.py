"""What a field of the parameters says about its option, among its annotations.

:class:`Becomes` names the variables of kubespray that the option becomes; one of
:class:`Changeable` and :class:`Fixed` says whether a later request may change it. That
it is a secret its type says (:class:`.field_types.SecretForm`).
"""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from itertools import chain
from types import MappingProxyType
from typing import Any

from pydantic import SecretStr
from pydantic.fields import FieldInfo

from tacker_k8s_mgmt.request import key_aliases
from tacker_k8s_mgmt.request.key_aliases import Location, Structure


def opened(option: Any) -> Any:
    """The option, as text if it is a secret."""
    return option.get_secret_value() if isinstance(option, SecretStr) else option


def _itself(option: Any) -> Any:
    """The option; of a structure, that it is there."""
    return True if isinstance(option, Structure) else option


class Becomes:
    """Variables of kubespray that an option becomes unless it is None or False.

    A field may have several of these. Of a structure, its options' variables are its
    own too.

    :param names: what ``kubespray_vars`` must not have beside the option.
    :param value: makes the value of all of these; None where other options have a say,
        so that :mod:`tacker_k8s_mgmt.kubespray.variables` makes it.
    :param is_default: whether ``kubespray_vars`` may have another value after all.
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

    :param unless_new: why it may not, where the instantiation did not have the option.
    """

    unless_new: str = ""


@dataclass(frozen=True)
class Fixed:
    """A later request may repeat the option and not change it.

    :param reason: end of the sentence that refuses the change.
    :param but_by_upgrade: whether an upgrade may change it.
    """

    reason: str
    but_by_upgrade: bool = False


CHANGEABLE = Changeable()
BUILT_ON = Fixed("the cluster was built on it")


def variables(structure: Structure) -> dict[str, Any]:
    """The variables of all options of a structure that are made of one option each."""
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
    """By attribute, the variables that it stands for: neither has a say in the other's.

    :param defaults: those that it sets instead, where a user may have other values.
    """
    return MappingProxyType(dict(_variable_names(model, (), defaults)))


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
    """By attribute, whether it may change; None for a structure that says it of each.

    A structure without a mark is changed attribute by attribute.
    """
    found = key_aliases.attributes(model).items()
    return MappingProxyType({name: _rule(attribute.info) for name, attribute in found})


def _rule(info: FieldInfo) -> Changeable | Fixed | None:
    rules = (mark for mark in info.metadata if isinstance(mark, Changeable | Fixed))
    return next(rules, None)


def _marks(info: FieldInfo) -> Iterator[Becomes]:
    return (mark for mark in info.metadata if isinstance(mark, Becomes))
