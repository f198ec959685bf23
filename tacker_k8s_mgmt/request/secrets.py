# SPDX-License-Identifier: Apache-2.0
"""Secrets in a request: their places, references to them, and those not stored.

An attribute is a secret if its type is pydantic's ``SecretStr``; a
:class:`.fields.SecretForm` has its properties. In free-form variables, a value is a
secret if its name or that of a mapping around it looks like a secret's; of those that
are marked as :data:`OPEN` only references are.

In place of any secret a request may have ``{"secret_ref": "<URL in Barbican>"}`` or
``{"file": "<path on Tacker's conductor>"}``. The caller resolves them; nothing is read
here.

Parameters that Tacker stores have ``{"not_kept": true}`` in place of literal secrets. A
later request that replaces or repeats such a secret is merged like any other; else the
error names what is missing.
"""

import re
from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import cache
from typing import Any, TypeVar, get_args, get_origin
from uuid import UUID

from pydantic import SecretStr

from tacker_k8s_mgmt import text
from tacker_k8s_mgmt.model import untrusted
from tacker_k8s_mgmt.request import fields, structure
from tacker_k8s_mgmt.request.fields import SECRET, SecretForm
from tacker_k8s_mgmt.request.structure import (
    Attribute,
    Location,
    Problem,
    Structure,
    WrittenRequest,
)

