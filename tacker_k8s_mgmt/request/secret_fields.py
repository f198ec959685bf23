# SPDX-License-Identifier: Apache-2.0
"""The places of secrets in the parameters, by their model.

An attribute is a secret if its type is pydantic's ``SecretStr``; a
:class:`.field_types.SecretForm` has its properties. In free-form variables, a value is
a secret if its name or that of a mapping around it looks like a secret's; of those that
are marked as :data:`OPEN` only references are.
"""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import cache
from typing import Any, TypeVar, get_args, get_origin

from pydantic import SecretStr

from tacker_k8s_mgmt.model import redaction
from tacker_k8s_mgmt.request import key_aliases
from tacker_k8s_mgmt.request.field_types import SECRET, SecretForm
from tacker_k8s_mgmt.request.key_aliases import Attribute, Location, Structure

#: For variables whose names do not look like a secret's.
_SHOWN = SecretForm(masked=redaction.without_secret)
#: Marks free-form variables whose texts are no secrets, whatever they are called: the
#: values of a chart name Secrets and their keys.
OPEN = "no secrets but references"
#: Deeper nested variables are of no use to Ansible.
DEEPEST = 60


@dataclass(frozen=True)
class Place:
    """The place of a secret.

    :param is_variable: whether it is among free-form variables.
    """

    location: Location
    form: SecretForm
    is_variable: bool = False


Holder = TypeVar("Holder")
#: Returns the new value of a secret for the present one.
Change = Callable[[Place, Any], Any]


def attributes(
    model: type[Structure], place: Location = ()
) -> Iterator[tuple[Location, SecretForm]]:
    """All secret attributes; ``*`` stands for the number of a list's item."""
    for name, attribute in key_aliases.attributes(model).items():
        here = (*place, name)
        if name in _forms(model):
            yield here, _forms(model)[name]
        if attribute.structure:
            inner = (*here, "*") if attribute.is_list else here
            yield from attributes(attribute.structure, inner)


def changed(
    model: type[Structure], holder: Holder, change: Change, *, whole: bool = False
) -> Holder:
    """A copy of the parameters, with *change* applied to every secret in it.

    :param holder: validated parameters, whose secrets *change* gets as text, or the
        values of a request by the specification's names (:func:`.key_aliases.read`).
    :param whole: treat a mapping or list of a secret free-form variable as one secret,
        not each text in it.
    """
    copy: Holder = _Visitor(change, whole).structure(model, holder, ())
    return copy


@dataclass(frozen=True)
class _Visitor:
    change: Change
    whole: bool

    def structure(self, model: type[Structure], holder: Any, place: Location) -> Any:
        validated, changes = isinstance(holder, Structure), {}
        for name, attribute in key_aliases.attributes(model).items():
            key = attribute.field if validated else name
            value = getattr(holder, key) if validated else holder.get(key)
            if value is not None:
                form = _forms(model).get(name)
                here = (*place, name)
                # Validated parameters have secrets in place of the references.
                is_open = not validated and OPEN in attribute.info.metadata
                new = (
                    self._references(value, here)
                    if is_open
                    else self._attribute(attribute, form, value, here)
                )
                if new != value:
                    changes[key] = new
        if not validated:
            return {**holder, **changes}
        # Unchanged values are not in the update: they still count as defaults.
        return holder.model_copy(update=changes) if changes else holder

    def _attribute(
        self, attribute: Attribute, form: SecretForm | None, value: Any, here: Location
    ) -> Any:
        model = attribute.structure
        if form:
            place = Place(here, form)
            if isinstance(value, SecretStr):
                return SecretStr(self.change(place, value.get_secret_value()))
            return self.change(place, value)
        if model and attribute.is_list and isinstance(value, list | tuple):
            return type(value)(
                self.structure(model, item, (*here, str(number)))
                if isinstance(item, Mapping | Structure)
                else item
                for number, item in enumerate(value)
            )
        if model and not attribute.is_list and isinstance(value, Mapping | Structure):
            return self.structure(model, value, here)
        if get_origin(attribute.info.annotation) is dict and isinstance(value, Mapping):
            return self._variables(value, here)
        return value

    def _references(self, value: Any, here: Location, *, secret: bool = False) -> Any:
        """Free-form variables without secrets; those in references apart."""
        if is_reference(value, named_secret=secret):
            return self.change(Place(here, SECRET, is_variable=True), value)
        if isinstance(value, Mapping):
            return {
                name: self._references(
                    inner,
                    (*here, str(name)),
                    secret=redaction.names_secret(str(name), _text_of(inner)),
                )
                for name, inner in value.items()
            }
        if isinstance(value, list):
            return [
                self._references(inner, (*here, str(number)), secret=secret)
                for number, inner in enumerate(value)
            ]
        if value is None or isinstance(value, str | int | float):
            return value
        # A reference that was read.
        return self.change(Place(here, SECRET, is_variable=True), value)

    def _variables(self, value: Any, here: Location, *, secret: bool = False) -> Any:
        """Free-form variables; *secret* if a name around them looks like a secret's."""
        place = Place(here, SECRET if secret else _SHOWN, is_variable=True)
        if is_reference(value, named_secret=secret) or len(here) > DEEPEST:
            return self.change(place, value)
        if isinstance(value, Mapping | list) and secret and self.whole:
            return self.change(place, value)
        if isinstance(value, Mapping):
            if any(redaction.shows_secret(str(name)) for name in value):
                # A name cannot be replaced alone.
                return self.change(replace(place, form=SECRET), value)
            return {
                name: self._variables(
                    inner,
                    (*here, str(name)),
                    secret=secret or redaction.names_secret(str(name), _text_of(inner)),
                )
                for name, inner in value.items()
            }
        if isinstance(value, list):
            return [
                self._variables(inner, (*here, str(number)), secret=secret)
                for number, inner in enumerate(value)
            ]
        is_open = not secret and (isinstance(value, int | float) or _is_plain(value))
        if is_open or value is None or isinstance(value, bool):
            return value
        return self.change(place, value)


@cache
def _forms(model: type[Structure]) -> Mapping[str, SecretForm]:
    """The secret attributes of a structure."""
    forms = {}
    for name, attribute in key_aliases.attributes(model).items():
        own = (m for m in attribute.info.metadata if isinstance(m, SecretForm))
        if _is_secret(attribute.info.annotation):
            forms[name] = next(own, SECRET)
    return forms


def _is_secret(annotation: Any) -> bool:
    return annotation is SecretStr or any(map(_is_secret, get_args(annotation)))


def is_reference(value: Any, *, named_secret: bool = True) -> bool:
    """Whether a mapping among free-form variables is a reference to a secret.

    :param named_secret: whether a name around it looks like a secret's. Elsewhere,
        ``file`` is part of the variable.
    """
    if not isinstance(value, Mapping) or len(value) != 1:
        return False
    spelled, inner = next(iter(value.items()))
    name = key_aliases.snake(str(spelled))
    return (
        name == "secret_ref"
        or (name == "not_kept" and inner is True)
        or (named_secret and name == "file" and _is_plain(inner))
    )


def _is_plain(value: Any) -> bool:
    return isinstance(value, str) and not redaction.shows_secret(value)


def _text_of(value: Any) -> Any:
    """The value, or the text of a reference, by which a variable's name is judged."""
    return next(iter(value.values())) if is_reference(value) else value
