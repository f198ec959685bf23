"""What one attribute of the options of a cluster may look like.

As in :mod:`.field_types`: each type checks one attribute, and no text of an error
repeats the value. All of these become extra variables of Ansible, which takes double
braces for a template.
"""

import re
from typing import Annotated, Any, Literal
from urllib.parse import SplitResult, urlsplit

from pydantic import (
    AfterValidator,
    BeforeValidator,
    PlainValidator,
    SecretStr,
)

from tacker_k8s_mgmt.request.field_types import (
    URL_FORM,
    AbsolutePath,
    blank_is_absent,
)

LARGEST_MTU = 9216
SMALLEST_MTU = 576
LONGEST = 4096
#: Stands for an MTU that follows from the nodes' network interfaces.
NODES = "nodes"

_TEMPLATE = re.compile(r"\{[{%#]")
_VERSION = re.compile(r"v?(1\.\d{1,3}\.\d{1,3})")
_NAME = r"[A-Za-z0-9](?:[A-Za-z0-9._-]{0,61}[A-Za-z0-9])?"
_DNS = (
    r"[a-z0-9](?:[a-z0-9-]{0,61}[a-z0-9])?(?:\.[a-z0-9](?:[a-z0-9-]{0,61}[a-z0-9])?)*"
)
_KEY = rf"(?:{_DNS}/)?{_NAME}"
_LABEL = re.compile(rf"({_KEY})=({_NAME}|)")
_LABEL_KEY = re.compile(_KEY)
#: What is after the ``=`` of a label, if there is something.
LABEL_VALUE = re.compile(_NAME)
_TAINT = re.compile(
    rf"{_KEY}(?:=(?:{_NAME})?)?:(?:NoSchedule|PreferNoSchedule|NoExecute)"
)
_HOST_AND_PORT = re.compile(
    r"(?:[A-Za-z0-9](?:[A-Za-z0-9.-]*[A-Za-z0-9])?|\[[0-9A-Fa-f:.]+\])(?::\d{1,5})?"
)
_PEM = re.compile(
    r"(?:-----BEGIN CERTIFICATE-----\n[A-Za-z0-9+/=\n]+\n-----END CERTIFICATE-----\n?)+"
)


def _text(value: str) -> str:
    if not value.strip() or len(value) > LONGEST or not value.isprintable():
        raise ValueError(f"must be one line of 1 to {LONGEST} characters")
    if _TEMPLATE.search(value):
        raise ValueError("must not contain {{, {% or {#, which Ansible takes apart")
    return value


def _secret(value: SecretStr) -> SecretStr:
    _text(value.get_secret_value())
    return value


def _version(value: str) -> str:
    found = _VERSION.fullmatch(value.strip())
    if not found:
        raise ValueError("must be a whole version such as 1.31.9")
    return found[1]


def _parts(value: str) -> SplitResult:
    problem = "must be an http:// or https:// URL with a host"
    _text(value)
    try:
        parts = urlsplit(value)
        port = parts.port
    except ValueError:
        raise ValueError(problem) from None
    if parts.scheme not in ("http", "https") or not parts.hostname or port == 0:
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


def _registry(value: str) -> str:
    if not _HOST_AND_PORT.fullmatch(value):
        raise ValueError("must be a registry's host, with its port if it has one")
    return value


def _image_host(value: str) -> str:
    host, *path = value.split("/")
    if not _HOST_AND_PORT.fullmatch(host) or not all(
        re.fullmatch(r"[a-z0-9]+(?:[._-]+[a-z0-9]+)*", part) for part in path
    ):
        raise ValueError("must be a registry's host, with port and path if need be")
    return value


def _label(value: str) -> str:
    if not _LABEL.fullmatch(value):
        raise ValueError("must be a label such as example.org/kind=fast")
    return value


def _label_key(value: str) -> str:
    if not _LABEL_KEY.fullmatch(value):
        raise ValueError("must be a label's key such as example.org/compute-host")
    return value


def _taint(value: str) -> str:
    if not _TAINT.fullmatch(value):
        raise ValueError(
            "must be a taint such as dedicated=video:NoSchedule, with the effect "
            "NoSchedule, PreferNoSchedule or NoExecute"
        )
    return value


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
    """The kubeadm driver's samples write the number as text."""
    return int(value) if value in ("0", "1") else value


_absent = BeforeValidator(blank_is_absent)
Text = Annotated[str, AfterValidator(_text)]
OptionalText = Annotated[Text | None, _absent]
OptionalSecret = Annotated[
    Annotated[SecretStr, AfterValidator(_secret)] | None, _absent
]
Secret = Annotated[SecretStr, AfterValidator(_secret)]
OptionalVersion = Annotated[Annotated[str, AfterValidator(_version)] | None, _absent]
Url = Annotated[str, AfterValidator(_url)]
OptionalUrlWithLogin = Annotated[
    Annotated[SecretStr, AfterValidator(_url_with_login)] | None, _absent, URL_FORM
]
Registry = Annotated[str, AfterValidator(_registry)]
OptionalImageHost = Annotated[
    Annotated[str, AfterValidator(_image_host)] | None, _absent
]
Label = Annotated[str, AfterValidator(_label)]
OptionalLabelKey = Annotated[Annotated[str, AfterValidator(_label_key)] | None, _absent]
Taint = Annotated[str, AfterValidator(_taint)]
OptionalCertificate = Annotated[
    Annotated[str, AfterValidator(_certificate)] | None, _absent
]
OptionalMtu = Annotated[Annotated[int | str, PlainValidator(_mtu)] | None, _absent]
Connection = Annotated[Literal[0, 1], BeforeValidator(_connection)]
OptionalFile = Annotated[Annotated[AbsolutePath, AfterValidator(_text)] | None, _absent]
