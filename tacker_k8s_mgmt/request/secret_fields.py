"""Where the parameters have secrets, as their model says.

An attribute is a secret if its type is pydantic's ``SecretStr``; what there is to know
of it besides says its :class:`.field_types.SecretForm`. In free-form variables a value
is one if its name, or one that it stands below, looks like that of a secret.
"""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from types import MappingProxyType
from typing import Any, TypeVar, get_args, get_origin

from pydantic import SecretStr

from tacker_k8s_mgmt.model import redaction
from tacker_k8s_mgmt.request import key_aliases
from tacker_k8s_mgmt.request.field_types import SECRET, SecretForm
from tacker_k8s_mgmt.request.key_aliases import Attribute, Location, Structure

#: Of a variable whose name is none of a secret.
_SHOWN = SecretForm(masked=redaction.without_secret)
#: Variables that are nested deeper are none that Ansible could use.
_DEEPEST = 60


@dataclass(frozen=True)
class Place:
    """Where a secret stands.

    :param is_variable: whether it is a value among free-form variables.
    """

    location: Location
    form: SecretForm
    is_variable: bool = False


Holder = TypeVar("Holder")
#: Tells what is to stand at a place where something stands now.
Change = Callable[[Place, Any], Any]


def attributes(
    model: type[Structure], place: Location = ()
) -> Iterator[tuple[Location, SecretForm]]:
    """Every secret attribute; ``*`` stands for the number of a list's item."""
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
    """A copy of the parameters, with *change* at every secret that is there.

    :param holder: the finished parameters, whose secrets are handed on as texts, or the
        values of a request with the specification's names (:func:`.key_aliases.read`).
    :param whole: whether what a free-form variable has below a secret's name is one
        secret, and not each text in it.
    """
    made: Holder = _Visitor(change, whole).structure(model, holder, ())
    return made


@dataclass(frozen=True)
class _Visitor:
    change: Change
    whole: bool

    def structure(self, model: type[Structure], holder: Any, place: Location) -> Any:
        is_finished, changes = isinstance(holder, Structure), {}
        for name, attribute in key_aliases.attributes(model).items():
            key = attribute.field if is_finished else name
            value = getattr(holder, key) if is_finished else holder.get(key)
            if value is not None:
                form = _forms(model).get(name)
                new = self._attribute(attribute, form, value, (*place, name))
                if new != value:
                    changes[key] = new
        if not is_finished:
            return {**holder, **changes}
        # Without changes that are none, it still knows which values are defaults.
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

    def _variables(self, value: Any, here: Location, *, secret: bool = False) -> Any:
        """Free-form variables; *secret* below a name that looks like that of one."""
        place = Place(here, SECRET if secret else _SHOWN, is_variable=True)
        if is_reference(value, named_secret=secret) or len(here) > _DEEPEST:
            return self.change(place, value)
        if isinstance(value, Mapping | list) and secret and self.whole:
            return self.change(place, value)
        if isinstance(value, Mapping):
            made: dict[Any, Any] = {}
            for name, inner in value.items():
                named_so = secret or redaction.names_secret(str(name), _told(inner))
                at = (*here, str(name))
                made[name] = self._variables(inner, at, secret=named_so)
            return made
        if isinstance(value, list):
            return [
                self._variables(inner, (*here, str(number)), secret=secret)
                for number, inner in enumerate(value)
            ]
        if value is None or isinstance(value, bool):
            return value
        if (isinstance(value, int | float) or _is_plain(value)) and not secret:
            return value
        return self.change(place, value)


@cache
def _forms(model: type[Structure]) -> Mapping[str, SecretForm]:
    """The secret attributes of a structure."""
    forms = {}
    for name, attribute in key_aliases.attributes(model).items():
        own = (m for m in attribute.info.metadata if isinstance(m, SecretForm))
        if _is_hidden(attribute.info.annotation):
            forms[name] = next(own, SECRET)
    return MappingProxyType(forms)


def _is_hidden(annotation: Any) -> bool:
    return annotation is SecretStr or any(map(_is_hidden, get_args(annotation)))


def is_reference(value: Any, *, named_secret: bool = True) -> bool:
    """Whether a structure among free-form variables is meant as a reference.

    :param named_secret: whether it stands below a name that looks like that of a
        secret. Elsewhere a ``file`` is a variable's own.
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


def _told(value: Any) -> Any:
    """What a name is judged with: of a reference, the text that will stand there."""
    return next(iter(value.values())) if is_reference(value) else value
