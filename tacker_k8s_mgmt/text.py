# SPDX-License-Identifier: Apache-2.0
"""Texts that leave this process: no secret, nothing that steers a terminal.

Secrets are redacted in log lines, error messages and output. They are also recognised
in free-form variables. Texts of others, such as a command's output, may have characters
that steer a terminal.

A core dump would have the memory of this process, with passwords and keys, so none may
be left.
"""

import base64
import html
import json
import re
import resource
import sys
from array import array
from collections.abc import Iterable, Iterator, Mapping
from typing import Any
from urllib.parse import quote, quote_plus, unquote

# Control characters (but for tab and line feed), surrogates, and those without a width,
# some of which turn the direction of what follows around.
_STEERING = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\u00ad\u061c\u180e\u200b-\u200f\u2028-\u202e"
    "\u2060-\u206f\ufeff\ufff9-\ufffb\ud800-\udfff\U000e0001-\U000e007f]"
)
_LINE = re.compile(f"[\t\n]|{_STEERING.pattern}")


def printable(text: str) -> str:
    """The text with spaces in place of characters that steer a terminal.

    Lines and tabs stay.
    """
    return _STEERING.sub(" ", text)


def in_line(text: str) -> str:
    """The same as one line, so that none of it looks like a record of its own."""
    return _LINE.sub(" ", text)


def short(text: str, longest: int, *, end: bool = False) -> str:
    """The text as one line: its beginning if it is long, or its end.

    :param longest: characters of it.
    """
    text = " ".join(text.split())
    if len(text) <= longest:
        return text
    return f"...{text[-longest:]}" if end else f"{text[:longest]}..."


STARS = "***"

#: Shorter secrets are not replaced: "a" or "12" is in almost every text, and the stars
#: would hide the message and reveal the secret by their places.
SHORTEST = 4
# In secrets of several lines, such as a file, shorter ones are words of its format.
_SHORTEST_LINE = 8

_LIKE_SECRET = re.compile(r"pass|secret|token|credential|key$", re.IGNORECASE)
# A message of Ansible quotes a program's output, and that a file with the secret.
_QUOTED_IN_JSON = 2
_USER = re.compile(r"user(_?name)?$", re.IGNORECASE)
_SIGNATURE = re.compile(r"sig(nature)?$", re.IGNORECASE)
_SHORTEST_TOKEN = 16
_WORD = re.compile(r"\S+")
# What :func:`_flat` leaves out.
_BREAK = re.compile(r"\\n|[\s\\]")
_OF_HTML = re.compile("[<>&\u2028\u2029]")
_ESCAPE = re.compile(r"\\u([0-9a-f]{4})")
# A login without a scheme, as proxies have it; images have digests behind the sign.
_LOGIN = re.compile(r"\A[^\s:/@\"'=,;]+:[^\s/]*@(?!sha256:)")
_QUERY = re.compile(r"[?&;]([^=&;?#]*)=([^&;#]*)")
_AUTHORITY_ENDS = re.compile("[/?#]")
_ENDS_OF_LOGINS = re.compile("[@:/?#]")
# What programs leave as it is in a URL: nothing, "/", as ECMAScript, as requests.
_UNQUOTED = ("", "/", "!'()*", "!#$%&'()*+,/:;=?@[]~")
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
            for secret in _with_lines(secrets)
            if len(secret) >= SHORTEST
            for form in _forms(secret)
        }
        # Longest first, because a secret may be part of another.
        self._forms = sorted(forms, key=lambda form: (-len(form), form))
        flat = map(_flat, forms)
        self._flat_forms = {form for form in flat if len(form) >= _SHORTEST_LINE}

    def __call__(self, text: str) -> str:
        """The text without the secrets."""
        # Few are in a text; one pattern for all would take seconds for a megabyte.
        found = "|".join(re.escape(form) for form in self._forms if form in text)
        return self._without_broken(re.sub(found, STARS, text) if found else text)

    def _without_broken(self, text: str) -> str:
        """The text without secrets that have other blanks, backslashes or line breaks.

        Ansible breaks the lines of its warnings anywhere; YAML and base64 have lines.
        """
        flat = _flat(text)
        found = [form for form in self._flat_forms if form in flat]
        if not found:
            return text
        places, end = array("Q"), 0
        for match in _BREAK.finditer(text):
            places.extend(range(end, match.start()))
            end = match.end()
        places.extend(range(end, len(text)))
        shown, end = [], 0
        pattern = "|".join(map(re.escape, sorted(found, key=len, reverse=True)))
        for match in re.finditer(pattern, flat):
            shown += [text[end : places[match.start()]], STARS]
            end = places[match.end() - 1] + 1
        return "".join([*shown, text[end:]])


