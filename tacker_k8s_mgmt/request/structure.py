# SPDX-License-Identifier: Apache-2.0
"""Structures of the request: spelling and metadata of attributes, and marked blanks.

Requests use the names of the specification (``master_node``). Users also copy from
Tacker's GET view, which shows stored parameters in camelCase (``masterNode``), so both
are read. Unknown names are refused with the nearest known one before pydantic
validates; its errors get the names as the user wrote them.

The metadata of an option are among the annotations of its field. :class:`Sets` names
the kubespray variables that it sets; :class:`Changeable` or :class:`Fixed` states
whether a later request may change it. The metadata of secrets are in their types
(:class:`.fields.SecretForm`).

Marked blanks are values that ``tacker-k8s-mgmt request init`` could not know. JSON has
no comments, so the mark is the value itself. Every reader of a request reports it by
name, in place of what else would be wrong with such a text.
"""

import difflib
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from functools import cache
from itertools import chain
from typing import (
    TYPE_CHECKING,
    Annotated,
    Any,
    ClassVar,
    NamedTuple,
    TypeVar,
    get_args,
    get_origin,
)

from pydantic import BaseModel, ConfigDict, SecretStr, TypeAdapter, ValidationError
from pydantic.fields import FieldInfo
from pydantic_core import ErrorDetails

from tacker_k8s_mgmt.request.fields import blank_is_absent
from tacker_k8s_mgmt.request.profile_document import ResolvedProfile

Location = tuple[str, ...]
_NOTHING: Mapping[str, str] = {}


class Problem(NamedTuple):
    """What is wrong with an attribute, or worth a warning.

    :param text: the rest of the sentence that begins with the attribute's name.
    :param others: further attributes, whose names take the place of ``%s`` in the text.
    :param retryable: it is in what the request refers to, such as a secret's store, and
        the same request may succeed later.
    :param name: of the attribute, as the user wrote it; "" until it is known
        (:meth:`WrittenRequest.named`).
    """

    location: Location
    text: str
    others: tuple[Location, ...] = ()
    retryable: bool = False
    name: str = ""

    def __str__(self) -> str:
        return f"{self.name}: {self.text}"


class InvalidAttribute(Exception):
    """An attribute that is not valid was read; its own problem is reported."""


MISSING = "is missing"
_SENTENCES = {
    "missing": MISSING,
    "string_type": "must be text",
    "int_type": "must be a whole number",
    "bool_type": "must be true or false",
    "model_type": "must be a structure with attributes",
    "dict_type": "must be a structure with attributes",
    "tuple_type": "must be a list",
    "too_short": "must not be empty",
}


class Structure(BaseModel):
    """A structure of the request.

    ``ignored`` has the attributes of the kubeadm drivers' user guides that this driver
    does not use, each with the reason. They are accepted, so that request bodies for
    these drivers work unchanged.
    """

    model_config = ConfigDict(
        frozen=True,
        populate_by_name=True,
        hide_input_in_errors=True,
        use_attribute_docstrings=True,
    )
    ignored: ClassVar[Mapping[str, str]] = {}

    if not TYPE_CHECKING:

        def __getattr__(self, name: str) -> Any:
            if name in type(self).model_fields:
                raise InvalidAttribute(name)
            return super().__getattr__(name)


S = TypeVar("S", bound=Structure)
T = TypeVar("T")


