# SPDX-License-Identifier: Apache-2.0
"""Keystone's contents: projects, users, roles and the catalogue of the lab."""

from typing import Any

from lab.services.rest import Session
from lab.settings import IDENTITY_URL, PASSWORD, PROJECT, REGION, USER, url

HEAT_DOMAIN = "heat"
HEAT_DOMAIN_ADMIN = "heat_domain_admin"
# Keystone itself has made the others.
ROLES = ("heat_stack_owner", "heat_stack_user", "creator")
# Name, project and roles beside admin.
USERS = (
    ("heat", "service", ("service",)),
    ("tacker", "service", ("service",)),
    ("barbican", "service", ("service",)),
    (USER, PROJECT, ("heat_stack_owner", "creator")),
)
SERVICES = (
    ("heat", "orchestration", f"{url('heat')}/v1/%(project_id)s"),
    ("barbican", "key-manager", url("barbican")),
    ("images", "image", url("images")),
    ("compute", "compute", f"{url('compute')}/v2.1"),
    ("network", "network", url("network")),
    ("tacker", "nfv-orchestration", url("tacker")),
)


def create() -> None:
    """Fill a Keystone that was only bootstrapped."""
    keystone = _Keystone()
    roles = keystone.ids("roles") | {n: keystone.new("role", name=n) for n in ROLES}
    projects = {
        name: keystone.new("project", name=name, domain_id="default")
        for name in ("service", PROJECT)
    }
    for name, project, extra in USERS:
        user = keystone.new_user(name, "default", projects[project])
        for role in ("admin", *extra):
            keystone.grant("projects", projects[project], user, roles[role])
    domain = keystone.new("domain", name=HEAT_DOMAIN)
    owner = keystone.new_user(HEAT_DOMAIN_ADMIN, domain)
    keystone.grant("domains", domain, owner, roles["admin"])
    for name, kind, address in SERVICES:
        service = keystone.new("service", name=name, type=kind)
        for interface in ("public", "internal", "admin"):
            keystone.new(
                "endpoint",
                service_id=service,
                region_id=REGION,
                interface=interface,
                url=address,
            )


class _Keystone:
    def __init__(self) -> None:
        self._session = Session("admin", "admin")

    def ids(self, kind: str) -> dict[str, str]:
        """What there is of a kind, by name."""
        rows = self._session.get(f"{IDENTITY_URL}/{kind}")[kind]
        return {row["name"]: row["id"] for row in rows}

    def new(self, kind: str, **attributes: Any) -> str:
        """Create something; its id."""
        made = self._session.post(f"{IDENTITY_URL}/{kind}s", {kind: attributes})
        return str(made[kind]["id"])

    def new_user(self, name: str, domain: str, project: str | None = None) -> str:
        return self.new(
            "user",
            name=name,
            password=PASSWORD,
            domain_id=domain,
            default_project_id=project,
        )

    def grant(self, kind: str, scope: str, user: str, role: str) -> None:
        self._session.put(f"{IDENTITY_URL}/{kind}/{scope}/users/{user}/roles/{role}")
