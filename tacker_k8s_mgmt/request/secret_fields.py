"""Where the parameters have secrets, as their model says.

An attribute is a secret if its type is pydantic's ``SecretStr``. In free-form variables
a value is one if its name, or one that it stands below, looks like that of a secret.
"""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from types import UnionType
from typing import Annotated, Any, Union, get_args, get_origin

from pydantic import SecretStr

from tacker_k8s_mgmt.model import redaction
from tacker_k8s_mgmt.request import key_aliases
from tacker_k8s_mgmt.request.field_types import SecretForm
from tacker_k8s_mgmt.request.key_aliases import Location, Structure

_PLAIN = SecretForm("(unknown)")
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


#: Tells what is to stand at a place where something stands now.
Change = Callable[[Place, Any], Any]


@dataclass(frozen=True)
class _Attribute:
    """What a structure has under one of its names.

    :param field: the name that the finished structure has for it.
    :param form: of the secret that it is, None if it is none.
    :param inner: its own structure; *item*: that of the items of a list.
    :param is_free: whether it has free-form variables.
    """

    name: str
    field: str
    form: SecretForm | None
    inner: type[Structure] | None
    item: type[Structure] | None
    is_free: bool


def attributes(
    model: type[Structure], place: Location = ()
) -> Iterator[tuple[Location, SecretForm]]:
    """Every secret attribute; ``*`` stands for the number of a list's item."""
    for one in _attributes(model):
        here = (*place, one.name)
        if one.form:
            yield here, one.form
        if one.inner:
            yield from attributes(one.inner, here)
        if one.item:
            yield from attributes(one.item, (*here, "*"))


def changed(
    model: type[Structure], values: Mapping[str, Any], change: Change
) -> dict[str, Any]:
    """A copy of a request's values, with *change* at every secret that is given.

    :param values: with the specification's names (:func:`.key_aliases.read`).
    """

    def variables(value: Any, here: Location) -> Any:
        return _variables(value, change, here)

    made: dict[str, Any] = visited(model, values, change, variables)
    return made


def visited(
    model: type[Structure],
    holder: Any,
    change: Change,
    variables: Callable[[Any, Location], Any],
    place: Location = (),
) -> Any:
    """A copy of a structure, with *change* at the text of every secret attribute.

    :param holder: the finished structure, or its values as a request has them.
    :param variables: makes free-form variables of those at a place.
    """
    is_finished, changes = isinstance(holder, Structure), {}
    for one in _attributes(model):
        key = one.field if is_finished else one.name
        value = getattr(holder, key) if is_finished else holder.get(key)
        if value is not None:
            new = _visited(one, value, change, variables, (*place, one.name))
            if new != value:
                changes[key] = new
    if not is_finished:
        return {**holder, **changes}
    # Without changes that are none, it still knows which values are defaults.
    return holder.model_copy(update=changes) if changes else holder


def _visited(
    one: _Attribute,
    value: Any,
    change: Change,
    variables: Callable[[Any, Location], Any],
    here: Location,
) -> Any:
    if one.form:
        at = Place(here, one.form)
        if isinstance(value, SecretStr):
            return SecretStr(change(at, value.get_secret_value()))
        return change(at, value)
    if one.inner and isinstance(value, Mapping | Structure):
        return visited(one.inner, value, change, variables, here)
    if one.item and isinstance(value, list | tuple):
        return type(value)(
            visited(one.item, inner, change, variables, (*here, str(number)))
            if isinstance(inner, Mapping | Structure)
            else inner
            for number, inner in enumerate(value)
        )
    if one.is_free and isinstance(value, Mapping):
        return variables(value, here)
    return value


@cache
def _attributes(model: type[Structure]) -> tuple[_Attribute, ...]:
    """All of a structure, in the model's order."""
    nested = key_aliases.border_names(model)
    fields = {info.alias or name: name for name, info in model.model_fields.items()}
    return tuple(
        _Attribute(
            name,
            fields[name],
            _form(info.annotation),
            nested[name],
            key_aliases.item_structure(model, name),
            get_origin(info.annotation) is dict,
        )
        for name, info in key_aliases.fields(model).items()
    )


def _form(annotation: Any) -> SecretForm | None:
    """The form of an attribute of this type, None if it is no secret."""
    if annotation is SecretStr:
        return _PLAIN
    origin, args = get_origin(annotation), get_args(annotation)
    if origin is Annotated:
        own = (one for one in args[1:] if isinstance(one, SecretForm))
        found = _form(args[0])
        return next(own, found) if found else None
    if origin in (Union, UnionType):
        return next((form for one in args if (form := _form(one))), None)
    return None


def _variables(
    value: Any, change: Change, here: Location, *, secret: bool = False
) -> Any:
    """Free-form variables; *secret* below a name that looks like that of a secret."""
    if is_reference(value, named_secret=secret) or len(here) > _DEEPEST:
        return change(Place(here, _PLAIN, is_variable=True), value)
    if isinstance(value, Mapping):
        made: dict[Any, Any] = {}
        for name, inner in value.items():
            named_so = secret or redaction.names_secret(str(name), _told(inner))
            made[name] = _variables(inner, change, (*here, str(name)), secret=named_so)
        return made
    if isinstance(value, list):
        items = []
        for number, inner in enumerate(value):
            place = (*here, str(number))
            items.append(_variables(inner, change, place, secret=secret))
        return items
    if value is None or isinstance(value, bool):
        return value
    if (isinstance(value, int | float) or _is_plain(value)) and not secret:
        return value
    return change(Place(here, _PLAIN, is_variable=True), value)


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
