"""What one attribute of the request may look like.

Each type below checks one attribute and brings it into its normal form. The texts of
the errors are shown to the operator after the attribute's name, so none of them repeats
the value: it may be a password in the wrong place.
"""

import posixpath
import re
import unicodedata
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from ipaddress import IPv4Network, IPv6Network, ip_address, ip_network
from pathlib import PurePosixPath
from typing import Annotated, Any
from urllib.parse import urlsplit

from pydantic import AfterValidator, BeforeValidator, SecretStr, Strict

from tacker_k8s_mgmt.model import redaction

LONGEST_NAME = 255
LONGEST_KEY = 32 * 1024
#: Ansible splits its search paths at colons; OpenSSH expands or unquotes the others.
_AMBIGUOUS = re.compile("[:%$\"']")
_PEM = re.compile(
    r"-----BEGIN ([A-Z]+ )?PRIVATE KEY-----\n.+\n-----END \1?PRIVATE KEY-----",
    re.DOTALL,
)
_LABEL = re.compile(r"[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?", re.IGNORECASE)

#: Nothing below these is anybody's to own; below the ones in ``_SHARED`` it is.
_SYSTEM_TREES = frozenset(
    {"bin", "boot", "dev", "etc", "lib", "lib32", "lib64", "proc", "run", "sbin", "sys"}
    | {"usr"}
)
_SHARED = frozenset(
    f"/var/{name}" for name in ("cache", "lib", "local", "log", "opt", "spool", "tmp")
)


@dataclass(frozen=True)
class SecretForm:
    """What a secret attribute looks like; stands among its type's annotations.

    :param stand_in: a text that is right in form, for where the secret is not known.
    :param is_open: whether a text that was given there is no secret.
    :param by_path: whether a file's path may stand there without being a reference.
    :param parts: what of it must be in no text.
    :param masked: what is shown in its place.
    """

    stand_in: str = "(unknown)"
    is_open: Callable[[str], bool] = lambda _: False
    by_path: bool = False
    parts: Callable[[str], Iterable[str]] = lambda secret: [secret]
    masked: Callable[[str], str] = lambda _: redaction.STARS


def is_path(text: str) -> bool:
    """Whether a private key is given as a path."""
    return text.strip().startswith("/")


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
    """Templates leave optional attributes empty; that means "not given"."""
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
    """A path stays one; a key's text gets Unix line ends and nothing around it."""
    text = value.get_secret_value().strip()
    if text.startswith("/"):
        return SecretStr(absolute_path(text))
    lines = "\n".join(line.strip() for line in text.splitlines())
    if len(lines) > LONGEST_KEY or not _PEM.fullmatch(lines):
        raise ValueError(
            "must be the text of a private key (-----BEGIN ... PRIVATE KEY-----) or "
            "the absolute path of a file with one on Tacker's conductor"
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
        address = ip_address(value)
    except ValueError:
        labels = _plain(value).removesuffix(".").split(".")
        if (
            len(value) <= LONGEST_NAME
            and all(_LABEL.fullmatch(label) for label in labels)
            and not labels[-1].isdigit()
        ):
            return value
        raise ValueError("must be an IP address or a host name") from None
    if address.is_unspecified or address.is_multicast:
        raise ValueError("must be the address of a host; this one is a placeholder")
    return value


def _between(least: int, most: int) -> AfterValidator:
    def check(value: int) -> int:
        if not least <= value <= most:
            raise ValueError(f"must be from {least} to {most}")
        return value

    return AfterValidator(check)


def absolute_path(value: str) -> str:
    """An absolute path in its normal form.

    :raises ValueError: it is none.
    """
    if not _plain(value).startswith("/"):
        raise ValueError("must be an absolute path (it starts with /)")
    if ".." in PurePosixPath(value).parts:
        raise ValueError("must not contain '..'")
    return "/" + posixpath.normpath(value).lstrip("/")


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


def _network(value: Any) -> IPv4Network | IPv6Network:
    """Host bits are dropped; ``params.parse`` tells the user so."""
    if isinstance(value, str) and "/" in value:
        try:
            return ip_network(value.strip(), strict=False)
        except ValueError:
            pass
    raise ValueError("must be a network such as 10.233.64.0/18")


def _proxy_url(value: SecretStr) -> SecretStr:
    text = _plain(value.get_secret_value())
    problem = "must be an http:// or https:// URL with a host"
    try:
        parts = urlsplit(text)
    except ValueError:
        raise ValueError(problem) from None
    if parts.scheme not in ("http", "https") or not parts.hostname:
        raise ValueError(problem)
    # Ansible would take braces for a template; the others end what is before the host,
    # so that credentials with them would be read, and shown, as something else.
    if re.search(r"[\s{}?#]", text) or parts.path.strip("/"):
        raise ValueError("must have blanks and { } / ? # percent-encoded")
    return value


def _list_of_names(value: Any) -> tuple[str, ...]:
    if value is None:
        return ()
    if not isinstance(value, str):
        raise ValueError("must be text: names and addresses with commas between")
    return tuple(_plain(item.strip()) for item in value.split(",") if item.strip())


Name = Annotated[str, AfterValidator(_name)]
OptionalName = Annotated[
    Annotated[str, AfterValidator(_name)] | None, BeforeValidator(blank_is_absent)
]
OptionalSecret = Annotated[
    Annotated[SecretStr, AfterValidator(_secret)] | None,
    BeforeValidator(blank_is_absent),
]
OptionalPrivateKey = Annotated[
    Annotated[SecretStr, AfterValidator(_private_key)] | None,
    BeforeValidator(blank_is_absent),
    _KEY_FORM,
]
Host = Annotated[str, AfterValidator(_host)]
Port = Annotated[int, Strict(), _between(1, 65535)]
Seconds = Annotated[int, Strict(), _between(1, 86400)]
GracePeriod = Annotated[int, Strict(), _between(-1, 86400)]
Count = Annotated[int, Strict(), _between(1, 100)]
OptionalForks = Annotated[
    Annotated[int, Strict(), _between(1, 200)] | None, BeforeValidator(blank_is_absent)
]
Flag = Annotated[bool, Strict()]
AbsolutePath = Annotated[str, AfterValidator(absolute_path)]
OptionalAbsolutePath = Annotated[AbsolutePath | None, BeforeValidator(blank_is_absent)]
OwnedDirectory = Annotated[str, AfterValidator(_owned_directory)]
PackagePath = Annotated[str, AfterValidator(_package_path)]
OptionalNetwork = Annotated[
    Annotated[IPv4Network | IPv6Network, BeforeValidator(_network)] | None,
    BeforeValidator(blank_is_absent),
]
OptionalProxyUrl = Annotated[
    Annotated[SecretStr, AfterValidator(_proxy_url)] | None,
    BeforeValidator(blank_is_absent),
    _PROXY_FORM,
]
ListOfNames = Annotated[tuple[str, ...], BeforeValidator(_list_of_names)]