@dataclass
class WrittenRequest:
    """A request by the specification's names, with problems and warnings.

    :param names: the name as the user wrote it, by location.
    :param expansion: what came of a profile.
    :param found: what else reading it has brought to light, by the field of the model
        that is not a part of requests.
    """

    values: dict[str, Any]
    problems: list[Problem] = field(default_factory=list)
    warnings: list[Problem] = field(default_factory=list)
    names: dict[Location, str] = field(default_factory=dict)
    expansion: ResolvedProfile | None = None
    found: dict[str, Any] = field(default_factory=dict)

    def dotted(self, *location: str) -> str:
        """The attribute's dotted name as the user wrote it.

        With the profile that has given its value.
        """
        name = ".".join(
            self.names.get(location[: depth + 1], name)
            for depth, name in enumerate(location)
        )
        if self.expansion and self.expansion.has_given(location):
            return f"{name} (profile {self.expansion.profile.name})"
        return name

    def is_null(self, location: Location) -> bool:
        """Whether the attribute, or a structure around it, is written as null."""
        outer = (location[:end] for end in range(1, len(location) + 1))
        return any(at in self.names and self.get(*at) is None for at in outer)

    def get(self, *location: str) -> Any:
        """The value at a location; None if there is none."""
        value: Any = self.values
        for name in location:
            if isinstance(value, list):
                value = {str(number): item for number, item in enumerate(value)}
            value = value.get(name) if isinstance(value, Mapping) else None
        return value

    def given(self, *location: str) -> Any:
        """The value at a location; None if there is none or it is blank."""
        return blank_is_absent(self.get(*location))

    def needed(self) -> Iterator[Problem]:
        """What the profile needs and the request lacks."""
        needs = self.expansion.profile.needs if self.expansion else {}
        for dotted, reason in needs.items():
            location = tuple(dotted.split("."))
            if self.given(*location) is None and not self.is_null(location):
                yield Problem(location, f"{MISSING}: {reason.rstrip()}")

    def changed_by(
        self, change: "WrittenRequest", values: dict[str, Any], problems: list[Problem]
    ) -> "WrittenRequest":
        """This request after a later one.

        :param values: those of both together.
        :param problems: those of the later one.
        """

        def is_replaced(place: Location) -> bool:
            value = change.get(*place)
            return value is not None and not isinstance(value, Mapping)

        warnings = [*self.named(self.warnings), *change.named(change.warnings)]
        return WrittenRequest(
            values,
            problems=[*self.named(self.problems), *change.named(problems)],
            warnings=list(dict.fromkeys(warnings)),
            names={**self.names, **change.names},
            expansion=self.expansion and self.expansion.without(is_replaced),
        )

    def named(self, problems: Iterable[Problem]) -> list[Problem]:
        """The problems with the names that attributes have in this request."""
        return [one if one.name else self._named(one) for one in problems]

    def _named(self, problem: Problem) -> Problem:
        name, text = self.dotted(*problem.location), problem.text
        if problem.others:
            text %= tuple(self.dotted(*other) for other in problem.others)
        return problem._replace(name=name, text=text, others=())


def _mistake(error: ErrorDetails, because: Mapping[str, str]) -> Problem:
    """What pydantic found, without the offending value."""
    text = _SENTENCES.get(error["type"], f"is not valid ({error['type']})")
    if error["type"] == "value_error":
        own = error["ctx"]["error"]
        text = str(own) if _is_ours(own) else "is not valid"
    elif error["type"] == "literal_error":
        text = f"must be {error['ctx']['expected']}"
    elif error["type"] == "missing" and (last := error["loc"][-1]) in because:
        text = f"{text}; {because[str(last)]}"
    return Problem(tuple(map(str, error["loc"])), text)


def _is_ours(error: Exception) -> bool:
    """Whether a module of this driver raised it; errors of others quote the value."""
    place = error.__traceback__
    while place and place.tb_next:
        place = place.tb_next
    module = place.tb_frame.f_globals.get("__name__", "") if place else ""
    return str(module).partition(".")[0] == __name__.partition(".")[0]


def camel(name: str) -> str:
    """A name as Tacker's GET view writes it (tacker/common/utils.py)."""
    return re.sub("_([a-z])", lambda match: match[1].upper(), name)


def snake(name: str) -> str:
    """Undo :func:`camel` for a name that had no capitals."""
    return re.sub("[A-Z]", lambda match: "_" + match[0].lower(), name)


def read(model: type[Structure], raw: Mapping[Any, Any]) -> WrittenRequest:
    """Bring a structure's attribute names into the specification's spelling."""
    written = WrittenRequest({})
    written.values = _read(model, raw, (), written)
    return written


def restore_keys(written: WrittenRequest, name: str) -> None:
    """Undo camelCase in a free-form mapping that was copied from Tacker's GET view.

    Its keys are kubespray's variables, which have no capitals. Keys inside their values
    may have some and cannot be restored.
    """
    mapping = written.values.get(name)
    if written.names.get((name,)) != camel(name) or not isinstance(mapping, Mapping):
        return
    restored: dict[str, Any] = {}
    for key, value in mapping.items():
        original = snake(str(key))
        restored[original] = value
        written.names[(name, original)] = str(key)
        if _has_capitals(value):
            text = (
                "Tacker's output has changed the names inside; write them as kubespray "
                f"has them, under {name}"
            )
            written.problems.append(Problem((name, original), text))
    written.values[name] = restored


@dataclass(frozen=True)
class Attribute:
    """An attribute of a structure, as the model defines it.

    :param field: its name in the model.
    :param structure: its type, or that of its items; None for other values.
    """

    field: str
    info: FieldInfo
    structure: type[Structure] | None
    is_list: bool


