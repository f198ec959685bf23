# SPDX-License-Identifier: Apache-2.0
"""Types of the attributes of ``cluster``, beside those of :mod:`.field_types`.

Their values become extra variables of Ansible, which takes double braces for a
template. No error text repeats a value.
"""

import re
from typing import Annotated, Any, Literal
from urllib.parse import SplitResult

from pydantic import AfterValidator, BeforeValidator, PlainValidator, SecretStr

from tacker_k8s_mgmt.model import networks, urls
from tacker_k8s_mgmt.model.node_settings import KEY, NAME
from tacker_k8s_mgmt.request.field_types import (
    NO_TEMPLATE,
    TEMPLATE,
    URL_FORM,
    AbsolutePath,
    Optional,
)
from tacker_k8s_mgmt.request.profile_values import NAME as PROFILE

LARGEST_MTU = 9216
SMALLEST_MTU = 576
LONGEST = 4096
#: The word for an MTU that follows from the nodes' network interfaces.
NODES = "nodes"

_VERSION = re.compile(r"v?(1\.[0-9]{1,3}\.[0-9]{1,3})")
#: The value of a label, unless it is empty.
LABEL_VALUE = re.compile(NAME)
_HOST_AND_PORT = (
    r"(?:[A-Za-z0-9](?:[A-Za-z0-9.-]*[A-Za-z0-9])?|\[[0-9A-Fa-f:.]+\])(?::[0-9]{1,5})?"
)
_HOST_NAME = re.compile(r"[A-Za-z0-9](?:[A-Za-z0-9.-]*[A-Za-z0-9])?")
_HOSTS_ENTRY = "must be an IP address and one or several host names, as in /etc/hosts"
_PATH_PART = r"[a-z0-9]+(?:[._-]+[a-z0-9]+)*"
_PEM = re.compile(
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


def _secret(value: SecretStr) -> SecretStr:
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
        parts = urls.parts(value)
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


def _url_with_login(value: SecretStr) -> SecretStr:
    text = value.get_secret_value()
    _parts(text)
    return SecretStr(text.rstrip("/"))


def _certificate(value: str) -> str:
    lines = "\n".join(line.strip() for line in value.strip().splitlines())
    if not _PEM.fullmatch(lines):
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
        address = networks.address(first)
    except ValueError:
        raise ValueError(_HOSTS_ENTRY) from None
    if networks.is_placeholder(address) or not names:
        raise ValueError(_HOSTS_ENTRY)
    if any(len(name) > 253 or not _HOST_NAME.fullmatch(name) for name in names):
        raise ValueError(_HOSTS_ENTRY)
    return " ".join((str(address), *names))


Text = Annotated[str, AfterValidator(_text)]
OptionalText = Optional[Text]
OptionalHostsEntry = Optional[Annotated[str, AfterValidator(_hosts_entry)]]
Secret = Annotated[SecretStr, AfterValidator(_secret)]
OptionalSecret = Optional[Secret]
OptionalVersion = Optional[Annotated[str, AfterValidator(_version)]]
Url = Annotated[str, AfterValidator(_url)]
OptionalUrlWithLogin = Annotated[
    Optional[Annotated[SecretStr, AfterValidator(_url_with_login)]], URL_FORM
]
Registry = Annotated[
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
    str, _matching(f"{KEY}=(?:{NAME})?", "a label such as example.org/kind=fast")
]
OptionalLabelKey = Optional[
    Annotated[str, _matching(KEY, "a label's key such as example.org/compute-host")]
]
Taint = Annotated[
    str,
    _matching(
        f"{KEY}(?:=(?:{NAME})?)?:(?:NoSchedule|PreferNoSchedule|NoExecute)",
        "a taint such as dedicated=video:NoSchedule, with the effect NoSchedule, "
        "PreferNoSchedule or NoExecute",
    ),
]
OptionalAddress = Optional[
    Annotated[networks.Address, BeforeValidator(networks.address)]
]
OptionalQuantity = Optional[
    Annotated[str, _matching(r"[1-9][0-9]{0,8}[KMGTPE]i?", "a size such as 20Gi")]
]
OptionalProfile = Optional[
    Annotated[str, _matching(PROFILE.pattern, "the name of a profile such as edge-5g")]
]
OptionalCertificate = Optional[Annotated[str, AfterValidator(_certificate)]]
OptionalMtu = Optional[Annotated[int | str, PlainValidator(_mtu)]]
Connection = Annotated[Literal[0, 1], BeforeValidator(_connection)]
OptionalFile = Optional[Annotated[AbsolutePath, AfterValidator(_text)]]
