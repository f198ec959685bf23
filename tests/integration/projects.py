# SPDX-License-Identifier: Apache-2.0
"""A second project, whose user has no more rights than a project's member has.

The laboratory's own user is an administrator, and has everything that is there.
"""

import contextlib
import json
import uuid
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from lab import client, settings
from lab.services.rest import Session
from tests.integration.cluster import PARAMETERS, Cluster
from tests.integration.laboratory import Lab

_ROLES = ("member", "heat_stack_owner", "creator")
_ADMIN = ("admin", "admin")
#: A host key that no host of the laboratory has.
KEY = "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIHNhbXBsZXNhbXBsZXNhbXBsZXNhbXBsZXNhbXBsZTEy"
#: The parameter of a CNF with one Service to expose.
BALANCED = {"services": [{"name": "web-balanced"}]}


@contextlib.contextmanager
def second_project(kind: type[Lab], scratch: Path) -> Iterator[Lab]:
    """The running lab as a user of another project sees it, with a package of theirs.

    :param kind: of the lab, for the one or the other API.
    """
    name = f"second-{uuid.uuid4().hex[:6]}"
    _make(name)
    known = kind._client()
    login = {**client.login(), "username": name, "project_name": name}
    theirs = type(known)(login, client.TACKER, client.moved)
    vim = {
        "name": name,
        "type": "openstack",
        "auth_url": settings.IDENTITY_URL,
        "is_default": True,
        "vim_project": {"name": name, "project_domain_name": "Default"},
        "auth_cred": {
            "username": name,
            "password": settings.PASSWORD,
            "user_domain_name": "Default",
            "cert_verify": "False",
        },
    }

    class Second(kind):  # type: ignore[valid-type, misc]
        """The same lab, with another login."""

        @staticmethod
        def _client() -> Any:
            return theirs

    with registered(theirs, vim):
        yield Second(scratch)


def _make(name: str) -> None:
    """Make a project and a user of the same name."""
    url = settings.IDENTITY_URL
    keystone = Session(*_ADMIN)
    roles = {role["name"]: role["id"] for role in keystone.get(f"{url}/roles")["roles"]}
    project = {"name": name, "domain_id": "default"}
    project_id = keystone.post(f"{url}/projects", {"project": project})["project"]["id"]
    user = {**project, "password": settings.PASSWORD}
    user_id = keystone.post(f"{url}/users", {"user": user})["user"]["id"]
    for role in _ROLES:
        keystone.put(f"{url}/projects/{project_id}/users/{user_id}/roles/{roles[role]}")


@contextlib.contextmanager
def registered(tacker: Any, vim: dict[str, Any]) -> Iterator[str]:
    """A VIM; its id."""
    answer = tacker.call("POST", "/v1.0/vims.json", json={"vim": vim})
    made = str(answer.json()["vim"]["id"])
    try:
        yield made
    finally:
        tacker.call("DELETE", f"/v1.0/vims/{made}.json")


def host_keys() -> dict[str, str]:
    """What the conductor has recorded of hosts, by the file's name."""
    state = settings.from_environment().data / "tacker"
    files = [path for path in state.rglob("*") if path.is_file()]
    found = {path.name: path.read_text() for path in files if _has_keys(path)}
    return {name: text for name, text in found.items() if text}


def _has_keys(path: Path) -> bool:
    return path.name == "known_hosts" or path.parent.name == "known_hosts.d"


@contextlib.contextmanager
def refused(lab: Lab, **changes: Any) -> Iterator[str]:
    """The error of an instantiation that is refused before anything exists.

    :param changes: attributes of our parameters, by their name; None: without it.
    """
    with lab.instance("attack") as made:
        for name, change in changes.items():
            made.parameters[name] = change
        error = made.instantiate(expect="FAILED_TEMP")
        assert made.stacks() == []
        yield error
        made.handle("rollback", "ROLLED_BACK")


def servers_of_attackers(lab: Lab) -> dict[str, dict[str, Any]]:
    """Structures ``ansible`` that would have others trust a key, by what is wrong."""
    sample = json.loads((lab.requests / f"instantiate-{lab.flavour}.json").read_text())
    server = dict(sample["additionalParams"][PARAMETERS]["ansible"])
    line = f"{server['ip_address']} {KEY}"
    server["transferring_inventory_path"] = "/home/ansible/clusters/attack"
    return {
        "ansible.ip_address": {**server, "ip_address": f"fe80::1%x\n{line} #"},
        "host key": {**server, "host_key": KEY},
    }


def seen(cluster: Cluster) -> list[str]:
    """What a CNF that gets through leaves in a cluster or on its load balancer."""
    objects = cluster.kubectl("get", "services,pods", "-A", "-o", "name").split()
    return [*sorted(objects), *map(str, cluster.balancer("status")["services"])]
