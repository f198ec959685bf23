# SPDX-License-Identifier: Apache-2.0
"""Tacker, clusters and hosts as the demo and the integration tests see them.

Runs inside the lab's namespaces with the Tacker environment's Python. Every wait ends
when nothing moves any more, and a failed operation shows the whole error that Tacker
gives.
"""

import base64
import contextlib
import os
import subprocess
import time
from collections.abc import Callable, Iterator, Sequence
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

#: Seconds after which something that still moves is taken for an endless loop.
LONGEST = 1800.0


class Patience:
    """Lasts as long as something moves.

    :param moved: what differs from one call to the next while something moves.
    :param silence: seconds without a difference after which it ends.
    :param longest: seconds after which it ends in any case.
    """

    def __init__(
        self,
        moved: Callable[[], object],
        silence: float,
        longest: float = LONGEST,
    ) -> None:
        self._moved = moved
        self._silence = silence
        self._last = moved()
        now = time.monotonic()
        self._end = now + silence
        self._latest = now + max(silence, longest)

    def is_over(self) -> bool:
        """Whether it makes no sense to wait longer."""
        now = time.monotonic()
        state = self._moved()
        if state != self._last:
            self._last = state
            self._end = now + self._silence
        return now > min(self._end, self._latest)


#: Seconds in which nothing moves, after which each of these is abandoned.
UPLOAD_SILENCE = 120.0
OPERATION_SILENCE = 300.0
CANCEL_SILENCE = 60.0
HANDLED_SILENCE = 20.0
LET_GO_LIMIT = 60.0
#: Seconds between two looks at something; each takes of the time that Tacker has for
#: its work. A caller with a callback for each poll needs many.
FIRST_PAUSE, LONGEST_PAUSE = 0.5, 1.5
#: Seconds between two looks at an operation's record in the database, and those after
#: which Tacker is asked all the same.
GLANCE, REST = 0.2, 10.0
#: Tacker's error for a VNF instance that is locked by an operation.
HELD = "Other LCM operation"
TERMINAL_STATES = ("COMPLETED", "FAILED_TEMP", "FAILED", "ROLLED_BACK")