#: For variables whose names do not look like a secret's.
_SHOWN = SecretForm(masked=text.without_secret)
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
    for name, attribute in structure.attributes(model).items():
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
        values of a request by the specification's names (:func:`.structure.read`).
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
        for name, attribute in structure.attributes(model).items():
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
                    secret=text.names_secret(str(name), _text_of(inner)),
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
            if any(text.shows_secret(str(name)) for name in value):
                # A name cannot be replaced alone.
                return self.change(replace(place, form=SECRET), value)
            return {
                name: self._variables(
                    inner,
                    (*here, str(name)),
                    secret=secret or text.names_secret(str(name), _text_of(inner)),
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
    for name, attribute in structure.attributes(model).items():
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
    name = structure.snake(str(spelled))
    return (
        name == "secret_ref"
        or (name == "not_kept" and inner is True)
        or (named_secret and name == "file" and _is_plain(inner))
    )


def _is_plain(value: Any) -> bool:
    return isinstance(value, str) and not text.shows_secret(value)


def _text_of(value: Any) -> Any:
    """The value, or the text of a reference, by which a variable's name is judged."""
    return next(iter(value.values())) if is_reference(value) else value


SECRET_REF = "secret_ref"  # noqa: S105
FILE = "file"
_NOT_KEPT = "not_kept"
_FORMS = '{"secret_ref": "<URL>"} or {"file": "<path>"}'


@dataclass(frozen=True)
class Reference:
    """A reference to a secret.

    :param kind: ``secret_ref`` or ``file``.
    :param target: the secret's URL in Barbican, or the file's path; a relative one is
        below the operator's directory.
    """

    kind: str
    target: str

    @property
    def secret_id(self) -> str:
        """The secret's id in Barbican."""
        return self.target.rpartition("/")[2]

    def as_given(self) -> dict[str, str]:
        """The reference as in a request."""
        return {self.kind: self.target}


@dataclass(frozen=True)
class NotKept:
    """Placeholder for a literal secret that was not stored."""


class Unresolved(Exception):
    """A reference without a secret; the text follows the attribute's name."""


#: Returns the secret of a reference, or raises :class:`Unresolved`. None for a secret
#: that is not available here, which is no problem.
Resolver = Callable[[Reference], str | None]


@dataclass(frozen=True)
class Use:
    """A reference in the parameters.

    :param attribute: its dotted name as the user wrote it.
    :param is_known: whether the parameters have the secret, not a placeholder.
    """

    location: Location
    attribute: str
    reference: Reference
    is_known: bool = False


def read(model: type[Structure], written: WrittenRequest) -> None:
    """Convert the references of a request to :class:`Reference` or :class:`NotKept`.

    Invalid ones become problems of the request.
    """

    def parsed(place: Place, value: Any) -> Any:
        try:
            if not place.is_variable or is_reference(value):
                return _parsed(value) if isinstance(value, Mapping) else value
            if len(place.location) > DEEPEST:
                raise ValueError("is nested too deeply")
            return value
        except ValueError as error:
            written.problems.append(Problem(place.location, str(error)))
            return place.form.stand_in

    written.values = changed(model, written.values, parsed)


def without_secrets(model: type[Structure], values: dict[str, Any]) -> dict[str, Any]:
    """The values of a request as JSON, without literal secrets.

    References, proxies without credentials and paths of private keys stay. From
    free-form variables, too much is removed rather than too little.
    """

    def kept(place: Place, value: Any) -> Any:
        if isinstance(value, Reference):
            return value.as_given()
        blank = fields.blank_is_absent(value) is None
        if blank or (isinstance(value, str) and place.form.is_open(value)):
            return value
        return {_NOT_KEPT: True}

    return changed(model, values, kept)


def not_kept(model: type[Structure], written: WrittenRequest) -> list[str]:
    """Dotted names of the secrets that stored parameters lack."""
    names = []

    def noted(place: Place, value: Any) -> Any:
        if isinstance(value, NotKept):
            names.append(written.dotted(*place.location))
        return value

    changed(model, written.values, noted)
    return names


def literal(
    model: type[Structure], values: dict[str, Any], attribute: str
) -> list[Problem]:
    """A problem for each secret below an attribute that is no reference.

    For attributes that metadata may replace, which everybody sees who sees the VNF
    instance.
    """
    problems = []

    def noted(place: Place, value: Any) -> Any:
        if place.location[0] == attribute and not isinstance(value, Reference):
            text = f"must be a reference, {_FORMS}"
            problems.append(Problem(place.location, text))
        return value

    changed(model, values, noted)
    return problems


def restore_repeated(
    model: type[Structure], stored: WrittenRequest, change: WrittenRequest
) -> WrittenRequest:
    """The stored request, with the secrets that a later one repeats."""

    def restored(place: Place, value: Any) -> Any:
        if not isinstance(value, NotKept):
            return value
        repeated = change.given(*place.location)
        return value if repeated is None else repeated

    values = changed(model, stored.values, restored)
    return replace(stored, values=values)


def resolve(
    model: type[Structure],
    written: WrittenRequest,
    resolver: Resolver | None,
    needed: Collection[str] | None = None,
) -> tuple[WrittenRequest, list[Problem]]:
    """The request with texts in place of its references, and the secrets that it lacks.

    What is found is all references (:class:`Use`), in the model's order, and their
    secrets.

    :param resolver: None to check references only and use placeholders.
    :param needed: the structures whose secrets the operation needs, None for all.
        Secrets may be missing elsewhere.
    """
    problems: list[Problem] = []
    uses: list[Use] = []
    secrets: list[SecretStr] = []

    def text(place: Place, value: Any) -> Any:
        name = written.dotted(*place.location)
        is_needed = needed is None or place.location[0] in needed
        if isinstance(value, NotKept):
            problems.extend([_missing(place)] if is_needed else [])
            return place.form.stand_in
        if not isinstance(value, Reference):
            return value
        if place.form.by_path and value.kind == FILE:
            uses.append(Use(place.location, name, value, is_known=True))
            # Without the prefix it would be taken for the key's text.
            is_absolute = value.target.startswith("/")
            return value.target if is_absolute else f"./{value.target}"
        try:
            secret = resolver(value) if resolver and is_needed else None
        except Unresolved as reason:
            problems.append(Problem(place.location, str(reason), retryable=True))
            return place.form.stand_in
        uses.append(Use(place.location, name, value, is_known=secret is not None))
        if secret is None:
            return value.as_given() if place.is_variable else place.form.stand_in
        secrets.append(SecretStr(secret))
        return secret

    values = changed(model, written.values, text)
    found = {"references": tuple(uses), "resolved": tuple(secrets)}
    return replace(written, values=values, found={**written.found, **found}), problems


def _parsed(value: Mapping[Any, Any]) -> Reference | NotKept:
    """Read a mapping in the place of a secret.

    :raises ValueError: it is not a reference; the text does not repeat it.
    """
    spelled, target = next(iter(value.items())) if len(value) == 1 else ("", None)
    kind = structure.snake(str(spelled))
    if kind == _NOT_KEPT and target is True:
        return NotKept()
    if kind not in (SECRET_REF, FILE):
        raise ValueError(f"must be text or a reference, {_FORMS}")
    if not isinstance(target, str):
        raise ValueError(f"must be a reference with text in it, {_FORMS}")
    try:
        check = _secret_url if kind == SECRET_REF else fields.conductor_path
        return Reference(kind, check(target.strip()))
    except ValueError as error:
        raise ValueError(f"{kind} {error}") from None


def _secret_url(url: str) -> str:
    problem = (
        "must be the URL of a secret in Barbican, such as "
        "https://barbican.example.org/v1/secrets/<id>"
    )
    try:
        parts = untrusted.url_parts(url)
        path, _, secret_id = parts.path.rstrip("/").rpartition("/")
        UUID(secret_id)
    except ValueError:
        raise ValueError(problem) from None
    strange = "@" in parts.netloc or re.search(r"[\s?#%\\]", url) or not url.isascii()
    if (
        strange
        or parts.scheme not in ("http", "https")
        or not parts.hostname
        or not path.endswith("/secrets")
    ):
        raise ValueError(problem)
    return url.rstrip("/")


def _missing(place: Place) -> Problem:
    """What to do about a secret that is not kept; lists and variables are repeated
    whole.
    """
    whole = next(
        (at for at, name in enumerate(place.location) if name.isdigit()),
        2 if place.is_variable else len(place.location),
    )
    around = () if len(place.location) <= whole else (place.location[:whole],)
    text = (
        "was given as text when the VNF was instantiated, which is not stored: repeat "
        f"{'all of %s' if around else 'it'} in this request, or give a reference, "
        f"{_FORMS}"
    )
    return Problem(place.location, text, around)
