# SPDX-License-Identifier: Apache-2.0
"""Clusters of Tacker's v2 API, for the tests of its own hooks."""

import base64
import contextlib
import json
import uuid
from collections.abc import Iterator
from typing import Any

from lab import client, settings
from lab.client import TackerV2
from lab.services.rest import Session
from tacker_k8s_mgmt.tools.csar import parts
from tacker_k8s_mgmt.tools.csar.tacker_api import V2
from tests.integration import cnf, exposed
from tests.integration.cluster import PARAMETERS, Cluster
from tests.integration.laboratory import Lab

REQUESTS = parts.samples(V2) / "requests"
OPENSTACK = "ETSINFV.OPENSTACK_KEYSTONE.V_3"
KUBERNETES = "ETSINFV.KUBERNETES.V_1"
#: The administrator's account that the driver makes in a cluster, and its secret.
ACCOUNT = ("kube-system", "tacker-k8s-mgmt-admin")
BARBICAN = f"{settings.url('barbican')}/v1/secrets"


def sample(name: str) -> dict[str, Any]:
    """A sample request without its logins: those of the tests are kept otherwise."""
    body: dict[str, Any] = json.loads((REQUESTS / name).read_text())
    body["additionalParams"].pop(PARAMETERS, None)
    return body


def token(cluster: Cluster) -> str:
    """That of the account that the driver has made for Tacker in a cluster."""
    namespace, name = ACCOUNT
    secret = cluster.kubectl("-n", namespace, "get", "secret", name, "-o", "json")
    return base64.b64decode(json.loads(secret)["data"]["token"]).decode()


def vim_for_a_cnf(cluster: Cluster) -> dict[str, Any]:
    """A cluster of the v1 API as a request of the v2 API names it."""
    interface = {
        "endpoint": f"https://{cluster.balancer_address()}:6443",
        "ssl_ca_cert": cluster.ca().read_text(),
    }
    return {
        "vimId": str(uuid.uuid4()),
        "vimType": KUBERNETES,
        "interfaceInfo": interface,
        "accessInfo": {"bearer_token": token(cluster)},
    }


class ClusterV2(Cluster):
    """One VNF instance of the v2 API, made from the sample request.

    :ivar theirs: metadata that are none of ours.
    """

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.theirs: dict[str, Any] = {}

    def perform(
        self, verb: str, body: dict[str, Any], expect: str = "COMPLETED"
    ) -> str:
        """Send a request and wait; the error text of the operation."""
        self._operation = self._lab.tacker.operate(self.id, verb, body)
        return self.wait(expect)

    def heal_with_another_stack(self) -> str:
        """Heal the whole VNF, its networks included."""
        self._begin_heal(sample("heal-vnf-all.json"))
        return self.wait("COMPLETED")

    def in_progress(self) -> bool:
        """Whether an operation on the VMs has begun and not ended."""
        states = [one["operationState"] for one in self.occurrences()]
        return "PROCESSING" in states

    def vnfc(self, server: str) -> str:
        """The id of ``vnfcInfo``, which a heal request has here."""
        resource = super().vnfc(server)
        return next(
            str(vnfc["id"])
            for vnfc in self.show()["instantiatedVnfInfo"]["vnfcInfo"]
            if vnfc["vnfcResourceInfoId"] == resource
        )

    @property
    def metadata(self) -> dict[str, Any]:
        """What is kept of the cluster."""
        return dict(self.show().get("metadata") or {})

    @property
    def stack_id(self) -> str:
        return str(self.show()["instantiatedVnfInfo"]["metadata"]["stack_id"])

    def occurrences(self) -> list[dict[str, Any]]:
        """Every operation of this VNF instance, whole."""
        return [
            self._lab.tacker.occurrence(operation) for operation in self._operations()
        ]

    def vim_for_a_cnf(self) -> dict[str, Any]:
        """The cluster as a CNF's request names it; Tacker shows no token."""
        vim = list(self.show()["vimConnectionInfo"].values())[-1]
        return {**vim, "accessInfo": {"bearer_token": token(self)}}

    def vim_types(self) -> list[str]:
        infos = self.show().get("vimConnectionInfo") or {}
        return [info["vimType"] for info in infos.values()]

    def assert_nothing_left(self) -> None:
        super().assert_nothing_left()
        assert self.vim_types() == []
        assert self.metadata == self.theirs


class LabV2(Lab):
    """The running lab with a package for the v2 API in it."""

    api = "v2"
    cluster_class = ClusterV2
    requests = REQUESTS

    @staticmethod
    def _client() -> TackerV2:
        return client.tacker_v2()

    def keep_secrets_in_barbican(self, parameters: dict[str, Any]) -> None:
        """Let our parameters name their secrets in place of saying them."""
        session = Session(settings.USER, settings.PROJECT)

        def kept(payload: str) -> dict[str, str]:
            body = {"payload": payload, "payload_content_type": "text/plain"}
            return {"secret_ref": session.post(BARBICAN, body)["secret_ref"]}

        for structure in parameters.values():
            for name in ("password", "ssh_password", "http_proxy"):
                if isinstance(structure, dict) and isinstance(structure.get(name), str):
                    structure[name] = kept(structure[name])

    @contextlib.contextmanager
    def cnf_on(
        self, vim: dict[str, Any], manifest: str | None = None
    ) -> Iterator["CnfV2"]:
        """A CNF on this VIM, deleted at the end.

        :param manifest: see :class:`.cnf.Cnf`.
        """
        one = CnfV2(self.tacker, self.scratch, vim, manifest)
        try:
            yield one
        finally:
            one.remove()

    def _settle(self, cluster: Cluster) -> None:
        super()._settle(cluster)
        with contextlib.suppress(RuntimeError):
            if cluster.occurrence()["operationState"] == "FAILED_TEMP":
                # What has no rollback.
                cluster.handle("fail", "FAILED")

    @contextlib.contextmanager
    def exposed_on(self, vim: dict[str, Any]) -> Iterator[exposed.WebV2]:
        """The sample of a CNF on this VIM, deleted at the end."""
        with exposed.removed(exposed.WebV2(self.tacker, self.scratch, vim)) as one:
            yield one


class CnfV2(cnf.Cnf):
    """A CNF whose requests carry the VIM, since v2 clusters are not registered."""

    def instantiate(self, level: str = "one") -> None:
        self._do(
            "instantiate",
            {
                "flavourId": "web",
                "instantiationLevelId": level,
                "additionalParams": self._parameters(),
                "vimConnectionInfo": {"cluster": self._vim},
            },
        )
