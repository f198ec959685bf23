"""Where the parameters have secrets, as their model says.

An attribute is a secret if its type is pydantic's ``SecretStr``. In free-form variables
a value is one if its name, or one that it stands below, looks like that of a secret.
"""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from types import UnionType
from typing import Annotated, Any, Union, get_args, get_origin

from pydantic import SecretStr

from tacker_k8s_mgmt.cluster import redact, spelling
from tacker_k8s_mgmt.cluster.fields import SecretForm
from tacker_k8s_mgmt.cluster.spelling import Location, Structure

_PLAIN = SecretForm("(unknown)", lambda _: False)
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


def attributes(
    model: type[Structure], place: Location = ()
) -> Iterator[tuple[Location, SecretForm]]:
    """Every secret attribute; ``*`` stands for the number of a list's item."""
    nested = spelling.border_names(model)
    for name, info in model.model_fields.items():
        attribute = info.alias or name
        if attribute not in nested:
            continue
        here = (*place, attribute)
        form = _form(info.annotation)
        if form:
            yield here, form
        if inner := nested[attribute]:
            yield from attributes(inner, here)
        if item := spelling.item_structure(model, attribute):
            yield from attributes(item, (*here, "*"))


def changed(
    model: type[Structure],
    values: Mapping[str, Any],
    change: Change,
    place: Location = (),
) -> dict[str, Any]:
    """A copy of a request's values, with *change* at every secret that is given.

    :param values: with the specification's names (:func:`.spelling.read`).
    """
    nested = spelling.border_names(model)
    made = dict(values)
    for name, info in model.model_fields.items():
        attribute = info.alias or name
        value = made.get(attribute)
        if attribute not in nested or value is None:
            continue
        here = (*place, attribute)
        item = spelling.item_structure(model, attribute)
        inner = nested[attribute]
        if form := _form(info.annotation):
            made[attribute] = change(Place(here, form), value)
        elif inner and isinstance(value, Mapping):
            made[attribute] = changed(inner, value, change, here)
        elif item and isinstance(value, list):
            made[attribute] = [
                changed(item, one, change, (*here, str(number)))
                if isinstance(one, Mapping)
                else one
                for number, one in enumerate(value)
            ]
        elif get_origin(info.annotation) is dict and isinstance(value, Mapping):
            made[attribute] = _variables(value, change, here)
    return made


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
            named_so = secret or redact.names_secret(str(name), _told(inner))
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
    name = spelling.snake(str(spelled))
    return (
        name == "secret_ref"
        or (name == "not_kept" and inner is True)
        or (named_secret and name == "file" and _is_plain(inner))
    )


def _is_plain(value: Any) -> bool:
    return isinstance(value, str) and not redact.shows_secret(value)


def _told(value: Any) -> Any:
    """What a name is judged with: of a reference, the text that will stand there."""
    return next(iter(value.values())) if is_reference(value) else value