@cache
def attributes(model: type[Structure]) -> Mapping[str, Attribute]:
    """The attributes of a structure by the specification's name, in model order."""
    return {
        info.alias or field: Attribute(
            field,
            info,
            _structure_in(info.annotation),
            get_origin(info.annotation) is tuple,
        )
        for field, info in model.model_fields.items()
        if not info.exclude
    }


def border_names(model: type[Structure]) -> Mapping[str, type[Structure] | None]:
    """The attributes of a structure, each with its structure unless it is a list."""
    return {
        name: None if attribute.is_list else attribute.structure
        for name, attribute in attributes(model).items()
    }


@cache
def _spellings(model: type[Structure]) -> Mapping[str, str]:
    """The specification's name by each of its spellings."""
    return {
        spelled: name
        for name in (*attributes(model), *model.ignored)
        for spelled in (name, camel(name))
    }


def _read(
    model: type[Structure],
    raw: Mapping[Any, Any],
    place: Location,
    written: WrittenRequest,
) -> dict[str, Any]:
    spellings = _spellings(model)
    values: dict[str, Any] = {}
    for key, value in raw.items():
        name = spellings.get(key)
        here = (*place, name or "")
        if name is None:
            text = _nearest(str(key), spellings)
            written.problems.append(Problem((*place, _shown(key)), text))
        elif here in written.names:
            text = "is given twice, the first is %s"
            written.problems.append(Problem((*place, _shown(key)), text, (here,)))
        elif name in model.ignored:
            written.names[here] = key
            if value:
                text = f"is not used, {model.ignored[name]}"
                written.warnings.append(Problem(here, text))
        else:
            written.names[here] = key
            attribute = attributes(model)[name]
            inner = attribute.structure
            if inner and not attribute.is_list and isinstance(value, Mapping):
                value = _read(inner, value, here, written)
            elif inner and attribute.is_list and isinstance(value, list):
                value = _read_items(inner, value, here, written)
            if value is not None:  # null means "not given"
                values[name] = value
    return values


def _read_items(
    item: type[Structure], values: list[Any], place: Location, written: WrittenRequest
) -> list[Any]:
    return [
        _read(item, value, (*place, str(number)), written)
        if isinstance(value, Mapping)
        else value
        for number, value in enumerate(values)
    ]


def _shown(key: Any) -> str:
    harmless = re.fullmatch(r"[\w.-]{1,64}", str(key))
    return str(key) if harmless else repr(key)[:64]


def _nearest(key: str, spellings: Mapping[str, str]) -> str:
    near = difflib.get_close_matches(key[:64], spellings, n=1)
    hint = f"; did you mean {spellings[near[0]]}?" if near else ""
    return f"is not a known attribute{hint}"


def _structure_in(annotation: Any) -> type[Structure] | None:
    args = get_args(annotation)
    if get_origin(annotation) is tuple:
        return _structure_in(args[0])
    for candidate in (annotation, *args):
        if isinstance(candidate, type) and issubclass(candidate, Structure):
            return candidate
    return None


def build(
    model: type[S], values: Mapping[str, Any], because: Mapping[str, str] = _NOTHING
) -> tuple[S, list[Problem]]:
    """The structure that the values describe, and what is wrong with them.

    Reading an attribute that is not valid raises :class:`InvalidAttribute`, so that
    checks of the other attributes can do their work.

    :param because: why an attribute is needed, by its name.
    """
    try:
        return model.model_validate(values), []
    except ValidationError as error:
        # The details alone leave this block: the exception holds the user's secrets.
        details = error.errors(include_url=False, include_input=False)
    return _partial(model, values), [_mistake(one, because) for one in details]


def _partial(model: type[S], values: Any) -> S:
    """A structure with those attributes that are valid."""
    valid: dict[str, Any] = {}
    given: set[str] = set()
    for name, attribute in (
        attributes(model).items() if isinstance(values, Mapping) else ()
    ):
        if name in values:
            with suppress(InvalidAttribute):
                valid[attribute.field] = _valid(model, name, values[name])
                given.add(attribute.field)
        elif not attribute.info.is_required():
            default = attribute.info.get_default(call_default_factory=True)
            valid[attribute.field] = default
    built = model.model_construct(given, **valid)
    for field_name, info in model.model_fields.items():
        if field_name not in valid and not info.exclude:
            built.__dict__.pop(field_name, None)
    return built


