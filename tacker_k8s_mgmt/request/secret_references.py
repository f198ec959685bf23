"""Secrets that a request names in place of saying them.

Wherever the parameters have a secret, ``{"secret_ref": "<URL of it in Barbican>"}`` or
``{"file": "<path of a file on Tacker's conductor>"}`` may stand. Which attributes those
are, the model says (:mod:`.secret_fields`). Here a reference stays one: whoever
parses parameters hands in how it is resolved.

Of parameters that are kept where others see them, literal secrets are taken out. In
place of each stands ``{"not_kept": true}``, so that a later request which replaces or
repeats it is merged as always, and one that does neither can be told what is missing.
"""

import re
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import urlsplit
from uuid import UUID

from pydantic import SecretStr

from tacker_k8s_mgmt.request import field_types, key_aliases, secret_fields
from tacker_k8s_mgmt.request.key_aliases import Location, Reading, Structure
from tacker_k8s_mgmt.request.secret_fields import Place

SECRET_REF = "secret_ref"  # noqa: S105
FILE = "file"
_NOT_KEPT = "not_kept"
_FORMS = '{"secret_ref": "<URL>"} or {"file": "<path>"}'


@dataclass(frozen=True)
class Reference:
    """A secret's name.

    :param kind: ``secret_ref`` or ``file``.
    :param target: the secret's URL in Barbican, or the file's absolute path.
    """

    kind: str
    target: str

    @property
    def secret_id(self) -> str:
        """The id at the end of a secret's URL."""
        return self.target.rpartition("/")[2]

    def as_given(self) -> dict[str, str]:
        """The same as a request has it."""
        return {self.kind: self.target}


class NotKept:
    """Stands where a literal secret was taken out."""

    def __eq__(self, other: object) -> bool:
        return isinstance(other, NotKept)

    def __hash__(self) -> int:
        return hash(_NOT_KEPT)


class Unresolved(Exception):
    """Why a reference leads to no secret, in words that follow the attribute's name."""


#: Tells the secret behind a reference, or raises :class:`Unresolved`. None: it is not
#: to be known here, which is no problem.
Resolver = Callable[[Reference], str | None]


@dataclass(frozen=True)
class Use:
    """Where the parameters have a reference.

    :param attribute: its dotted name as the user wrote it.
    :param is_known: whether the secret, and not a text in its place, is there.
    """

    location: Location
    attribute: str
    reference: Reference
    is_known: bool = False


@dataclass
class Opened:
    """What came of the references of a request.

    :param values: of the reading, with texts in place of all references.
    :param missing: one sentence for each secret that was not kept.
    :param lost: one sentence for each reference that leads to no secret.
    :param uses: all references, in the model's order.
    :param secrets: what they lead to.
    """

    values: dict[str, Any] = field(default_factory=dict)
    missing: list[str] = field(default_factory=list)
    lost: list[str] = field(default_factory=list)
    uses: list[Use] = field(default_factory=list)
    secrets: list[SecretStr] = field(default_factory=list)


def read(model: type[Structure], reading: Reading) -> None:
    """Put a :class:`Reference` or :class:`NotKept` where the request writes one.

    What is written wrongly becomes a problem of the reading.
    """

    def understood(place: Place, value: Any) -> Any:
        try:
            if place.is_variable and not secret_fields.is_reference(value):
                return _not_too_deep(value)
            return _understood(value) if isinstance(value, Mapping) else value
        except ValueError as error:
            name = reading.dotted(*place.location)
            reading.problems.append(f"{name}: {error}")
            return place.form.stand_in

    reading.values = secret_fields.changed(model, reading.values, understood)


def without_secrets(model: type[Structure], reading: Reading) -> dict[str, Any]:
    """The values of a reading as JSON, without literal secrets.

    References stay, and so do proxies without credentials and paths of private keys.
    Of free-form variables rather too much is taken out.
    """

    def kept(place: Place, value: Any) -> Any:
        if isinstance(value, Reference):
            return value.as_given()
        blank = field_types.blank_is_absent(value) is None
        if blank or (isinstance(value, str) and place.form.is_open(value)):
            return value
        return {_NOT_KEPT: True}

    return secret_fields.changed(model, reading.values, kept)


