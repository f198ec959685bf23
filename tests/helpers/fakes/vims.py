# SPDX-License-Identifier: Apache-2.0
"""Tacker's VIM connections."""

from collections.abc import Mapping, Sequence
from dataclasses import replace

from pydantic import SecretStr

from tacker_k8s_mgmt import errors
from tacker_k8s_mgmt.model.vim import ClusterAccess, Vim, VimSpec
from tests.helpers.fakes.state import SiteState


class FakeVims:
    def __init__(self, site: SiteState) -> None:
        self._site = site

    def name_taken(self, name: str, tenant: str = "") -> bool:
        return name in self._site.foreign_vims

    def helm_password(self) -> SecretStr | None:
        return self._site.helm_password

    def register(self, spec: VimSpec) -> str:
        self._site.touch("vims.register")
        if spec.tenant:
            vims = {**self._site.tenant_vims, spec.tenant: spec}
            self._site.change("tenant_vims", vims)
            return f"vim-of-{spec.tenant}"
        self._site.change("vim", spec)
        return "vim-id"

    def update_helm_hosts(self, hosts: Sequence[str]) -> bool:
        self._site.touch("vims.update_helm_hosts")
        spec = self._site.vim
        if spec is None or spec.helm is None or spec.helm.hosts == tuple(hosts):
            return False
        login = replace(spec.helm, hosts=tuple(hosts))
        self._site.change("vim", replace(spec, helm=login))
        return True

    def users(self, tenant: str | None = None) -> tuple[str, ...]:
        if tenant is None:
            any_use = self._site.vim_in_use or self._site.tenants_in_use
            return ("cnf",) if any_use else ()
        return ("cnf",) if tenant in self._site.tenants_in_use else ()

    def of_tenants(self) -> Mapping[str, Vim] | None:
        self._site.touch("vims.of_tenants")
        return {
            tenant: Vim(f"vim-of-{tenant}", spec.name, spec.auth_url, named=False)
            for tenant, spec in self._site.tenant_vims.items()
        }

    def has_login(self, tenant: str, access: ClusterAccess) -> bool:
        spec = self._site.tenant_vims.get(tenant)
        return spec is not None and access == ClusterAccess(
            spec.token, spec.ca_certificate
        )

    def remove_tenant(self, tenant: str) -> None:
        self._site.touch("vims.remove_tenant")
        if tenant in self._site.tenants_in_use:
            raise errors.VimError(detail=f"The VIM of {tenant} is still used.")
        vims = {n: v for n, v in self._site.tenant_vims.items() if n != tenant}
        self._site.change("tenant_vims", vims)

    def registered(self) -> tuple[Vim, ...]:
        self._site.touch("vims.registered")
        spec = self._site.vim
        return (Vim("vim-id", spec.name, spec.auth_url, named=True),) if spec else ()

    def remove(self) -> bool:
        self._site.touch("vims.remove")
        there = self._site.vim is not None
        self._site.change("vim", None)
        self._site.change("tenant_vims", {})
        return there
