# SPDX-License-Identifier: Apache-2.0
"""Whether Tacker would make the VMs in the cloud that is checked, and no other."""

from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from typing import Any

from tacker_k8s_mgmt.cloud.client import Cloud
from tacker_k8s_mgmt.cloud.facts import Vim
from tacker_k8s_mgmt.cloud.rows import row
from tacker_k8s_mgmt.csar.api import V2, Api
from tacker_k8s_mgmt.csar.request import Request
from tacker_k8s_mgmt.model import urls
from tacker_k8s_mgmt.model.tree import dig, mapping, sequence
from tacker_k8s_mgmt.status.check import Check

_DEFAULT = "Tacker's default VIM"
_OWN = "VIM of the request"
_PORTS = {"http": 80, "https": 443}
# Words for the same in accessInfo: SOL 003's of v2, and Tacker's own of v1.
_PROJECT = ("project", "projectName", "project_name", "tenant")
_DOMAIN = ("projectDomain", "projectDomainName", "project_domain_name")
_KINDS = {
    "openstack",
    "etsinfv.openstack_keystone.v_3",
    "etsinfv.openstack_keystone.v_2",
}


class VimChecks:
    """The checks of one request.

    :param api: Tacker's, that the request is for.
    """

    def __init__(self, cloud: Cloud, request: Request, api: Api) -> None:
        self._cloud, self._request, self._api = cloud, request, api
        self._vims: list[Vim] | None = None

    def used(self) -> Check:
        """Whether the VIM that Tacker would use is the cloud of this login."""
        given = self._request.body.get("vimConnectionInfo")
        if not given:
            return row(_DEFAULT, self._cloud.project, self._default)
        infos = [*given.values()] if isinstance(given, Mapping) else sequence(given)
        return row(_OWN, self._cloud.project, partial(self._given, infos))

    def name(self, name: str) -> Check:
        """Whether the name of the cluster's VIM is free in Tacker's registry."""
        if self._api is V2:
            return Check("VIM name", name, skipped="v2 keeps it with the VNF instance")

        def findings() -> Iterator[str]:
            if any(vim.name == name for vim in self._registered()):
                yield (
                    f"Tacker has a VIM of this name already: choose another vim_name, "
                    f"or delete it (openstack vim delete {name})"
                )

        return row("VIM name", name, findings)

    def _registered(self) -> list[Vim]:
        if self._vims is None:
            self._vims = self._cloud.vims()
        return self._vims

    def _default(self) -> Iterator[str]:
        default = [vim for vim in self._registered() if vim.is_default]
        if not default:
            yield (
                "there is none: openstack vim register --is-default --config-file "
                "FILE NAME, or give vimConnectionInfo in the request"
            )
        for vim in default:
            yield from self._differences(vim)

    def _given(self, infos: Sequence[Any]) -> Iterator[str]:
        for info in map(mapping, infos):
            vim_id = str(info.get("vimId") or "")
            if self._api is V2 or not vim_id:
                yield from self._differences(_vim(info))
                continue
            found = [vim for vim in self._registered() if vim.id == vim_id]
            if not found:
                yield f"Tacker has no VIM of the id {vim_id}: openstack vim list"
            for vim in found:
                yield from self._differences(vim)

    def _differences(self, vim: Vim) -> Iterator[str]:
        if vim.kind.lower() not in _KINDS:
            yield f"{vim.name} is of type {vim.kind}: VMs need an OpenStack"
            return
        known = {_place(url) for url in self._cloud.identity_urls}
        if vim.auth_url and _place(vim.auth_url) not in known:
            yield (
                f"{vim.name} is at {vim.auth_url}, and this login is at "
                f"{self._cloud.auth_url}: log in to the cloud of the VIM"
            )
        elif vim.project and self._is_other(vim):
            own = _qualified(self._cloud.project, self._cloud.domain)
            yield (
                f"{vim.name} is for the project {_qualified(vim.project, vim.domain)}, "
                f"and this login is for {own}: log in to that of the VIM"
            )

    def _is_other(self, vim: Vim) -> bool:
        domains = {vim.domain.lower(), self._cloud.domain.lower()} - {""}
        return vim.project != self._cloud.project or len(domains) > 1


def _vim(info: Mapping[str, Any]) -> Vim:
    """The VIM that a request describes."""
    access = mapping(info.get("accessInfo"))

    def first(names: tuple[str, ...]) -> str:
        return next((str(access[name]) for name in names if access.get(name)), "")

    return Vim(
        str(info.get("id") or "vimConnectionInfo"),
        str(info.get("vimType")),
        auth_url=str(dig(info, "interfaceInfo", "endpoint") or ""),
        project=first(_PROJECT),
        domain=first(_DOMAIN),
    )


def _qualified(project: str, domain: str) -> str:
    return f"{project} of the domain {domain}" if domain else project


def _place(url: str) -> tuple[str, int, str]:
    """Where a Keystone is: its host, port and path, whatever the version."""
    try:
        split = urls.parts(url)
    except ValueError:
        return url, 0, ""
    path = split.path.rstrip("/")
    for version in ("/v3", "/v2.0"):
        path = path.removesuffix(version)
    return (
        (split.hostname or "").lower(),
        split.port or _PORTS.get(split.scheme, 0),
        path,
    )