def restore_repeated(
    model: type[Structure], stored: Reading, change: Reading
) -> Reading:
    """The stored request with those secrets back that a later one repeats."""

    def restored(place: Place, value: Any) -> Any:
        if not isinstance(value, NotKept):
            return value
        repeated = field_types.blank_is_absent(change.get(*place.location))
        return value if repeated is None else repeated

    values = secret_fields.changed(model, stored.values, restored)
    return Reading(values, stored.problems, stored.warnings, stored.written)


def resolve(
    model: type[Structure],
    reading: Reading,
    resolver: Resolver | None,
    needed: Collection[str] | None = None,
) -> Opened:
    """Put secrets in the place of references.

    :param resolver: None where references are only to be checked: a text of the right
        form then stands for each secret.
    :param needed: the structures whose secrets the operation needs, None for all. What
        is missing elsewhere is no problem.
    """
    opened = Opened()

    def text(place: Place, value: Any) -> Any:
        name = reading.dotted(*place.location)
        is_needed = needed is None or place.location[0] in needed
        if isinstance(value, NotKept):
            if is_needed:
                opened.missing.append(f"{name}: {_missing(reading, place)}")
            return place.form.stand_in
        if not isinstance(value, Reference):
            return value
        if place.form.by_path and value.kind == FILE:
            opened.uses.append(Use(place.location, name, value, is_known=True))
            return value.target
        try:
            secret = resolver(value) if resolver and is_needed else None
        except Unresolved as reason:
            opened.lost.append(f"{name}: {reason}")
            return place.form.stand_in
        known = secret is not None
        opened.uses.append(Use(place.location, name, value, is_known=known))
        if secret is None:
            return value.as_given() if place.is_variable else place.form.stand_in
        opened.secrets.append(SecretStr(secret))
        return secret

    opened.values = secret_fields.changed(model, reading.values, text)
    return opened


def _not_too_deep(value: Any) -> Any:
    if isinstance(value, Mapping | list):
        raise ValueError("is nested too deeply")
    return value


def _understood(given: Mapping[Any, Any]) -> Reference | NotKept:
    """Read what stands in the place of a secret.

    :raises ValueError: it is no reference; the text does not repeat it.
    """
    spelled, target = next(iter(given.items())) if len(given) == 1 else ("", None)
    kind = key_aliases.snake(str(spelled))
    if kind == _NOT_KEPT and target is True:
        return NotKept()
    if kind not in (SECRET_REF, FILE):
        raise ValueError(f"must be text or a reference, {_FORMS}")
    if not isinstance(target, str):
        raise ValueError(f"must be a reference with text in it, {_FORMS}")
    try:
        check = _secret_url if kind == SECRET_REF else field_types.absolute_path
        return Reference(kind, check(target.strip()))
    except ValueError as error:
        raise ValueError(f"{kind} {error}") from None


def _secret_url(url: str) -> str:
    problem = (
        "must be the URL of a secret in Barbican, such as "
        "https://barbican.example.org/v1/secrets/<id>"
    )
    try:
        parts = urlsplit(url)
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


def _missing(reading: Reading, place: Place) -> str:
    """What to do about a secret that is not kept: lists and variables come whole."""
    whole = next(
        (at for at, name in enumerate(place.location) if name.isdigit()),
        2 if place.is_variable else None,
    )
    repeat = "repeat it"
    if whole is not None and len(place.location) > whole:
        repeat = f"repeat all of {reading.dotted(*place.location[:whole])}"
    return (
        "was given as text when the VNF was instantiated, which is not kept: "
        f"{repeat} in this request, or give a reference, {_FORMS}"
    )