def _flat(text: str) -> str:
    """The text without blanks, line breaks (also of JSON) and backslashes."""
    return "".join(text.replace("\\n", "").split()).replace("\\", "")


def _with_lines(secrets: Iterable[str]) -> Iterator[str]:
    """The secrets, and the lines of those with several, which a log has one by one."""
    for secret in secrets:
        yield secret
        lines = secret.splitlines()
        if len(lines) > 1:
            yield from (line for line in lines if len(line) >= _SHORTEST_LINE)


def _forms(secret: str) -> Iterator[str]:
    """Verbatim, in URLs, JSON, YAML and base64, between single quotes of Python and a
    shell; and these in JSON, as messages of Ansible quote them.
    """
    forms = dict.fromkeys(_plain_forms(secret))
    # Those of a file in JSON with logins in base64, as registries have them, too.
    encoded = {one for form in _in_json(secret) for one in _in_base64(form)}
    twice = {one for form in encoded for one in _in_base64(form)}
    for _ in range(_QUOTED_IN_JSON):
        forms |= {json.dumps(form)[1:-1]: None for form in forms}
        forms |= {json.dumps(form, ensure_ascii=False)[1:-1]: None for form in forms}
        # Of a text with quotation marks of both kinds.
        forms |= {repr(f"\"'{form}")[4:-1]: None for form in forms}
    yield from forms
    yield from encoded | twice


def _plain_forms(secret: str) -> Iterator[str]:
    yield secret
    for quoted in (
        *(quote(secret, safe=safe, errors="replace") for safe in _UNQUOTED),
        quote_plus(secret, errors="replace"),
    ):
        yield quoted
        yield re.sub("%..", lambda match: match[0].lower(), quoted)
    yield quote(quote(secret, safe="", errors="replace"))
    yield from _in_json(secret)
    yield repr(secret)[1:-1]
    yield ascii(secret)[1:-1]
    yield repr(secret.encode(errors="replace"))[2:-1]
    yield html.escape(secret, quote=False)
    yield html.escape(secret)
    yield html.escape(secret, quote=False).replace('"', "&#34;").replace("'", "&#39;")
    yield (quoted := secret.replace("'", "'\"'\"'"))
    yield quoted.replace("'", "'\"'\"'")
    yield secret.replace("'", "'\\''")
    yield secret.replace("'", "''")
    if not (secret.isascii() and secret.isprintable()):
        import yaml  # late, because every program imports this module

        yield yaml.safe_dump(secret, default_style='"', width=sys.maxsize).strip()[1:-1]


def _in_json(secret: str) -> Iterator[str]:
    """As Python, Go and others write it between quotation marks."""
    yield secret
    for written in (json.dumps(secret), json.dumps(secret, ensure_ascii=False)):
        inner = written[1:-1]
        yield inner
        yield inner.replace("/", "\\/")
        yield _OF_HTML.sub(lambda match: f"\\u{ord(match[0]):04x}", inner)
        yield _ESCAPE.sub(lambda match: "\\u" + match[1].upper(), inner)


