# SPDX-License-Identifier: Apache-2.0
"""Applications on the cluster: ``applications`` of the parameters.

An application is a Helm chart, or manifests, with its configuration and its secrets.
The docstring of each field is its text in the user documentation.
"""

import re
from collections import Counter
from collections.abc import Iterator
from typing import TYPE_CHECKING, Annotated, Any, Literal

from pydantic import AfterValidator, Field, SecretStr, Strict, model_validator

from tacker_k8s_mgmt.model import untrusted
from tacker_k8s_mgmt.request import fields
from tacker_k8s_mgmt.request.cnf_exposure import ServiceExposure
from tacker_k8s_mgmt.request.secrets import OPEN
from tacker_k8s_mgmt.request.structure import Problem, Structure, readable, valid

if TYPE_CHECKING:
    from tacker_k8s_mgmt.request.installation import ClusterRequest

ATTRIBUTE = "applications"
#: A release of Helm has at most 53 characters, and our labels 63 with a prefix.
LONGEST_NAME = 40

_LABEL = re.compile(r"[a-z0-9](?:[a-z0-9-]*[a-z0-9])?")
_SHA256 = re.compile(r"[0-9a-f]{64}")
_KEY = re.compile(r"[A-Za-z0-9._-]{1,253}")
# Of the cluster itself; what is in them outlives an application.
_RESERVED = re.compile(r"kube-.*|tacker-k8s-mgmt-.*")


def _label(longest: int) -> AfterValidator:
    def check(value: str) -> str:
        if len(value) > longest or not _LABEL.fullmatch(value):
            raise ValueError(
                f"must have 1 to {longest} lower-case letters, digits and '-', with a "
                "letter or digit at both ends"
            )
        return value

    return AfterValidator(check)


def _not_reserved(value: str) -> str:
    if _RESERVED.fullmatch(value):
        raise ValueError("must not be a namespace of the cluster itself")
    return value


def _object_name(value: str) -> str:
    if len(value) > 253 or not all(map(_LABEL.fullmatch, value.split("."))):
        raise ValueError("must be the name of an object, such as api-settings")
    return value


def _data_key(value: str) -> str:
    if not _KEY.fullmatch(value) or value in (".", ".."):
        raise ValueError("must have 1 to 253 letters, digits, '-', '_' and '.'")
    return value


def _https(value: str) -> str:
    parts = untrusted.url_parts(value)
    # Credentials belong into no URL that is shown.
    if (
        parts.scheme != "https"
        or not parts.hostname
        or "@" in parts.netloc
        or not value.isascii()
        or re.search(r"[\s\"'\\]", value)
    ):
        raise ValueError("must be an https:// URL with a host and without a login")
    return value


def _digest(value: str) -> str:
    if not _SHA256.fullmatch(value.lower()):
        raise ValueError("must be a SHA-256 digest: 64 hexadecimal digits")
    return value.lower()


def _some(value: SecretStr) -> SecretStr:
    if not value.get_secret_value():
        raise ValueError("must not be empty")
    return value


_Namespace = Annotated[str, _label(63), AfterValidator(_not_reserved)]
_ObjectName = Annotated[str, AfterValidator(_object_name)]
_DataKey = Annotated[str, AfterValidator(_data_key)]
_Limit = Annotated[int, Strict(), Field(ge=1, le=86400)]


class SourceFile(Structure):
    """A file of an application: in the VNF package, or at a URL."""

    path: fields.Optional[fields.PackagePath] = None
    """Path in the VNF package."""
    url: fields.Optional[Annotated[str, AfterValidator(_https)]] = None
    """An https URL, which a control plane reads. Not beside path."""
    sha256: fields.Optional[Annotated[str, AfterValidator(_digest)]] = None
    """SHA-256 of the file at the URL, in hexadecimal digits; needed with url."""

    @model_validator(mode="after")
    def _is_one(self) -> "SourceFile":
        if (self.path is None) == (self.url is None):
            raise ValueError("needs either path or url")
        if self.url and not self.sha256:
            raise ValueError("needs sha256, the digest of the file at the URL")
        return self

    @property
    def title(self) -> str:
        """What errors call it."""
        return self.path or untrusted.shown(self.url or "")


class ConfigEntry(Structure):
    """An entry of a ConfigMap."""

    key: _DataKey
    """Its key, such as the name of a file."""
    value: str
    """Its text, which everybody may see."""


class Config(Structure):
    """A ConfigMap of the application."""

    name: _ObjectName
    """Name of the ConfigMap."""
    data: tuple[ConfigEntry, ...]
    """List of its entries."""


class SecretEntry(Structure):
    """An entry of a Secret."""

    key: _DataKey
    """Its key."""
    value: Annotated[SecretStr, AfterValidator(_some)]
    """Reference to its value."""