class Tacker:
    """A client of one Tacker.

    :param auth: keyword arguments of ``keystoneauth1.identity.v3.Password``.
    :param endpoint: Tacker's address, e.g. ``http://127.0.0.1:9890``.
    :param moved: what changes while Tacker works; see :class:`lab.client.Patience`.
    :param database: connects to Tacker's database, if it can be read.
    """

    #: Where the lifecycle management is, and the version that it is asked for.
    LCM, VERSION = "/vnflcm/v1", "1.3.0"
    #: What a state is in the database.
    RECORD = """
        SELECT operation_state, state_entered_time FROM vnf_lcm_op_occs WHERE id = %s
        """

    def __init__(
        self,
        auth: dict[str, Any],
        endpoint: str,
        moved: Callable[[], object] = lambda: None,
        database: Callable[[], Any] | None = None,
    ) -> None:
        self._moved = moved
        self._database = database
        self._session = session.Session(auth=v3.Password(**auth))
        self._endpoint = endpoint.rstrip("/")
        #: Seconds after which an operation is abandoned though something moves.
        self.longest = LONGEST

    def _call(self, method: str, path: str, **kwargs: Any) -> Any:
        version = self.VERSION if path.startswith(self.LCM) else Tacker.VERSION
        headers = {"Version": version, **kwargs.pop("headers", {})}
        return self._session.request(
            f"{self._endpoint}{path}",
            method,
            headers=headers,
            raise_exc=False,
            connect_retries=3,
            timeout=120,
            **kwargs,
        )

    def call(self, method: str, path: str, **kwargs: Any) -> Any:
        """The response of a call that must succeed."""
        response = self._call(method, path, **kwargs)
        if response.status_code >= 400:
            raise RuntimeError(
                f"{method} {path}: HTTP {response.status_code}: {response.text}"
            )
        return response

    def refused(self, method: str, path: str, **kwargs: Any) -> tuple[int, str]:
        """Status code and text of a call that is expected to be refused."""
        response = self._call(method, path, **kwargs)
        return response.status_code, response.text

    # packages

    def packages(self) -> list[dict[str, Any]]:
        """All VNF packages, whole: the list leaves out VNFD id and user data."""
        path = "/vnfpkgm/v1/vnf_packages"
        listed = self.call("GET", path).json()
        return [
            self.call("GET", f"{path}/{resource['id']}").json() for resource in listed
        ]

    def upload_package(self, csar: Path, user_data: dict[str, str]) -> dict[str, Any]:
        """Onboard the file *csar* and wait for it."""
        body = {"userDefinedData": user_data}
        package = self.call("POST", "/vnfpkgm/v1/vnf_packages", json=body).json()
        path = f"/vnfpkgm/v1/vnf_packages/{package['id']}"
        self.call(
            "PUT",
            f"{path}/package_content",
            data=csar.read_bytes(),
            headers={"Content-Type": "application/zip"},
        )
        return self._poll(
            lambda: self.call("GET", path).json(),
            lambda found: found["onboardingState"] == "ONBOARDED",
            lambda found: (
                found["onboardingState"] == "CREATED"
                and f"the package was refused: {found}; see tacker-conductor.log"
            ),
            UPLOAD_SILENCE,
        )

    def delete_package(self, package_id: str) -> None:
        """Disable and delete a VNF package."""
        path = f"/vnfpkgm/v1/vnf_packages/{package_id}"
        self._call("PATCH", path, json={"operationalState": "DISABLED"})
        self.call("DELETE", path)

    # VNF instances

    def instances(self) -> list[dict[str, Any]]:
        """All VNF instances."""
        return list(self.call("GET", f"{self.LCM}/vnf_instances").json())

    def create(self, vnfd_id: str, name: str) -> dict[str, Any]:
        """A new VNF instance."""
        body = {"vnfdId": vnfd_id, "vnfInstanceName": name}
        return dict(self.call("POST", f"{self.LCM}/vnf_instances", json=body).json())

    def show(self, vnf_id: str) -> dict[str, Any]:
        """A VNF instance."""
        return dict(self.call("GET", f"{self.LCM}/vnf_instances/{vnf_id}").json())

    def delete(self, vnf_id: str) -> None:
        """Delete a VNF instance that is not instantiated."""
        self.call("DELETE", f"{self.LCM}/vnf_instances/{vnf_id}")

    def operate(self, vnf_id: str, verb: str, body: dict[str, Any]) -> str:
        """Start an operation; the id of its LCM operation occurrence."""
        path = f"{self.LCM}/vnf_instances/{vnf_id}/{verb}"
        return str(
            self.call("POST", path, json=body).headers["Location"].rsplit("/", 1)[1]
        )

    # operation occurrences

    def occurrence(self, occurrence_id: str) -> dict[str, Any]:
        """An LCM operation occurrence."""
        path = f"{self.LCM}/vnf_lcm_op_occs/{occurrence_id}"
        return dict(self.call("GET", path).json())

    def failed(self, vnf_id: str) -> list[str]:
        """Ids of the operation occurrences of a VNF instance that are FAILED_TEMP."""
        occurrences = self.call("GET", f"{self.LCM}/vnf_lcm_op_occs").json()
        return [
            occurrence["id"]
            for occurrence in occurrences
            if occurrence["vnfInstanceId"] == vnf_id
            and occurrence["operationState"] == "FAILED_TEMP"
        ]

    def handle(self, occurrence_id: str, verb: str) -> None:
        """``retry``, ``rollback`` or ``fail`` an operation occurrence.

        Returns when it has left the state that it was in, so that :meth:`wait` does
        not take that one for the outcome; or soon, for one that is back in it.
        """
        with self.leaving(occurrence_id):
            self.call("POST", f"{self.LCM}/vnf_lcm_op_occs/{occurrence_id}/{verb}")

    @contextlib.contextmanager
    def leaving(self, occurrence_id: str) -> Iterator[None]:
        """The same for a verb that is sent within the block by any client."""
        before = self.occurrence(occurrence_id)
        pause = self._pause(occurrence_id)
        yield
        patience = Patience(self._moved, HANDLED_SILENCE)
        marks = ("operationState", "stateEnteredTime")
        while not patience.is_over():
            now = self.occurrence(occurrence_id)
            if any(now[mark] != before[mark] for mark in marks):
                return
            pause(0.1)

    def cancel(self, occurrence_id: str) -> None:
        """Cancel an operation, as soon as Tacker's ``operation_timeout`` allows it.

        :raises RuntimeError: it was refused until nothing moved any more.
        """
        path = f"{self.LCM}/vnf_lcm_op_occs/{occurrence_id}/cancel"
        patience = Patience(self._moved, CANCEL_SILENCE)
        while True:
            status, text = self.refused("POST", path, json={"cancelMode": "FORCEFUL"})
            if status < 400:
                return
            if patience.is_over():
                raise RuntimeError(f"POST {path}: HTTP {status}: {text}")
            time.sleep(0.5)

    def wait(
        self,
        occurrence_id: str,
        *wanted: str,
        tick: Callable[[], None] | None = None,
    ) -> dict[str, Any]:
        """Wait until the operation is in one of the *wanted* states.

        :param tick: called at every look.
        :raises RuntimeError: another final state came, or nothing moves any more.
        """

        def bad(found: dict[str, Any]) -> str | bool:
            state = found["operationState"]
            if state not in TERMINAL_STATES:
                return False
            return f"the operation is {state}: {found.get('error')}"

        def look() -> dict[str, Any]:
            if tick:
                tick()
            return self.occurrence(occurrence_id)

        def good(found: dict[str, Any]) -> bool:
            return found["operationState"] in wanted

        if tick:
            return self._poll(look, good, bad, OPERATION_SILENCE, FIRST_PAUSE)
        pause = self._pause(occurrence_id)
        return self._poll(look, good, bad, OPERATION_SILENCE, pause=pause)

    def _pause(self, occurrence_id: str) -> Callable[[float], None]:
        """A pause between two looks at an operation.

        A look takes Tacker and its client as much processor time as a hundred into the
        database. So where there is one, the pause lasts until the state changes there,
        in place of the seconds that it is called with.
        """
        if self._database is None:
            return time.sleep
        connection = self._database()

        def state() -> Any:
            with connection.cursor() as cursor:
                cursor.execute(self.RECORD, (occurrence_id,))
                return cursor.fetchone()

        last = state()

        def pause(_: float) -> None:
            nonlocal last
            deadline = time.monotonic() + REST
            while time.monotonic() < deadline:
                time.sleep(GLANCE)
                try:
                    before, last = last, state()
                except pymysql.MySQLError:
                    # A test restarts the server.
                    with contextlib.suppress(pymysql.MySQLError):
                        connection.ping(reconnect=True)
                    continue
                if last != before:
                    return

        return pause

    # VIMs

    def vims(self) -> list[dict[str, Any]]:
        """All VIMs."""
        return list(self.call("GET", "/v1.0/vims.json").json()["vims"])

    def _poll(
        self,
        look: Callable[[], dict[str, Any]],
        good: Callable[[dict[str, Any]], bool],
        bad: Callable[[dict[str, Any]], str | bool],
        silence: float,
        longest_pause: float = LONGEST_PAUSE,
        pause: Callable[[float], None] = time.sleep,
    ) -> dict[str, Any]:
        patience = Patience(self._moved, silence, self.longest)
        seconds = FIRST_PAUSE
        while True:
            found = look()
            if good(found):
                return found
            why = bad(found)
            if why:
                raise RuntimeError(why)
            if patience.is_over():
                raise RuntimeError(f"nothing final, and nothing moves: {found}")
            pause(seconds)
            seconds = min(seconds * 1.1, longest_pause)


