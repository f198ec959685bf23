# SPDX-License-Identifier: Apache-2.0
"""Redaction of secrets in log lines, error messages and output.

It also recognises secrets in free-form variables.
"""

import json
import re
from collections.abc import Iterable, Iterator, Mapping
from typing import Any
from urllib.parse import quote, quote_plus, unquote, urlsplit

STARS = "***"

#: Shorter secrets are not replaced: "a" or "12" is in almost every text, and the stars
#: would hide the message and reveal the secret by their places.
SHORTEST = 4

_SECRET_VARIABLE = re.compile(
    r"(pass|passwd|password|secret|token|credentials?|(private|api|access)_?key)$", re.I
)

_LIKE_SECRET = re.compile(r"pass|secret|token|credential|key$", re.IGNORECASE)
_WORD = re.compile(r"\S+")
_SCHEME_ENDS = "://"
PRIVATE_KEY = "PRIVATE KEY-----"


class Redactor:
    """Replaces each known secret, in the forms that it has in texts, by ``***``.

    Immutable, and so safe to share between threads.

    :param secrets: the secrets; those shorter than :data:`SHORTEST` are ignored.
    """

    def __init__(self, secrets: Iterable[str]) -> None:
        forms = {
            form
            for secret in secrets
            if len(secret) >= SHORTEST
            for form in _forms(secret)
        }
        # Longest first, because a secret may be part of another.
        ordered = sorted(forms, key=lambda form: (-len(form), form))
        self._pattern = re.compile("|".join(map(re.escape, ordered)) or r"(?!)")

    def __call__(self, text: str) -> str:
        """The text without the secrets."""
        return self._pattern.sub(STARS, text)


def _forms(secret: str) -> Iterator[str]:
    """Verbatim, in URLs, in JSON, and between single quotes of Python and a shell."""
    yield secret
    for quoted in (
        quote(secret, safe="", errors="replace"),
        quote(secret, errors="replace"),
        quote_plus(secret, errors="replace"),
    ):
        yield quoted
        yield re.sub("%..", lambda match: match[0].lower(), quoted)
    yield json.dumps(secret)[1:-1]
    yield json.dumps(secret, ensure_ascii=False)[1:-1]
    yield repr(secret)[1:-1]
    yield secret.replace("'", "'\"'\"'")


def in_private_key(text: str) -> Iterator[str]:
    """The secret lines of a private key."""
    for line in text.splitlines():
        if line and not line.startswith("-----") and ":" not in line:
            yield line


def in_url(url: str) -> Iterator[str]:
    """The password of a URL, percent-encoded as in the URL and decoded."""
    password = urlsplit(url).password
    if password:
        yield from (password, unquote(password))


def without_login(text: str) -> str:
    """The text with stars in place of user and password in its URLs."""
    return _WORD.sub(lambda match: _word_without_login(match[0]), text)


def _word_without_login(word: str) -> str:
    # Not by one pattern: from each "://" it would search the rest of the text.
    begins, ends = word.find(_SCHEME_ENDS), word.rfind("@")
    if begins < 0 or ends < begins + len(_SCHEME_ENDS):
        return word
    return f"{word[:begins]}{_SCHEME_ENDS}{STARS}{word[ends:]}"


def without_secret(text: str) -> str:
    """The text with stars in place of what :func:`shows_secret` finds there."""
    return STARS if PRIVATE_KEY in text else without_login(text)


def in_variables(value: Any, *, secret: bool = False) -> Iterator[str]:
    """The texts under names of secrets, at any depth.

    :param secret: whether the value itself is under such a name.
    """
    if isinstance(value, Mapping):
        for name, inner in value.items():
            named_so = _SECRET_VARIABLE.search(str(name)) is not None
            yield from in_variables(inner, secret=secret or named_so)
    elif isinstance(value, list):
        for inner in value:
            yield from in_variables(inner, secret=secret)
    elif secret and isinstance(value, str) and value:
        yield value


def names_secret(name: str, value: Any) -> bool:
    """Whether a free-form variable may be a secret by its name.

    It is broader than :func:`in_variables`, which returns what must be in no text.
    """
    is_login = isinstance(value, str) and name.lower().endswith("auth")
    return is_login or _LIKE_SECRET.search(name) is not None


def shows_secret(text: str) -> bool:
    """Whether a text has the form of a secret: a private key, a URL with a login."""
    return PRIVATE_KEY in text or without_login(text) != text