def _valid(model: type[Structure], name: str, value: Any) -> Any:
    """The value of an attribute, as far as it is valid.

    :raises InvalidAttribute: nothing of it is.
    """
    attribute = attributes(model)[name]
    with suppress(ValidationError):
        return _adapter(model, name).validate_python(value)
    if inner := attribute.structure:
        if attribute.is_list and isinstance(value, list):
            return tuple(_partial(inner, item) for item in value)
        if not attribute.is_list and isinstance(value, Mapping):
            return _partial(inner, value)
    raise InvalidAttribute(name)


@cache
def _adapter(model: type[Structure], name: str) -> TypeAdapter[Any]:
    info = attributes(model)[name].info
    # The second one is there because Annotated needs one.
    marked: Any = Annotated[(info.annotation, name, *info.metadata)]
    return TypeAdapter(marked)


def readable(found: Iterator[T]) -> Iterator[T]:
    """What a check finds until it reads an attribute that is not valid."""
    with suppress(InvalidAttribute):
        yield from found


def items(location: Location, values: Sequence[T]) -> Iterator[tuple[Location, T]]:
    """The items of a list, each with its location."""
    return (((*location, str(number)), item) for number, item in enumerate(values))


def at(holder: Structure, location: Location) -> Any:
    """The value at a location; None if a structure around it is not given.

    :raises InvalidAttribute: it is not valid.
    """
    value: Any = holder
    for name in location:
        if isinstance(value, tuple):
            value = value[int(name)]
        elif isinstance(value, Structure):
            value = getattr(value, attributes(type(value))[name].field)
        else:
            value = value.get(name) if isinstance(value, Mapping) else None
    return value


def valid(holder: Structure, *location: str) -> Any:
    """The value at a location; None if there is none or it is not valid."""
    with suppress(InvalidAttribute):
        return at(holder, location)
    return None


def _has_capitals(value: Any) -> bool:
    if isinstance(value, Mapping):
        return any(
            str(key) != str(key).lower() or _has_capitals(inner)
            for key, inner in value.items()
        )
    return isinstance(value, list) and any(_has_capitals(inner) for inner in value)


def plain_value(option: Any) -> Any:
    """The option's value, as text if it is a secret."""
    return option.get_secret_value() if isinstance(option, SecretStr) else option


def _itself(option: Any) -> Any:
    """The option's value; True for a structure."""
    return True if isinstance(option, Structure) else option


class Sets:
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
SET_AT_CREATION = Fixed("the cluster was built on it")


def variables(structure: Structure) -> dict[str, Any]:
    """The variables of a structure's options that depend on a single option each."""
    built: dict[str, Any] = {}
    for name, info in type(structure).model_fields.items():
        option = plain_value(getattr(structure, name))
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
    for name, inner in border_names(model).items():
        here = (*place, name)
        below = dict(_variable_names(inner, here, defaults)) if inner else {}
        marks = _marks(attributes(model)[name].info)
        own = [v for mark in marks if mark.is_default is defaults for v in mark.names]
        if own:
            yield here, (*own, *chain.from_iterable(below.values()))
        else:
            yield from below.items()


@cache
def later(model: type[Structure]) -> Mapping[str, Changeable | Fixed | None]:
    """By attribute, whether it may change; None if its own attributes state that."""
    rules: dict[str, Changeable | Fixed | None] = {}
    for name, attribute in attributes(model).items():
        marks = attribute.info.metadata
        rule = (mark for mark in marks if isinstance(mark, Changeable | Fixed))
        rules[name] = next(rule, None)
    return rules


def _marks(info: FieldInfo) -> Iterator[Sets]:
    return (mark for mark in info.metadata if isinstance(mark, Sets))


BEGINNING = "<fill in: "
# With a limit: a text may have the beginning many times, and no end.
_MARK = re.compile(re.escape(BEGINNING) + "([^>]{1,500})>")


def mark(meaning: str) -> str:
    """The text that stands for a value which is not known.

    :param meaning: what to put in its place, without a full stop and without >.
    """
    return f"{BEGINNING}{meaning}>"


def is_in(value: Any) -> bool:
    """Whether *value* has a blank, at any depth."""
    return any(True for _ in places(value))


def places(value: Any, place: Location = ()) -> Iterator[tuple[Location, str]]:
    """Where *value* has blanks, at any depth, each with a sentence about it."""
    if isinstance(value, Mapping):
        for name, inner in value.items():
            yield from places(inner, (*place, str(name)))
    elif isinstance(value, list):
        for number, inner in enumerate(value):
            yield from places(inner, (*place, str(number)))
    elif isinstance(value, str) and (found := _MARK.findall(value)):
        yield place, f"is still to be filled in: {'; '.join(found)}"
