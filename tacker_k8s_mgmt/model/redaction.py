"""Keeps known secrets out of texts: log lines, error messages, tails of output.

And knows where in the parameters secrets are.
"""

import json
import re
from collections.abc import Iterable, Iterator, Mapping
from typing import Any
from urllib.parse import quote, quote_plus, unquote, urlsplit

STARS = "***"

#: Secrets shorter than this are not replaced: "a" or "12" is in almost every text, and
#: a text full of stars would hide the message and give the secret away by its gaps.
SHORTEST = 4

_SECRET_VARIABLE = re.compile(
    r"(pass|passwd|password|secret|token|credentials?|(private|api|access)_?key)$", re.I
)

_LIKE_SECRET = re.compile(r"pass|secret|token|credential|key$", re.IGNORECASE)
_LOGIN_IN_URL = re.compile(r"://\S*@")
PRIVATE_KEY = "PRIVATE KEY-----"


class Redactor:
    """Replaces each known secret, in the forms in which texts show it, by ``***``.

    Immutable, and so safe to share between threads.

    :param secrets: the secret texts; those shorter than :data:`SHORTEST` are ignored.
    """

    def __init__(self, secrets: Iterable[str]) -> None:
        forms = {
            form
            for secret in secrets
            if len(secret) >= SHORTEST
            for form in _forms(secret)
        }
        # Longest first: where one secret is part of another, the longer one must win.
        ordered = sorted(forms, key=lambda form: (-len(form), form))
        self._pattern = re.compile("|".join(map(re.escape, ordered)) or r"(?!)")

    def __call__(self, text: str) -> str:
        """The text without the secrets."""
        return self._pattern.sub(STARS, text)


def _forms(secret: str) -> Iterator[str]:
    """As written, in URLs, in JSON, and between single quotes of Python and a shell."""
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
    """The lines of a private key that must not be shown."""
    for line in text.splitlines():
        if line and not line.startswith("-----") and ":" not in line:
            yield line


def in_url(url: str) -> Iterator[str]:
    """The password of a URL, as it is written there and as it is meant."""
    password = urlsplit(url).password
    if password:
        yield from (password, unquote(password))


def without_login(text: str) -> str:
    """The text with stars in place of user and password in its URLs."""
    return _LOGIN_IN_URL.sub(f"://{STARS}@", text)


def without_secret(text: str) -> str:
    """The text with stars in place of what :func:`shows_secret` finds there."""
    return STARS if PRIVATE_KEY in text else without_login(text)


def in_variables(value: Any, *, secret: bool = False) -> Iterator[str]:
    """The texts below names that stand for secrets, at any depth.

    :param secret: whether the value itself stands below such a name.
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
    """Whether a free-form variable may be a secret by its name; rather too often.

    :func:`in_variables` is stricter: it finds what must not be in any text.
    """
    is_login = isinstance(value, str) and name.lower().endswith("auth")
    return is_login or _LIKE_SECRET.search(name) is not None


def shows_secret(text: str) -> bool:
    """Whether a text is a secret by its own form: a private key, a URL with a login."""
    return PRIVATE_KEY in text or _LOGIN_IN_URL.search(text) is not None
