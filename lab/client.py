# SPDX-License-Identifier: Apache-2.0
"""What the demo and the integration tests do inside the lab's namespaces.

Runs with the Tacker environment's Python, in the environment that ``python3 -m lab
exec`` gives: ``OS_*`` for Keystone, ``LAB_STATE`` and ``LAB_CLOUD_STATE``.
"""

import base64
import contextlib
import os
import subprocess
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pymysql
import requests
import yaml
from keystoneauth1 import session
from keystoneauth1.identity import v3
from requests.adapters import HTTPAdapter
from urllib3.util import Retry

from lab.cloud.hosts import Host, Hosts, find
from lab.settings import ADDRESS, PASSWORD, PORTS, from_environment
from lab.tacker_api import Tacker, TackerV2

SYSTEM_PYTHON = "/usr/bin/python3"
ADMIN_CONF = "/etc/kubernetes/admin.conf"
TACKER = "http://127.0.0.1:9890"
# As often as kubectl repeats a GET, within 30 seconds or so.
AGAIN = Retry(total=10, backoff_factor=0.25, backoff_max=4)


def state() -> Path:
    """The lab's state directory."""
    return Path(os.environ["LAB_STATE"])


def tacker() -> Tacker:
    """A client of the lab's Tacker, as the user ``nfv_user``."""
    return Tacker(login(), TACKER, moved)


def tacker_v2() -> TackerV2:
    """The same for its v2 API."""
    return TackerV2(login(), TACKER, moved)


def moved() -> list[int]:
    """What changes while Heat, Tacker or the driver works: how much each has written.

    API services are left out: they log the requests of a client that waits, too.
    """
    logs = (state() / "log").glob("*-conductor*.log")
    heat = (state() / "log").glob("heat-engine.log")
    journals = from_environment().journals.rglob("*")
    return [_size(path) for path in sorted((*logs, *heat, *journals))]


def _size(path: Path) -> int:
    try:
        return path.stat().st_size
    except FileNotFoundError:
        # It was there a moment ago.
        return 0


def stacks() -> dict[str, str]:
    """State of each Heat stack of that user by its name, nested ones included."""
    heat = session.Session(auth=v3.Password(**login()))
    found = heat.get(
        "/stacks",
        params={"show_nested": "true"},
        endpoint_filter={"service_type": "orchestration"},
        timeout=60,
    )
    every = found.json()["stacks"]
    return {stack["stack_name"]: stack["stack_status"] for stack in every}


def login() -> dict[str, Any]:
    names = {
        "auth_url": "OS_AUTH_URL",
        "username": "OS_USERNAME",
        "password": "OS_PASSWORD",
        "project_name": "OS_PROJECT_NAME",
        "user_domain_name": "OS_USER_DOMAIN_NAME",
        "project_domain_name": "OS_PROJECT_DOMAIN_NAME",
    }
    return {key: os.environ[name] for key, name in names.items()}


def command(argv: Sequence[str], limit: float = 60, stdin: str | None = None) -> str:
    """What *argv* prints; its error output when it fails.

    :param stdin: what it reads; None: nothing.
    :raises RuntimeError: it failed, with what it said.
    """
    done = subprocess.run(
        argv,
        input=stdin or "",
        capture_output=True,
        text=True,
        timeout=limit,
        check=False,
    )
    if done.returncode:
        raise RuntimeError(f"{' '.join(argv)}: {done.stderr or done.stdout}")
    return done.stdout


def on_host(name: str, *argv: str, stdin: str | None = None, limit: float = 60) -> str:
    """What a command prints on a host's console, as root.

    :param name: the host's name, address or the beginning of its id.
    """
    cloud = _cloud()
    return command(cloud.enter(find(cloud.all(), name), argv), limit, stdin)


def hosts() -> list[Host]:
    """Every host."""
    return _cloud().all()


def _cloud() -> Hosts:
    return Hosts(Path(os.environ["LAB_CLOUD_STATE"]))


def in_database(name: str, statement: str) -> None:
    """Run a statement of SQL in one of the lab's databases.

    :raises pymysql.MySQLError: the server refused it.
    """
    connection = pymysql.connect(
        host=ADDRESS,
        port=PORTS["mariadb"],
        user="lab",
        password=PASSWORD,
        database=name,
        autocommit=True,
    )
    with contextlib.closing(connection), connection.cursor() as cursor:
        cursor.execute(statement)


class ClusterApi:
    """A cluster's API through its load balancer, certificate verified.

    :param control_plane: the control-plane host, for ``kubectl``'s credentials.
    :param address: the load balancer's address and port.
    :param kubeconfig: where the credentials are put, for ``kubectl``.
    """

    def __init__(self, control_plane: str, address: str, kubeconfig: Path) -> None:
        config = yaml.safe_load(on_host(control_plane, "cat", ADMIN_CONF))
        cluster, user = config["clusters"][0]["cluster"], config["users"][0]["user"]
        cluster["server"] = f"https://{address}"
        self.address = address
        self.kubeconfig = kubeconfig
        self.ca = kubeconfig.with_suffix(".ca.pem")
        self.ca.write_bytes(base64.b64decode(cluster["certificate-authority-data"]))
        self._login = kubeconfig.with_suffix(".login.pem")
        for path in (kubeconfig, self._login):
            path.touch(mode=0o600)
        kubeconfig.write_text(yaml.safe_dump(config))
        parts = (user[f"client-{part}-data"] for part in ("certificate", "key"))
        self._login.write_bytes(b"\n".join(map(base64.b64decode, parts)))

    def get(self, path: str) -> str:
        """The answer of the API server to an anonymous GET."""
        answer = requests.get(
            f"https://{self.address}{path}", verify=str(self.ca), timeout=10
        )
        answer.raise_for_status()
        return answer.text

    def items(self, path: str) -> list[dict[str, Any]]:
        """The objects of a list, as the administrator sees them.

        For repeated requests, each of which takes a process with ``kubectl``.
        As that does, it asks again when a connection ends without an answer: until the
        load balancer notices that a control plane is dead, it still sends some there.

        :raises requests.RequestException: no answer, or not the list.
        """
        with requests.Session() as client:
            client.mount("https://", HTTPAdapter(max_retries=AGAIN))
            answer = client.get(
                f"https://{self.address}{path}",
                verify=str(self.ca),
                cert=str(self._login),
                timeout=60,
            )
        answer.raise_for_status()
        return list(answer.json()["items"])

    def merge(self, path: str, change: dict[str, Any], limit: float) -> None:
        """Change an object, as the administrator; it is stored when this returns.

        :param limit: seconds.
        :raises requests.RequestException: whether it was stored is not known.
        """
        answer = requests.patch(
            f"https://{self.address}{path}",
            json=change,
            headers={"Content-Type": "application/merge-patch+json"},
            verify=str(self.ca),
            cert=str(self._login),
            timeout=limit,
        )
        answer.raise_for_status()

    def kubectl(self, *argv: str, stdin: str | None = None) -> str:
        """What the real kubectl prints."""
        kubectl = ["kubectl", "--kubeconfig", str(self.kubeconfig), *argv]
        return command(kubectl, stdin=stdin)
