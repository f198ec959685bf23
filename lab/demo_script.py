# SPDX-License-Identifier: Apache-2.0
"""The demo's journey, as an operator would take it; runs inside the lab's namespaces.

``python3 -m lab demo`` starts the lab and then this, with the Tacker environment's
Python. It prints the command of each thing that it does, so that one can do it again.
"""

import hashlib
import json
import sys
import time
from typing import Any

from rich.table import Table

from lab import client, settings
from lab.real import request
from lab.real.site import Site
from tacker_k8s_mgmt import journal
from tacker_k8s_mgmt.model.timeline import Timeline
from tacker_k8s_mgmt.tools.cli import main as command_line
from tacker_k8s_mgmt.tools.csar import parts
from tacker_k8s_mgmt.tools.csar.tacker_api import V1, V2, Api
from tacker_k8s_mgmt.tools.render.console import Console, Reporter

CHECKSUM = "sha256"
CLIENTS = {V1: client.tacker, V2: client.tacker_v2}
LOOK_AROUND = """
The lab stays up. Look around, as root:
  {lab} shell                            a shell in it: openstack, kubectl, ssh
  {lab} exec -- kubectl get nodes
  {lab} host list                        the VMs; `host exec NAME` is a console
  {lab} logs tacker-conductor -f         what a service says
  {lab} exec -- tacker-k8s-mgmt cluster show kubernetes-cluster
Stop and remove it: make lab-down
"""


