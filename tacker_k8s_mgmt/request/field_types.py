# SPDX-License-Identifier: Apache-2.0
"""Types of the request's attributes.

Each type checks a value and normalises it. Operators see the error texts after the
attribute's name. None repeats the value, which may be a misplaced password.
"""

import posixpath
import re
import unicodedata
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from pathlib import PurePosixPath
from typing import Annotated, Any, TypeVar

from pydantic import AfterValidator, BeforeValidator, SecretStr, Strict

from tacker_k8s_mgmt.model import networks, redaction, urls

LONGEST_NAME = 255
# Linux's PATH_MAX, less what we put below a directory.
_LONGEST_PATH = 3800
NO_TEMPLATE = "must not contain {{, {% or {#, which Ansible takes apart"
LONGEST_KEY = 32 * 1024
# Ansible splits search paths at colons; OpenSSH expands or unquotes the others.
_AMBIGUOUS = re.compile("[:%$\"']")
_PEM = re.compile(
    r"\A-----BEGIN ([A-Z]+ )?PRIVATE KEY-----\n.+\n-----END \1?PRIVATE KEY-----",
    re.DOTALL,
)
#: What Ansible takes for a template in a variable.
TEMPLATE = re.compile(r"\{[{%#]")
_LABEL = re.compile(r"[A-Za-z0-9]([A-Za-z0-9-]{0,61}[A-Za-z0-9])?")
# Resolvers take a host for an IPv4 address if its last label is a number.
_NUMBER = re.compile(r"[0-9]+|0[Xx][0-9A-Fa-f]*")

# No cluster's directory may be below these; below those in _SHARED it may.
_SYSTEM_TREES = frozenset(
    {"bin", "boot", "dev", "etc", "lib", "lib32", "lib64", "proc", "run", "sbin", "sys"}
    | {"usr"}
)
_SHARED = frozenset(
    f"/var/{name}" for name in ("cache", "lib", "local", "log", "opt", "spool", "tmp")
)


@dataclass(frozen=True)
class SecretForm:
    """Properties of a secret attribute, among its type's annotations.

    :param stand_in: valid text for an attribute whose secret is not known.
    :param is_open: whether a text is not secret.
    :param by_path: whether a file's path is accepted without being a reference.
    :param parts: the parts that must not appear in any text.
    :param masked: the text to show in its place.
    """

    stand_in: str = "(unknown)"
    is_open: Callable[[str], bool] = lambda _: False
    by_path: bool = False
    parts: Callable[[str], Iterable[str]] = lambda secret: [secret]
    masked: Callable[[str], str] = lambda _: redaction.STARS


def is_path(text: str) -> bool:
    """Whether a private key is the path of a file.

    ``./`` begins one below the operator's directory for keys.
    """
    return text.strip().startswith(("/", "./"))


SECRET = SecretForm()
_KEY_FORM = SecretForm(
    "-----BEGIN PRIVATE KEY-----\nunknown\n-----END PRIVATE KEY-----",
    is_path,
    by_path=True,
    parts=lambda key: [] if is_path(key) else redaction.in_private_key(key),
    masked=lambda key: key if is_path(key) else redaction.STARS,
)
URL_FORM = SecretForm(
    "http://unknown.invalid", lambda url: "@" not in url, parts=redaction.in_url
)
_PROXY_FORM = replace(URL_FORM, masked=redaction.without_login)


def blank_is_absent(value: Any) -> Any:
    """None for blank text: templates leave optional attributes empty."""
    return None if isinstance(value, str) and not value.strip() else value


def _plain(value: str) -> str:
    if not value:
        raise ValueError("must not be empty")
    if any(unicodedata.category(character) in ("Cc", "Cs") for character in value):
        raise ValueError("must not contain control characters")
    return value


def _secret(value: SecretStr) -> SecretStr:
    _plain(value.get_secret_value())
    return value


def _private_key(value: SecretStr) -> SecretStr:
    """A path, or a key with Unix line ends and without surrounding blanks."""
    text = value.get_secret_value().strip()
    if is_path(text):
        path = conductor_path(text)
        return SecretStr(path if path.startswith("/") else f"./{path}")
    lines = "\n".join(line.strip() for line in text.splitlines())
    if len(lines) > LONGEST_KEY or not _PEM.fullmatch(lines):
        raise ValueError(
            "must be the text of a private key (-----BEGIN ... PRIVATE KEY-----) or "
            "the path of a file with one on Tacker's conductor (beginning with / or ./)"
        )
    return SecretStr(f"{lines}\n")


def _name(value: str) -> str:
    if len(value) > LONGEST_NAME:
        raise ValueError(f"must have 1 to {LONGEST_NAME} characters")
    return _plain(value)


def _host(value: str) -> str:
    if "/" in value:
        raise ValueError("must be one address or host name, not a network")
    try:
        # No blanks: they are kept, as the whole text is.
        address = networks.zoned_address(value if value.strip() == value else "")
    except ValueError:
        labels = _plain(value).removesuffix(".").split(".")
        if (
            len(value) <= LONGEST_NAME
            and all(_LABEL.fullmatch(label) for label in labels)
            and not _NUMBER.fullmatch(labels[-1])
        ):
            return value
        raise ValueError("must be an IP address or a host name") from None
    if networks.is_placeholder(address):
        raise ValueError("must be the address of a host; this one is a placeholder")
    return value


