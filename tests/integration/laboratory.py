# SPDX-License-Identifier: Apache-2.0
"""The running lab as tests and fault campaigns see it, and clusters that clean up.

Without pytest, which a laboratory does not need.
"""

import contextlib
import copy
import json
import uuid
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from lab import client, settings
from lab.client import Tacker
from lab.cloud.settings import PREPARED
from tacker_k8s_mgmt.tools.cli import main
from tests.integration import cnf, exposed
from tests.integration.cluster import (
    PARAMETERS,
    PROXY_SECRET,
    REQUESTS,
    SERVER_ACCOUNT,
    VM_ACCOUNT,
    Cluster,
    eventually,
)
from tests.integration.guide import Guide, id_in

ANSIBLE_SERVER = "10.99.0.5"
CONDUCTOR = "tacker-conductor"
#: Where a host has what it has written itself, and what lies in its memory.
WRITTEN = "/run/lab/disk /tmp /run /dev/shm"


class Lab:
    """The running lab and the package in it.

    :param source: what the package is made of, as :file:`samples`; default: that.
    :param stock: with VMs of a stock cloud image, which take no passwords.
    :param more: further options of `csar build`.
    """

    #: Tacker's API, and what the tests have for it.
    api = "v1"
    cluster_class: type[Cluster] = Cluster
    #: Parts of the lines of Ansible that kubespray itself is the reason for: its
    #: variable for the size of a batch.
    expected_warnings: tuple[str, ...] = ("variable using reserved name: serial",)
    requests = REQUESTS

    def __init__(
        self,
        scratch: Path,
        flavour: str = "simple",
        source: Path | None = None,
        *,
        stock: bool = False,
        more: Sequence[str] = (),
    ) -> None:
        self.scratch = scratch
        self.flavour = flavour
        self.tacker = self._client()
        self.csar = csar = scratch / f"{flavour}-{self.api}.zip"
        # An id of its own: a lab may have the demo's package, too.
        options = ["--api", self.api, "--vnfd-id", str(uuid.uuid4())]
        if source:
            options += ["--source", str(source)]
        if not stock:
            options += ["--image", PREPARED]
        build = ["csar", "build", flavour, "-o", str(csar)]
        assert main([*build, *options, *more]) == 0
        package = self.tacker.upload_package(csar, {"test": uuid.uuid4().hex})
        self.package_id, self.vnfd_id = package["id"], package["vnfdId"]

    @staticmethod
    def _client() -> Tacker:
        return client.tacker()

    @contextlib.contextmanager
    def instance(
        self,
        name: str,
        like: Cluster | None = None,
        dormant: bool = False,
        secret: bool = False,
        **changes: Any,
    ) -> Iterator[Cluster]:
        """A VNF instance, deleted at the end whatever became of it.

        :param like: use the directory and the VIM name of this one.
        :param dormant: leave our parameters out of the request.
        :param secret: log in everywhere with passwords that are no other words.
        :param changes: structures of our parameters to change, by their name.
        """
        named = f"{name}-{uuid.uuid4().hex[:6]}"
        cluster = self.cluster_class(self, named, like, secret)
        cluster.body = self._body(cluster, dormant, changes)
        if secret:
            self._log_in_secretly(cluster.parameters)
        try:
            yield cluster
            assert not (found := cluster.warnings_of_sudo()), found
        finally:
            self._clean(cluster)

    def _body(
        self, cluster: Cluster, dormant: bool, changes: dict[str, Any]
    ) -> dict[str, Any]:
        sample = self.requests / f"instantiate-{self.flavour}.json"
        body = json.loads(sample.read_text())
        given = body["additionalParams"]
        if dormant:
            del given[PARAMETERS]
            return dict(body)
        ours = given[PARAMETERS]
        ours["vim_name"] = cluster.vim_name
        ours["ansible"]["transferring_inventory_path"] = cluster.directory
        ours["proxy"] = {
            "http_proxy": f"http://someone:{PROXY_SECRET}@10.99.0.1:3128",
            "k8s_node_cidr": "10.10.0.0/24",
        }
        for name, change in copy.deepcopy(changes).items():
            ours[name] = {**ours.get(name, {}), **change}
        return dict(body)

    @staticmethod
    def _log_in_secretly(parameters: dict[str, Any]) -> None:
        places = {"ansible": SERVER_ACCOUNT}
        places |= dict.fromkeys(("master_node", "worker_node"), VM_ACCOUNT)
        for place, account in places.items():
            wanted = {"username": account.name, "password": account.password}
            parameters[place].update(wanted)
            parameters[place].pop("private_key", None)
        balancer = {
            "ssh_username": VM_ACCOUNT.name,
            "ssh_password": VM_ACCOUNT.password,
        }
        parameters["external_lb_param"].update(balancer)
        parameters["external_lb_param"].pop("ssh_private_key", None)

    @contextlib.contextmanager
    def cnf(self, vim: str, manifest: str | None = None) -> Iterator[cnf.Cnf]:
        """A CNF on the VIM of this name, deleted at the end.

        :param manifest: see :class:`.cnf.Cnf`.
        """
        found = next(one for one in self.tacker.vims() if one["name"] == vim)
        one = cnf.Cnf(self.tacker, self.scratch, found["id"], manifest)
        try:
            yield one
        finally:
            one.remove()

    @contextlib.contextmanager
    def exposed(self, vim: str) -> Iterator[exposed.Web]:
        """The sample of a CNF on the VIM of this name, deleted at the end."""
        found = next(one for one in self.tacker.vims() if one["name"] == vim)
        with exposed.removed(
            exposed.Web(self.tacker, self.scratch, found["id"])
        ) as one:
            yield one

    @contextlib.contextmanager
    def package(self, guide: Guide, scene: str, name: str) -> Iterator[str]:
        """A package that commands of the guides upload; the id of its VNFD.

        :param scene: that of the upload.
        :param name: what the file is called there.
        """
        vnfd_id = guide.builds(name, self.api)
        made = id_in(guide.does("package made"))
        guide.does(scene, ID=made, PACKAGE_ID=made)
        path = f"/vnfpkgm/v1/vnf_packages/{made}"
        eventually(
            lambda: (
                self.tacker.call("GET", path).json()["onboardingState"] == "ONBOARDED"
            )
        )
        try:
            yield vnfd_id
        finally:
            self.tacker.delete_package(made)

    @contextlib.contextmanager
    def options(self, section: str = "k8s_mgmt", **values: object) -> Iterator[None]:
        """A conductor that has these values of our options, or of others."""
        try:
            with self.configured(section, **values):
                self.kill_conductor()
                yield
        finally:
            self.kill_conductor()

    @staticmethod
    @contextlib.contextmanager
    def configured(section: str = "k8s_mgmt", **values: object) -> Iterator[None]:
        """These values in the file, for what reads it from now on."""
        path = client.state() / "etc" / "tacker.conf"
        before = path.read_text()
        # Of an option that is set twice the last one counts.
        lines = "".join(f"{name} = {value}\n" for name, value in values.items())
        path.write_text(f"{before}\n[{section}]\n{lines}")
        try:
            yield
        finally:
            path.write_text(before)

    @staticmethod
    def kill_conductor() -> None:
        """Kill the conductor, without a warning, and start it again."""
        services("restart", "--kill", CONDUCTOR)

    @contextlib.contextmanager
    def cut(self, host: str) -> Iterator[None]:
        """A host that nobody reaches."""
        cloud("cut", host)
        try:
            yield
        finally:
            cloud("restore", host)

    @contextlib.contextmanager
    def refusing(self, pattern: str) -> Iterator[None]:
        """A cloud that neither builds nor deletes VMs of these names."""
        cloud("refuse", pattern)
        try:
            yield
        finally:
            cloud("admit", pattern)

    def _settle(self, cluster: Cluster) -> None:
        """End an operation that has failed."""
        with contextlib.suppress(RuntimeError):
            if cluster.occurrence()["operationState"] == "FAILED_TEMP":
                cluster.handle("rollback", "ROLLED_BACK")

    def _clean(self, cluster: Cluster) -> None:
        self._settle(cluster)
        if cluster.show()["instantiationState"] == "INSTANTIATED":
            with contextlib.suppress(RuntimeError):
                cluster.terminate()
        with contextlib.suppress(RuntimeError):
            self.tacker.delete(cluster.id)

    def ansible(self, line: str) -> str:
        """What a shell line prints on the Ansible server, as root."""
        return client.on_host(ANSIBLE_SERVER, "sh", "-c", line)

    @staticmethod
    def logs(services: str = "*") -> str:
        """Everything that the services and our journals have written.

        :param services: a pattern for the names of the services.
        """
        written = (client.state() / "log").glob(f"{services}.log")
        journals = settings.from_environment().journals.rglob("*")
        return "".join(
            path.read_text(errors="replace")
            for path in sorted((*written, *journals))
            if path.is_file()
        )


def cloud(*words: str) -> None:
    """A verb of the lab's cloud."""
    client.command([client.SYSTEM_PYTHON, "-m", "lab.cloud", *words])


def services(*words: str) -> None:
    """A verb for the lab's services."""
    client.command([client.SYSTEM_PYTHON, "-m", "lab.services", *words], limit=600)
