"""Keeps known secrets out of texts: log lines, error messages, tails of output."""

import json
import re
from collections.abc import Iterable, Iterator
from urllib.parse import quote, quote_plus

STARS = "***"

#: Secrets shorter than this are not replaced: "a" or "12" is in almost every text, and
#: a text full of stars would hide the message and give the secret away by its gaps.
SHORTEST = 4


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
