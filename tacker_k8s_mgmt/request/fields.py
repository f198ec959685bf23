# SPDX-License-Identifier: Apache-2.0
"""Types of the request's attributes.

Each type checks a value and normalises it. Operators see the error texts after the
attribute's name. No error text repeats the value, which may be a misplaced password.

The values of the attributes of ``cluster`` become extra variables of Ansible, which
takes double braces for a template.
"""

import posixpath
import re
import unicodedata
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from pathlib import PurePosixPath
from typing import Annotated, Any, Literal, TypeVar
from urllib.parse import SplitResult

from pydantic import AfterValidator, BeforeValidator, PlainValidator, SecretStr, Strict

from tacker_k8s_mgmt.model import network_plugins, untrusted
from tacker_k8s_mgmt.request.profile_document import PROFILE_NAME
from tacker_k8s_mgmt.text import STARS, in_private_key, in_url, without_login

LONGEST_NAME = 255
# Linux's PATH_MAX, less what we put below a directory.
_LONGEST_PATH = 3800
NO_TEMPLATE = "must not contain {{, {% or {#, which Ansible takes apart"
LONGEST_KEY = 32 * 1024
# Ansible splits search paths at colons; OpenSSH expands or unquotes the others.
_AMBIGUOUS = re.compile("[:%$\"']")
_KEY_PEM = re.compile(
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
    masked: Callable[[str], str] = lambda _: STARS


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
    parts=lambda key: [] if is_path(key) else in_private_key(key),
    masked=lambda key: key if is_path(key) else STARS,
)
URL_FORM = SecretForm(
    "http://unknown.invalid", lambda url: "@" not in url, parts=in_url
)
_PROXY_FORM = replace(URL_FORM, masked=without_login)


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
    if len(lines) > LONGEST_KEY or not _KEY_PEM.fullmatch(lines):
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
        address = network_plugins.zoned_address(value if value.strip() == value else "")
    except ValueError:
        labels = _plain(value).removesuffix(".").split(".")
        if (
            len(value) <= LONGEST_NAME
            and all(_LABEL.fullmatch(label) for label in labels)
            and not _NUMBER.fullmatch(labels[-1])
        ):
            return value
        raise ValueError("must be an IP address or a host name") from None
    if network_plugins.is_placeholder(address):
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
        parts = untrusted.url_parts(text, any_port=True)
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
# :mod:`.cross_checks` warns about dropped host bits.
Network = Annotated[network_plugins.Network, BeforeValidator(network_plugins.network)]
OptionalNetwork = Optional[Network]
OptionalProxyUrl = Annotated[
    Optional[Annotated[SecretStr, AfterValidator(_proxy_url)]], _PROXY_FORM
]
ListOfNames = Annotated[tuple[str, ...], BeforeValidator(_list_of_names)]


LARGEST_MTU = 9216
SMALLEST_MTU = 576
LONGEST = 4096
#: The word for an MTU that follows from the nodes' network interfaces.
NODES = "nodes"

_VERSION = re.compile(r"v?(1\.[0-9]{1,3}\.[0-9]{1,3})")
_DNS = (
    r"[a-z0-9](?:[a-z0-9-]{0,61}[a-z0-9])?(?:\.[a-z0-9](?:[a-z0-9-]{0,61}[a-z0-9])?)*"
)
#: Patterns of the value of a label, unless it is empty, and of its key.
LABEL_NAME = r"[A-Za-z0-9](?:[A-Za-z0-9._-]{0,61}[A-Za-z0-9])?"
LABEL_KEY = rf"(?:{_DNS}/)?{LABEL_NAME}"
LABEL_VALUE = re.compile(LABEL_NAME)
_HOST_AND_PORT = (
    r"(?:[A-Za-z0-9](?:[A-Za-z0-9.-]*[A-Za-z0-9])?|\[[0-9A-Fa-f:.]+\])(?::[0-9]{1,5})?"
)
_HOST_NAME = re.compile(r"[A-Za-z0-9](?:[A-Za-z0-9.-]*[A-Za-z0-9])?")
_HOSTS_ENTRY = "must be an IP address and one or several host names, as in /etc/hosts"
_PATH_PART = r"[a-z0-9]+(?:[._-]+[a-z0-9]+)*"
_CERTIFICATE_PEM = re.compile(
    r"(?:-----BEGIN CERTIFICATE-----\n[A-Za-z0-9+/=\n]+\n-----END CERTIFICATE-----\n?)+"
)


def _matching(pattern: str, kind: str) -> AfterValidator:
    compiled = re.compile(pattern)

    def check(value: str) -> str:
        if not compiled.fullmatch(value):
            raise ValueError(f"must be {kind}")
        return value

    return AfterValidator(check)


def _text(value: str) -> str:
    if not value.strip() or len(value) > LONGEST or not value.isprintable():
        raise ValueError(f"must be one line of 1 to {LONGEST} characters")
    if TEMPLATE.search(value):
        raise ValueError(NO_TEMPLATE)
    return value


def _secret_text(value: SecretStr) -> SecretStr:
    _text(value.get_secret_value())
    return value


