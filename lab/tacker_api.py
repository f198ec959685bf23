# SPDX-License-Identifier: Apache-2.0
"""Tacker's REST APIs as the demo and the integration tests use them.

Runs inside the lab's namespaces with the Tacker environment's Python. Every wait ends
when nothing moves any more, and a failed operation shows the whole error that Tacker
gives.
"""

import contextlib
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from keystoneauth1 import session
from keystoneauth1.identity import v3

from lab.patience import LONGEST, Patience

#: Seconds in which nothing moves, after which each of these is given up.
UPLOAD_SILENCE = 120.0
OPERATION_SILENCE = 300.0
CANCEL_SILENCE = 60.0
HANDLED_SILENCE = 20.0
LET_GO_LIMIT = 60.0
#: Seconds between two looks at something; each takes of the time that Tacker has for
#: its work. A caller with a callback for each poll needs many.
FIRST_PAUSE, LONGEST_PAUSE = 0.5, 1.5
#: Tacker's error for a VNF instance that is locked by an operation.
HELD = "Other LCM operation"
TERMINAL_STATES = ("COMPLETED", "FAILED_TEMP", "FAILED", "ROLLED_BACK")


class Tacker:
    """A client of one Tacker.

    :param auth: keyword arguments of ``keystoneauth1.identity.v3.Password``.
    :param endpoint: Tacker's address, e.g. ``http://127.0.0.1:9890``.
    :param moved: what changes while Tacker works; see :class:`lab.patience.Patience`.
    """

    #: Where the lifecycle management is, and the version that it is asked for.
    LCM, VERSION = "/vnflcm/v1", "1.3.0"

    def __init__(
        self,
        auth: dict[str, Any],
        endpoint: str,
        moved: Callable[[], object] = lambda: None,
    ) -> None:
        self._moved = moved
        self._session = session.Session(auth=v3.Password(**auth))
        self._endpoint = endpoint.rstrip("/")
        #: Seconds after which an operation is given up though something moves.
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
        yield
        patience = Patience(self._moved, HANDLED_SILENCE)
        marks = ("operationState", "stateEnteredTime")
        while not patience.is_over():
            now = self.occurrence(occurrence_id)
            if any(now[mark] != before[mark] for mark in marks):
                return
            time.sleep(0.1)

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

        longest = FIRST_PAUSE if tick else LONGEST_PAUSE
        return self._poll(look, good, bad, OPERATION_SILENCE, longest)

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
    ) -> dict[str, Any]:
        patience = Patience(self._moved, silence, self.longest)
        pause = FIRST_PAUSE
        while True:
            found = look()
            if good(found):
                return found
            why = bad(found)
            if why:
                raise RuntimeError(why)
            if patience.is_over():
                raise RuntimeError(f"nothing final, and nothing moves: {found}")
            time.sleep(pause)
            pause = min(pause * 1.1, longest_pause)


class TackerV2(Tacker):
    """A client of the v2 API; packages and VIMs are still v1's.

    Its conductor tells that an operation has ended a moment before it lets go of the
    VNF instance; a call that comes in between is made again.
    """

    LCM, VERSION = "/vnflcm/v2", "2.0.0"

    def _call(self, method: str, path: str, **kwargs: Any) -> Any:
        deadline = time.monotonic() + LET_GO_LIMIT
        while True:
            response = super()._call(method, path, **kwargs)
            held = response.status_code == 409 and HELD in response.text
            if not held or time.monotonic() > deadline:
                return response
            time.sleep(0.2)
