# SPDX-License-Identifier: Apache-2.0
"""References to secrets in a request.

In place of any secret (:mod:`.secret_fields`), a request may have
``{"secret_ref": "<URL in Barbican>"}`` or ``{"file": "<path on Tacker's conductor>"}``.
The caller resolves them; nothing is read here.

Parameters that Tacker stores have ``{"not_kept": true}`` in place of literal secrets. A
later request that replaces or repeats such a secret is merged like any other; else the
error names what is missing.
"""

import re
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field
from typing import Any
from uuid import UUID

from pydantic import SecretStr

from tacker_k8s_mgmt.model import urls
from tacker_k8s_mgmt.request import field_types, key_aliases, secret_fields
from tacker_k8s_mgmt.request.key_aliases import Location, Reading, Structure
from tacker_k8s_mgmt.request.secret_fields import Place

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


@dataclass
class Opened:
    """A request with resolved references.

    :param values: those of the reading, with texts in place of all references.
    :param missing: a sentence for each secret that was not kept.
    :param lost: a sentence for each reference without a secret.
    :param uses: all references, in the model's order.
    :param secrets: the secrets of the references.
    """

    values: dict[str, Any] = field(default_factory=dict)
    missing: list[str] = field(default_factory=list)
    lost: list[str] = field(default_factory=list)
    uses: list[Use] = field(default_factory=list)
    secrets: list[SecretStr] = field(default_factory=list)


def read(model: type[Structure], reading: Reading) -> None:
    """Convert the references of a reading to :class:`Reference` or :class:`NotKept`.

    Invalid ones become problems of the reading.
    """

    def parsed(place: Place, value: Any) -> Any:
        try:
            if not place.is_variable or secret_fields.is_reference(value):
                return _parsed(value) if isinstance(value, Mapping) else value
            if len(place.location) > secret_fields.DEEPEST:
                raise ValueError("is nested too deeply")
            return value
        except ValueError as error:
            name = reading.dotted(*place.location)
            reading.problems.append(f"{name}: {error}")
            return place.form.stand_in

    reading.values = secret_fields.changed(model, reading.values, parsed)


def without_secrets(model: type[Structure], reading: Reading) -> dict[str, Any]:
    """The values of a reading as JSON, without literal secrets.

    References, proxies without credentials and paths of private keys stay. From
    free-form variables, too much is removed rather than too little.
    """

    def kept(place: Place, value: Any) -> Any:
        if isinstance(value, Reference):
            return value.as_given()
        blank = field_types.blank_is_absent(value) is None
        if blank or (isinstance(value, str) and place.form.is_open(value)):
            return value
        return {_NOT_KEPT: True}

    return secret_fields.changed(model, reading.values, kept)


def not_kept(model: type[Structure], reading: Reading) -> list[str]:
    """Dotted names of the secrets that stored parameters lack."""
    names = []

    def noted(place: Place, value: Any) -> Any:
        if isinstance(value, NotKept):
            names.append(reading.dotted(*place.location))
        return value

    secret_fields.changed(model, reading.values, noted)
    return names


def literal(model: type[Structure], reading: Reading, attribute: str) -> list[str]:
    """A sentence for each secret below an attribute that is no reference.

    For attributes that metadata may replace, which everybody sees who sees the VNF
    instance.
    """
    problems = []

    def noted(place: Place, value: Any) -> Any:
        if place.location[0] == attribute and not isinstance(value, Reference):
            name = reading.dotted(*place.location)
            problems.append(f"{name}: must be a reference, {_FORMS}")
        return value

    secret_fields.changed(model, reading.values, noted)
    return problems


def restore_repeated(
    model: type[Structure], stored: Reading, change: Reading
) -> Reading:
    """The stored request, with the secrets that a later one repeats."""

    def restored(place: Place, value: Any) -> Any:
        if not isinstance(value, NotKept):
            return value
        repeated = change.given(*place.location)
        return value if repeated is None else repeated

    values = secret_fields.changed(model, stored.values, restored)
    return Reading(values, stored.problems, stored.warnings, stored.written)


def resolve(
    model: type[Structure],
    reading: Reading,
    resolver: Resolver | None,
    needed: Collection[str] | None = None,
) -> Opened:
    """Replace references by secrets.

    :param resolver: None to check references only and use placeholders.
    :param needed: the structures whose secrets the operation needs, None for all.
        Secrets may be missing elsewhere.
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
            # Without the prefix it would be taken for the key's text.
            is_absolute = value.target.startswith("/")
            return value.target if is_absolute else f"./{value.target}"
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


def _parsed(value: Mapping[Any, Any]) -> Reference | NotKept:
    """Read a mapping in the place of a secret.

    :raises ValueError: it is no reference; the text does not repeat it.
    """
    spelled, target = next(iter(value.items())) if len(value) == 1 else ("", None)
    kind = key_aliases.snake(str(spelled))
    if kind == _NOT_KEPT and target is True:
        return NotKept()
    if kind not in (SECRET_REF, FILE):
        raise ValueError(f"must be text or a reference, {_FORMS}")
    if not isinstance(target, str):
        raise ValueError(f"must be a reference with text in it, {_FORMS}")
    try:
        check = _secret_url if kind == SECRET_REF else field_types.conductor_path
        return Reference(kind, check(target.strip()))
    except ValueError as error:
        raise ValueError(f"{kind} {error}") from None


def _secret_url(url: str) -> str:
    problem = (
        "must be the URL of a secret in Barbican, such as "
        "https://barbican.example.org/v1/secrets/<id>"
    )
    try:
        parts = urls.parts(url)
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
    """What to do about a secret that is not kept; lists and variables are repeated
    whole.
    """
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