def _between(least: int, most: int) -> AfterValidator:
    def check(value: int) -> int:
        if not least <= value <= most:
            raise ValueError(f"must be from {least} to {most}")
        return value

    return AfterValidator(check)


def absolute_path(value: str) -> str:
    """Normalise an absolute path.

    :raises ValueError: the path is relative, too long or contains ``..``.
    """
    if not _plain(value).startswith("/"):
        raise ValueError("must be an absolute path (it starts with /)")
    if ".." in PurePosixPath(value).parts:
        raise ValueError("must not contain '..'")
    if len(value.encode()) > _LONGEST_PATH or any(
        len(part.encode()) > LONGEST_NAME for part in PurePosixPath(value).parts
    ):
        raise ValueError(
            f"must have at most {_LONGEST_PATH} bytes, and {LONGEST_NAME} between "
            "slashes, as Linux has them"
        )
    return "/" + posixpath.normpath(value).lstrip("/")


def conductor_path(value: str) -> str:
    """Normalise the path of a file below one of the operator's directories.

    :returns: the path: absolute, or relative to that directory.
    :raises ValueError: the path contains ``..`` or names no file.
    """
    if _plain(value).startswith("/"):
        return absolute_path(value)
    # As an absolute one, it would be below the file system's root.
    path = absolute_path(f"/{value}").lstrip("/")
    if not path:
        raise ValueError("must name a file")
    return path


def _owned_directory(value: str) -> str:
    path = absolute_path(value)
    if _AMBIGUOUS.search(path):
        raise ValueError("must not contain colon, percent or dollar sign, or quotes")
    parts = path.split("/")[1:]
    if parts[0] in _SYSTEM_TREES:
        raise ValueError("must not be below a directory of the operating system")
    if len(parts) < 2 or path in _SHARED or (parts[0] == "home" and len(parts) == 2):
        raise ValueError(
            "must be a directory of this cluster's own, which is deleted with it, "
            "such as /home/<user>/clusters/<name>; this one is shared"
        )
    return path


def _package_path(value: str) -> str:
    if _plain(value).startswith("/"):
        raise ValueError("must be relative to the top of the VNF package")
    path = posixpath.normpath(value)
    if path == "." or path.split("/")[0] == "..":
        raise ValueError("must name a file inside the VNF package")
    return path


def _proxy_url(value: SecretStr) -> SecretStr:
    text = _plain(value.get_secret_value())
    problem = "must be an http:// or https:// URL with a host"
    try:
        parts = urls.parts(text, any_port=True)
    except ValueError:
        raise ValueError(problem) from None
    if parts.scheme not in ("http", "https") or not parts.hostname:
        raise ValueError(problem)
    # Ansible takes braces for a template; the others end the authority part, so that
    # credentials with them would be parsed, and shown, as another part of the URL.
    if re.search(r"[\s{}?#]", text) or parts.path.strip("/"):
        raise ValueError("must have blanks and { } / ? # percent-encoded")
    # A port may be a word that the specification's sample has to be replaced.
    if ":" in (host := parts.netloc.rpartition("@")[2]) and not host.isascii():
        raise ValueError(problem)
    return value


def _list_of_names(value: Any) -> tuple[str, ...]:
    if value is None:
        return ()
    if not isinstance(value, str):
        raise ValueError("must be text: names and addresses with commas between")
    if TEMPLATE.search(value):
        raise ValueError(NO_TEMPLATE)
    return tuple(_plain(item.strip()) for item in value.split(",") if item.strip())


_T = TypeVar("_T")
#: A type or nothing; blank text is nothing.
Optional = Annotated[_T | None, BeforeValidator(blank_is_absent)]

Name = Annotated[str, AfterValidator(_name)]
OptionalName = Optional[Name]
OptionalSecret = Optional[Annotated[SecretStr, AfterValidator(_secret)]]
OptionalPrivateKey = Annotated[
    Optional[Annotated[SecretStr, AfterValidator(_private_key)]], _KEY_FORM
]
Host = Annotated[str, AfterValidator(_host)]
Port = Annotated[int, Strict(), _between(1, 65535)]
Seconds = Annotated[int, Strict(), _between(1, 86400)]
GracePeriod = Annotated[int, Strict(), _between(-1, 86400)]
Count = Annotated[int, Strict(), _between(1, 100)]
OptionalForks = Optional[Annotated[int, Strict(), _between(1, 200)]]
Flag = Annotated[bool, Strict()]
AbsolutePath = Annotated[str, AfterValidator(absolute_path)]
OptionalAbsolutePath = Optional[AbsolutePath]
OwnedDirectory = Annotated[str, AfterValidator(_owned_directory)]
PackagePath = Annotated[str, AfterValidator(_package_path)]
# ``params.parse`` warns about dropped host bits.
Network = Annotated[networks.Network, BeforeValidator(networks.network)]
OptionalNetwork = Optional[Network]
OptionalProxyUrl = Annotated[
    Optional[Annotated[SecretStr, AfterValidator(_proxy_url)]], _PROXY_FORM
]
ListOfNames = Annotated[tuple[str, ...], BeforeValidator(_list_of_names)]