def _in_base64(text: str) -> Iterator[str]:
    """What base64 makes of a secret wherever it begins in what is encoded.

    A login is encoded as ``user:password``. Characters that stand for bits of what is
    around the secret, too, are left out.
    """
    secret = text.encode(errors="replace")
    for before in range(3):
        encoded = base64.b64encode(b"\0" * before + secret).decode()
        begin, end = -(-before * 8 // 6), (before + len(secret)) * 8 // 6
        if end - begin >= SHORTEST:
            yield encoded[begin:end]
            yield encoded[begin:end].replace("+", "-").replace("/", "_")


def in_private_key(text: str) -> Iterator[str]:
    """The secret lines of a private key."""
    for line in text.splitlines():
        if line and not line.startswith("-----") and ":" not in line:
            yield line


def in_url(text: str) -> Iterator[str]:
    """The secrets in the URLs of a text, as they are written and decoded.

    Passwords with their pieces, because programs end the login at different characters
    and take the rest for a host; user names that are tokens; what names of secrets have
    in a query. A text that is no valid URL has them, too.
    """
    for word in _WORD.findall(text):
        login, query = _login(word), _QUERY.findall(word)
        user, _, password = word[slice(*login)].partition(":")
        found = [value for name, value in query if value and _is_named_so(name)]
        if user and (not password or is_token(user)):
            found.append(user)
        for secret in (*found, *([password] if password else ())):
            yield from (secret, unquote(secret))
        for form in {password, unquote(password)}:
            yield from filter(None, _ENDS_OF_LOGINS.split(form))


def _is_named_so(name: str) -> bool:
    return names_secret(name, "") or _SIGNATURE.search(name) is not None


def is_token(user: str) -> bool:
    """Whether a user name may be the secret of the login."""
    return len(user) >= _SHORTEST_TOKEN and re.search("[0-9]", user) is not None


def _login(word: str) -> tuple[int, int]:
    """Where a URL has its login; an empty range if it has none."""
    # Not by one pattern: from each "://" it would search the rest of the text.
    begins, scheme, rest = word.partition(_SCHEME_ENDS)
    if not scheme and (login := _LOGIN.match(word)):
        return 0, login.end() - 1
    start = len(begins) + len(scheme)
    authority = _AUTHORITY_ENDS.split(rest, maxsplit=1)[0]
    end = authority.rfind("@")
    _, colon, port = authority[end + 1 :].rpartition(":")
    if colon and not _is_port(port):
        # No port, but the rest of a password, if there is a login.
        end = rest.rfind("@") if end < 0 else len(authority)
    return start, start + max(end, 0)


def in_urls(value: Any) -> Iterator[str]:
    """What :func:`in_url` finds in texts at any depth, names of mappings included."""
    if isinstance(value, Mapping):
        value = [*value, *value.values()]
    if isinstance(value, list | tuple):
        for inner in value:
            yield from in_urls(inner)
    elif isinstance(value, str):
        yield from in_url(value)


def without_login(text: str) -> str:
    """The text with stars in place of user, password and tokens in its URLs."""
    return _WORD.sub(lambda match: _word_without_login(match[0]), text)


def _word_without_login(word: str) -> str:
    start, end = _login(word)
    if end > start:
        word = f"{word[:start]}{STARS}{word[end:]}"
    if _SCHEME_ENDS not in word:
        return word

    def starred(match: re.Match[str]) -> str:
        name, value = match.groups()
        hidden = value and _is_named_so(name)
        return f"{match[0][: -len(value)]}{STARS}" if hidden else match[0]

    return _QUERY.sub(starred, word)


def without_secret(text: str) -> str:
    """The text with stars in place of what :func:`shows_secret` finds there."""
    return STARS if PRIVATE_KEY in text else without_login(text)


def in_variables(value: Any, *, secret: bool = False) -> Iterator[str]:
    """The secrets of free-form variables, at any depth.

    Texts and numbers under names of secrets, logins in URLs, keys, and user names that
    are tokens.

    :param secret: whether the value itself is under such a name.
    """
    if isinstance(value, Mapping):
        for name, inner in value.items():
            named_so = names_secret(str(name), inner)
            yield from in_variables(inner, secret=secret or named_so)
            yield from in_url(str(name))
    elif isinstance(value, list | tuple):
        for inner in value:
            yield from in_variables(inner, secret=secret)
    elif isinstance(value, str):
        if secret and value:
            yield value
        if PRIVATE_KEY in value:
            yield from in_private_key(value)
        yield from in_url(value)
    elif secret and isinstance(value, int | float) and not isinstance(value, bool):
        yield str(value)


def names_secret(name: str, value: Any) -> bool:
    """Whether a free-form variable may be a secret by its name."""
    if _LIKE_SECRET.search(name):
        return True
    if not isinstance(value, str):
        return False
    is_user = _USER.search(name) is not None
    return (is_user and is_token(value)) or name.lower().endswith("auth")


def shows_secret(text: str) -> bool:
    """Whether a text has the form of a secret: a private key, a URL with a login."""
    return PRIVATE_KEY in text or without_login(text) != text


def _is_port(text: str) -> bool:
    """Whether a text behind a colon is a port, or the end of an IPv6 address."""
    return not text or (text.isascii() and text.isdigit()) or text.endswith("]")


def forbid() -> None:
    """Have neither this process nor those that it starts leave a core dump."""
    _, hard = resource.getrlimit(resource.RLIMIT_CORE)
    resource.setrlimit(resource.RLIMIT_CORE, (0, hard))