class TackerV2(Tacker):
    """A client of the v2 API; packages and VIMs are still v1's.

    Its conductor tells that an operation has ended a moment before it lets go of the
    VNF instance; a call that comes in between is made again.
    """

    LCM, VERSION = "/vnflcm/v2", "2.0.0"
    RECORD = "SELECT operationState, stateEnteredTime FROM VnfLcmOpOccV2 WHERE id = %s"

    def _call(self, method: str, path: str, **kwargs: Any) -> Any:
        deadline = time.monotonic() + LET_GO_LIMIT
        while True:
            response = super()._call(method, path, **kwargs)
            held = response.status_code == 409 and HELD in response.text
            if not held or time.monotonic() > deadline:
                return response
            time.sleep(0.2)


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
    return Tacker(login(), TACKER, moved, database)


def tacker_v2() -> TackerV2:
    """The same for its v2 API."""
    return TackerV2(login(), TACKER, moved, database)


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
    connection = database(name)
    with contextlib.closing(connection), connection.cursor() as cursor:
        cursor.execute(statement)


def database(name: str = "tacker") -> Any:
    """A connection to one of the lab's databases."""
    return pymysql.connect(
        host=ADDRESS,
        port=PORTS["mariadb"],
        user="lab",
        password=PASSWORD,
        database=name,
        autocommit=True,
    )


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