def _version(value: str) -> str:
    version = _VERSION.fullmatch(value.strip())
    if not version:
        raise ValueError("must be a whole version such as 1.31.9")
    return version[1]


def _parts(value: str) -> SplitResult:
    problem = "must be an http:// or https:// URL with a host"
    _text(value)
    try:
        parts = untrusted.url_parts(value)
    except ValueError:
        raise ValueError(problem) from None
    if parts.scheme not in ("http", "https") or not parts.hostname or parts.port == 0:
        raise ValueError(problem)
    if re.search(r"[\s{}?#\"'\\]", value):
        raise ValueError("must have blanks, quotes and { } ? # \\ percent-encoded")
    return parts


def _url(value: str) -> str:
    if "@" in _parts(value).netloc:
        raise ValueError("must not contain a user name or password")
    return value.rstrip("/")


def _https_url(value: str) -> str:
    if not value.lower().startswith("https://"):
        raise ValueError("must be an https:// URL with a host")
    _url(value)
    return value


def _url_with_login(value: SecretStr) -> SecretStr:
    text = value.get_secret_value()
    _parts(text)
    return SecretStr(text.rstrip("/"))


def _certificate(value: str) -> str:
    lines = "\n".join(line.strip() for line in value.strip().splitlines())
    if not _CERTIFICATE_PEM.fullmatch(lines):
        raise ValueError("must be a certificate (-----BEGIN CERTIFICATE-----)")
    return f"{lines}\n"


def _mtu(value: Any) -> int | str:
    if value == NODES and isinstance(value, str):
        return NODES
    if isinstance(value, bool) or not isinstance(value, int):
        value = 0
    if not SMALLEST_MTU <= value <= LARGEST_MTU:
        raise ValueError(
            f"must be a whole number from {SMALLEST_MTU} to {LARGEST_MTU}, or {NODES}"
        )
    return int(value)


def _connection(value: Any) -> Any:
    """The number, which the kubeadm driver's samples write as text."""
    return int(value) if value in ("0", "1") else value


def _hosts_entry(value: str) -> str:
    """A line of /etc/hosts with single blanks."""
    first, *names = _text(value).split()
    try:
        address = network_plugins.address(first)
    except ValueError:
        raise ValueError(_HOSTS_ENTRY) from None
    if network_plugins.is_placeholder(address) or not names:
        raise ValueError(_HOSTS_ENTRY)
    if any(len(name) > 253 or not _HOST_NAME.fullmatch(name) for name in names):
        raise ValueError(_HOSTS_ENTRY)
    return " ".join((str(address), *names))


Text = Annotated[str, AfterValidator(_text)]
OptionalText = Optional[Text]
OptionalHostsEntry = Optional[Annotated[str, AfterValidator(_hosts_entry)]]
SecretText = Annotated[SecretStr, AfterValidator(_secret_text)]
OptionalSecretText = Optional[SecretText]
OptionalVersion = Optional[Annotated[str, AfterValidator(_version)]]
Url = Annotated[str, AfterValidator(_url)]
HttpsUrl = Annotated[str, AfterValidator(_https_url)]
OptionalUrlWithLogin = Annotated[
    Optional[Annotated[SecretStr, AfterValidator(_url_with_login)]], URL_FORM
]
RegistryAddress = Annotated[
    str, _matching(_HOST_AND_PORT, "a registry's host, with its port if it has one")
]
OptionalImageHost = Optional[
    Annotated[
        str,
        _matching(
            f"{_HOST_AND_PORT}(?:/{_PATH_PART})*",
            "a registry's host, with port and path if need be",
        ),
    ]
]
Label = Annotated[
    str,
    _matching(
        f"{LABEL_KEY}=(?:{LABEL_NAME})?", "a label such as example.org/kind=fast"
    ),
]
OptionalLabelKey = Optional[
    Annotated[
        str, _matching(LABEL_KEY, "a label's key such as example.org/compute-host")
    ]
]
Taint = Annotated[
    str,
    _matching(
        f"{LABEL_KEY}(?:=(?:{LABEL_NAME})?)?:(?:NoSchedule|PreferNoSchedule|NoExecute)",
        "a taint such as dedicated=video:NoSchedule, with the effect NoSchedule, "
        "PreferNoSchedule or NoExecute",
    ),
]
OptionalAddress = Optional[
    Annotated[network_plugins.Address, BeforeValidator(network_plugins.address)]
]
OptionalQuantity = Optional[
    Annotated[str, _matching(r"[1-9][0-9]{0,8}[KMGTPE]i?", "a size such as 20Gi")]
]
OptionalProfile = Optional[
    Annotated[
        str, _matching(PROFILE_NAME.pattern, "the name of a profile such as edge-5g")
    ]
]
OptionalCertificate = Optional[Annotated[str, AfterValidator(_certificate)]]
OptionalMtu = Optional[Annotated[int | str, PlainValidator(_mtu)]]
Connection = Annotated[Literal[0, 1], BeforeValidator(_connection)]
OptionalFile = Optional[Annotated[AbsolutePath, AfterValidator(_text)]]