class Tour:
    """One journey."""

    def __init__(self, console: Console, api: Api) -> None:
        self._console = console
        self._api = api
        self._journals = str(settings.from_environment().journals)
        self._tacker = CLIENTS[api]()
        self._site = Site.find(client.state())

    def go(self) -> None:
        """Package, instantiate, show."""
        create = self._request("create.json")
        # One of the other API would have the same directory on the Ansible server.
        for api in CLIENTS:
            Tour(self._console, api).remove(create["vnfInstanceName"])
        package = self._package()
        began = time.monotonic()
        instance = self._tacker.create(package["vnfdId"], create["vnfInstanceName"])
        self._instantiate(instance["id"])
        self._say(f"instantiated in {time.monotonic() - began:.0f} s", "bold green")
        self._show(instance["id"])
        if self._site:
            self._draw(instance["id"])

    def _say(self, text: str, style: str = "") -> None:
        self._console.print(
            text, style=style or None, markup=False, highlight=False, soft_wrap=True
        )

    def _title(self, text: str) -> None:
        self._console.rule(text, align="left", style="cyan")

    def _command(self, words: str) -> None:
        version = " --os-tacker-api-version 2" if self._api is V2 else ""
        self._say(f"$ openstack{version} {words}")

    def _request(self, name: str) -> dict[str, Any]:
        return dict(
            json.loads((parts.samples(self._api) / "requests" / name).read_text())
        )

    def _package(self) -> dict[str, Any]:
        self._title("VNF package")
        csar = client.state() / f"simple-{self._api.name}.zip"
        words = ["csar", "build", "simple", "--api", self._api.name, "-o", str(csar)]
        self._say(f"$ tacker-k8s-mgmt {' '.join(words)}")
        if command_line([*words, "--force"]):
            raise RuntimeError("the package could not be built")
        checksum = hashlib.sha256(csar.read_bytes()).hexdigest()
        for package in self._tacker.packages():
            known = package.get("userDefinedData", {}).get(CHECKSUM)
            if package["onboardingState"] != "ONBOARDED" or known not in (
                None,
                checksum,
            ):
                # Another content with the same VNFD id could not be onboarded.
                self._tacker.delete_package(package["id"])
            elif known:
                self._say(f"onboarded already: {package['id']}")
                return package
        package = self._tacker.upload_package(csar, {CHECKSUM: checksum})
        self._say(f"onboarded: {package['id']}")
        return package

    def remove(self, name: str) -> None:
        """Remove the VNF instances of that name, which former demos have left."""
        for instance in self._tacker.instances():
            if instance["vnfInstanceName"] != name:
                continue
            self._title("The former demo goes first")
            vnf_id = instance["id"]
            for occurrence in self._tacker.failed(vnf_id):
                self._command(f"vnflcm op rollback {occurrence}")
                self._tacker.handle(occurrence, "rollback")
                self._wait(vnf_id, occurrence, "ROLLED_BACK")
            if self._tacker.show(vnf_id)["instantiationState"] == "INSTANTIATED":
                self._command(f"vnflcm terminate {vnf_id}")
                body = self._request("terminate.json")
                operation = self._tacker.operate(vnf_id, "terminate", body)
                self._wait(vnf_id, operation, "COMPLETED")
            self._tacker.delete(vnf_id)

    def _instantiate(self, vnf_id: str) -> None:
        self._title("Instantiate")
        name = "instantiate-simple.json"
        place = "samples/v2/requests" if self._api is V2 else "samples/requests"
        self._say(f"POST {self._tacker.LCM}/vnf_instances/{vnf_id}/instantiate")
        self._say(f"     with {place}/{name}")
        body = self._request(name)
        if self._site:
            self._say(f"     and the real kubespray {self._site.version} from a mirror")
            body = request.adapted(body, self._site)
        operation = self._tacker.operate(vnf_id, "instantiate", body)
        self._wait(vnf_id, operation, "COMPLETED")

    def _wait(self, vnf_id: str, operation: str, wanted: str) -> None:
        timeline = Timeline()
        path = journal.path_of(self._journals, vnf_id)
        reporter = Reporter(self._console, timeline)
        with journal.JournalReader(path) as reader, reporter:
            reader.read()

            def tick() -> None:
                for record in reader.read():
                    reporter.report(timeline.add(record), str(record.get("event")))

            self._tacker.wait(operation, wanted, tick=tick)
            tick()
        self._say(f"operation {operation}: {wanted}", "bold")

    def _show(self, vnf_id: str) -> None:
        instance = self._tacker.show(vnf_id)
        self._title("The VNF instance")
        self._command(f"vnflcm show {vnf_id}")
        self._show_machines(instance)
        url = self._url(instance)
        kubeconfig = settings.from_environment().state / "kubeconfig"
        address = url.removeprefix("https://")
        api = client.ClusterApi(_server(instance, "masterNode"), address, kubeconfig)
        self._title("The cluster, by the real kubectl through the load balancer")
        self._say("$ kubectl get nodes -o wide")
        self._say(api.kubectl("get", "nodes", "-o", "wide").rstrip())
        self._title("The load balancer, certificate verified")
        self._say(f"$ curl --cacert {api.ca} {url}/readyz")
        self._say(api.get("/readyz"))
        if self._api is V2:
            self._title("The cluster as a VIM of the VNF instance")
            self._command(f"vnflcm show {vnf_id} -c 'VIM Connection Info'")
        else:
            self._title("The cluster as a VIM in Tacker")
            self._command("vim list")
        self._show_vims(instance)

    def _draw(self, vnf_id: str) -> None:
        self._title("Where the time went")
        page = client.state() / "timeline.html"
        arguments = ["runs", "show", vnf_id, "--html", str(page), "--force"]
        self._say(f"$ tacker-k8s-mgmt {' '.join(arguments)}")
        command_line(arguments)

    def _show_machines(self, instance: dict[str, Any]) -> None:
        addresses = {host.id: host.addresses for host in client.hosts()}
        table = Table("VDU", "server", "addresses")
        info = instance["instantiatedVnfInfo"]
        for vnfc in info["vnfcResourceInfo"]:
            server = vnfc["computeResource"]["resourceId"]
            known = ", ".join(addresses.get(server, ()))
            table.add_row(vnfc["vduId"], server, known)
        self._say(
            f"{instance['vnfInstanceName']}  {instance['instantiationState']}  "
            f"flavour {info['flavourId']}"
        )
        self._console.print(table)

    def _vims(self, instance: dict[str, Any]) -> list[tuple[str, str, str, str]]:
        """Name, type, URL and id of each VIM; v1 registers them, v2 does not."""
        if self._api is V2:
            infos = instance["vimConnectionInfo"].items()
            return [
                (name, one["vimType"], one["interfaceInfo"]["endpoint"], one["vimId"])
                for name, one in infos
            ]
        return [
            (vim["name"], vim["type"], vim["auth_url"], vim["id"])
            for vim in self._tacker.vims()
        ]

    def _url(self, instance: dict[str, Any]) -> str:
        """Of the cluster's API."""
        infos = instance["vimConnectionInfo"]
        own = infos.values() if isinstance(infos, dict) else infos
        ids = {info["vimId"] for info in own}
        for _, kind, url, vim_id in self._vims(instance):
            if "kubernetes" in kind.lower() and vim_id in ids:
                return url
        raise RuntimeError("the VNF instance has no VIM of the cluster")

    def _show_vims(self, instance: dict[str, Any]) -> None:
        for name, kind, url, vim_id in self._vims(instance):
            self._say(f"{name}  {kind}", "bold")
            self._say(f"    {url}  {vim_id}")


def _server(instance: dict[str, Any], vdu: str) -> str:
    for vnfc in instance["instantiatedVnfInfo"]["vnfcResourceInfo"]:
        if vnfc["vduId"] == vdu:
            return str(vnfc["computeResource"]["resourceId"])
    raise RuntimeError(f"the VNF instance has no {vdu}")


def main(lab: str, api: str, began: float) -> int:
    """Run the script; the exit code.

    :param lab: the words of the lab's command, for the hints.
    :param api: Tacker's, ``v1`` or ``v2``.
    :param began: when the demo began, seconds since the epoch.
    """
    console = Console()
    try:
        Tour(console, V2 if api == V2.name else V1).go()
    except RuntimeError as exc:
        console.print(str(exc), style="bold red", markup=False)
        return 1
    print(LOOK_AROUND.format(lab=lab))
    print(f"The demo took {time.time() - began:.0f} s.")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1], sys.argv[2], float(sys.argv[3])))
