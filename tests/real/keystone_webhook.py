# SPDX-License-Identifier: Apache-2.0
"""k8s-keystone-auth, of cloud-provider-openstack, with the laboratory's Keystone."""

import contextlib
import json
import subprocess
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import requests
from keystoneauth1 import session
from keystoneauth1.identity import v3

from lab import settings
from lab.artifacts import golang
from lab.cloud.addresses import CONTROLLER_ADDRESS
from lab.report import Report
from tests.helpers.backends import make_certificate
from tests.integration.cluster import eventually

GROUP = golang.Group("cloud-provider-openstack", "1.35.0")
PROGRAM = "k8s-keystone-auth"
_PORT = 8443
_WAIT = 30


@dataclass(frozen=True)
class Webhook:
    """A running one.

    :ivar ca: file with the CA's certificate.
    """

    url: str
    ca: Path

    def answers(self) -> bool:
        """Whether it serves."""
        with contextlib.suppress(requests.ConnectionError):
            # It knows no GET.
            answer = requests.get(self.url, verify=str(self.ca), timeout=10)
            return bool(answer.status_code)
        return False


def user() -> session.Session:
    """The laboratory's user, in its project."""
    login = v3.Password(
        auth_url=settings.IDENTITY_URL,
        username=settings.USER,
        password=settings.PASSWORD,
        project_name=settings.PROJECT,
        user_domain_id="default",
        project_domain_id="default",
    )
    return session.Session(auth=login)


@contextlib.contextmanager
def running(place: Path, verbs: Sequence[str] = ("get", "list")) -> Iterator[Webhook]:
    """Serve until the end of the block.

    :param place: an empty directory.
    :param verbs: what members of the laboratory's project may do with pods.
    """
    pem = place / "webhook.pem"
    make_certificate(pem, CONTROLLER_ADDRESS)
    policy = place / "policy.json"
    users = {"roles": ["admin"], "projects": [settings.PROJECT]}
    permissions = {"*/['pods']": list(verbs)}
    rules = [{"users": users, "resource_permissions": permissions}]
    policy.write_text(json.dumps(rules))
    programs = golang.build(settings.from_environment(), Report(), GROUP)
    argv = [
        str(programs / PROGRAM),
        *("--listen", f"{CONTROLLER_ADDRESS}:{_PORT}"),
        *("--tls-cert-file", str(pem), "--tls-private-key-file", str(pem)),
        *("--keystone-url", settings.IDENTITY_URL),
        *("--keystone-policy-file", str(policy)),
    ]
    ca = place / "ca.pem"
    ca.write_text(pem.read_text().partition("-----BEGIN PRIVATE KEY")[0])
    webhook = Webhook(f"https://{CONTROLLER_ADDRESS}:{_PORT}/webhook", ca)
    with (place / "webhook.log").open("w") as log:
        process = subprocess.Popen(argv, stdout=log, stderr=log)
        try:
            eventually(webhook.answers)
            yield webhook
        finally:
            process.terminate()
            process.wait(_WAIT)