class Secret(Structure):
    """A Secret of the application."""

    name: _ObjectName
    """Name of the Secret."""
    type: fields.Text = "Opaque"
    """Its type. Default: Opaque."""
    data: tuple[SecretEntry, ...]
    """List of its entries."""


class NodeCount(Structure):
    """How many nodes need a label."""

    label: fields.Label
    """The label, key=value."""
    nodes: fields.Count = 1
    """How many nodes have it at least. Default: 1."""


class Limits(Structure):
    """Time limits of the phases, in seconds."""

    configuration: _Limit = 120
    """For namespace, configuration and secrets, and to remove what is not wanted any
    more. Default: 120."""
    bootstrap: _Limit = 600
    """Until the Jobs of a manifest are complete, or Helm has ended, which runs the
    chart's hooks. Default: 600."""
    rollout: _Limit = 600
    """Until the workloads are rolled out. Default: 600."""
    health: _Limit = 120
    """Until the HTTP probe succeeds. Default: 120."""


class Probe(Structure):
    """A request over HTTP that tells whether the application works."""

    service: fields.Name
    """Name of the Service to ask; through the API server, as kubectl proxy does."""
    port: fields.Port
    """The Service's port."""
    path: fields.Text = "/"
    """Path and query of the request. Default: /."""
    scheme: Literal["http", "https"] = "http"
    """http or https, whose certificate is not verified. Default: http."""


class Application(Structure):
    """An application on the cluster: a Helm chart or manifests."""

    name: Annotated[str, _label(LONGEST_NAME)]
    """Name of the application, and of the chart's release."""
    namespace: fields.Optional[_Namespace] = None
    """Its namespace, which is created if need be. Default: its name."""
    chart: SourceFile | None = None
    """A Helm chart: a directory in the package, or an archive (.tgz)."""
    values: Annotated[dict[str, Any], OPEN] = Field(default_factory=dict, repr=False)
    """Values of the chart. Secrets are references in them; everything else is shown as
    it is."""
    manifests: tuple[SourceFile, ...] = ()
    """List of files with manifests; each is one stage, which is complete before the
    next one begins."""
    config: tuple[Config, ...] = ()
    """List of ConfigMaps; a change restarts the pods of manifests."""
    secrets: tuple[Secret, ...] = ()
    """List of Secrets, whose values are given by reference."""
    requires: tuple[NodeCount, ...] = ()
    """List of labels that nodes need. The labels that its pods select are checked in
    any case."""
    limits: Limits = Field(default_factory=Limits)
    """Time limits of the phases, in seconds."""
    probe: Probe | None = None
    """The HTTP request that has to succeed in the end. Default: none."""
    expose: tuple[ServiceExposure, ...] = ()
    """List of its Services that the load balancer exposes, and how. Default: none."""
    volumes: Literal["keep", "delete"] = "keep"
    """What becomes of its volumes when it is removed: keep or delete its
    PersistentVolumeClaims. Default: keep."""

    @model_validator(mode="after")
    def _is_one_kind(self) -> "Application":
        if (self.chart is None) == (not self.manifests):
            raise ValueError("needs either chart or manifests")
        if self.values and not self.chart:
            raise ValueError("has values, but no chart")
        return self

    @property
    def place(self) -> str:
        """Its namespace."""
        return self.namespace or self.name

    def files(self) -> tuple[SourceFile, ...]:
        return (*((self.chart,) if self.chart else ()), *self.manifests)


def problems(request: "ClusterRequest") -> Iterator[Problem]:
    """Problems of the applications with each other and with the cluster's options."""
    for check in (_twice, _without_helm, _without_balancer):
        for text in readable(check(request)):
            yield Problem((ATTRIBUTE,), text)


def _twice(request: "ClusterRequest") -> Iterator[str]:
    names = Counter(valid(one, "name") for one in request.applications)
    yield from (f"{n} is given {c} times" for n, c in names.items() if n and c > 1)
    objects = Counter(
        (kind, valid(one, "namespace") or valid(one, "name"), valid(item, "name"))
        for one in request.applications
        for kind in ("config", "secrets")
        for item in valid(one, kind) or ()
    )
    for (kind, namespace, name), count in objects.items():
        if namespace and name and count > 1:
            yield f"{name} of {kind} in namespace {namespace} is given {count} times"


def _without_helm(request: "ClusterRequest") -> Iterator[str]:
    has_charts = any(valid(one, "chart") for one in request.applications)
    if has_charts and not request.cluster.helm:
        yield "charts need Helm on the control planes: cluster.helm"


def _without_balancer(request: "ClusterRequest") -> Iterator[str]:
    exposes = any(valid(one, "expose") for one in request.applications)
    if exposes and not request.load_balancer:
        yield "expose needs a load balancer: external_lb_param"
