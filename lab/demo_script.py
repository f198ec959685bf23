# SPDX-License-Identifier: Apache-2.0
"""The demo's journey, as an operator would take it; runs inside the lab's namespaces.

``python3 -m lab demo`` starts the lab and then this, with the Tacker environment's
Python. It prints the command of each thing that it does, so that one can do it again.
"""

import hashlib
import json
import sys
import time
from pathlib import Path
from typing import Any

from rich.table import Table

from lab import client, settings
from lab.real import request
from lab.real.site import Site
from tacker_k8s_mgmt import journal
from tacker_k8s_mgmt.model.timeline import Timeline
from tacker_k8s_mgmt.tools.cli import main as command_line
from tacker_k8s_mgmt.tools.render.console import Console, Reporter

ROOT = Path(__file__).resolve().parent.parent
REQUESTS = ROOT / "samples" / "requests"
CHECKSUM = "sha256"
LOOK_AROUND = """
The lab stays up. Look around, as root:
  {lab} shell                            a shell in it: openstack, kubectl, ssh
  {lab} exec -- kubectl --kubeconfig {kubeconfig} get nodes
  {lab} host list                        the VMs; `host exec NAME` is a console
  {lab} logs tacker-conductor -f         what a service says
  {lab} exec -- tacker-k8s-mgmt runs show --state-path {journals}
Stop and remove it: make lab-down
"""


class Tour:
    """One journey."""

    def __init__(self, console: Console) -> None:
        self._console = console
        self._journals = str(settings.from_environment().journals)
        self._tacker = client.tacker()
        self._site = Site.find(client.state())

    def go(self) -> None:
        """Package, instantiate, show."""
        create = _request("create.json")
        self._remove_former(create["vnfInstanceName"])
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

    def _package(self) -> dict[str, Any]:
        self._title("VNF package")
        csar = client.state() / "simple.zip"
        self._say(f"$ tacker-k8s-mgmt csar build simple -o {csar}")
        if command_line(["csar", "build", "simple", "-o", str(csar), "--force"]):
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

    def _remove_former(self, name: str) -> None:
        for instance in self._tacker.instances():
            if instance["vnfInstanceName"] != name:
                continue
            self._title("The former demo goes first")
            vnf_id = instance["id"]
            for occurrence in self._tacker.failed(vnf_id):
                self._say(f"$ openstack vnflcm op rollback {occurrence}")
                self._tacker.handle(occurrence, "rollback")
                self._wait(vnf_id, occurrence, "ROLLED_BACK")
            if self._tacker.show(vnf_id)["instantiationState"] == "INSTANTIATED":
                self._say(f"$ openstack vnflcm terminate {vnf_id}")
                body = _request("terminate.json")
                operation = self._tacker.operate(vnf_id, "terminate", body)
                self._wait(vnf_id, operation, "COMPLETED")
            self._tacker.delete(vnf_id)

    def _instantiate(self, vnf_id: str) -> None:
        self._title("Instantiate")
        self._say(f"POST /vnflcm/v1/vnf_instances/{vnf_id}/instantiate")
        self._say("     with samples/requests/instantiate-simple.json")
        body = _request("instantiate-simple.json")
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
        self._say(f"$ openstack vnflcm show {vnf_id}")
        self._show_machines(instance)
        vim = self._vim(instance)
        kubeconfig = settings.from_environment().state / "kubeconfig"
        address = vim["auth_url"].removeprefix("https://")
        api = client.ClusterApi(_server(instance, "masterNode"), address, kubeconfig)
        self._title("The cluster, by the real kubectl through the load balancer")
        self._say("$ kubectl get nodes -o wide")
        self._say(api.kubectl("get", "nodes", "-o", "wide").rstrip())
        self._title("The load balancer, certificate verified")
        self._say(f"$ curl --cacert {api.ca} {vim['auth_url']}/readyz")
        self._say(api.get("/readyz"))
        self._title("The cluster as a VIM in Tacker")
        self._say("$ openstack vim list")
        self._show_vims()

    def _draw(self, vnf_id: str) -> None:
        self._title("Where the time went")
        page = client.state() / "timeline.html"
        arguments = ["runs", "show", vnf_id, "--html", str(page), "--force"]
        arguments += ["--state-path", self._journals]
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

    def _vim(self, instance: dict[str, Any]) -> dict[str, Any]:
        ids = {info["vimId"] for info in instance["vimConnectionInfo"]}
        for vim in self._tacker.vims():
            if vim["type"] == "kubernetes" and vim["id"] in ids:
                return vim
        raise RuntimeError("the cluster is not registered as a VIM")

    def _show_vims(self) -> None:
        table = Table("name", "type")
        table.add_column("auth_url", overflow="fold")
        table.add_column("id", overflow="fold")
        for vim in self._tacker.vims():
            table.add_row(vim["name"], vim["type"], vim["auth_url"], vim["id"])
        self._console.print(table)


def _request(name: str) -> dict[str, Any]:
    return dict(json.loads((REQUESTS / name).read_text()))


def _server(instance: dict[str, Any], vdu: str) -> str:
    for vnfc in instance["instantiatedVnfInfo"]["vnfcResourceInfo"]:
        if vnfc["vduId"] == vdu:
            return str(vnfc["computeResource"]["resourceId"])
    raise RuntimeError(f"the VNF instance has no {vdu}")


def main(lab: str, began: float) -> int:
    """Run the script; the exit code.

    :param lab: the words of the lab's command, for the hints.
    :param began: when the demo began, seconds since the epoch.
    """
    console = Console()
    try:
        Tour(console).go()
    except RuntimeError as exc:
        console.print(str(exc), style="bold red", markup=False)
        return 1
    places = settings.from_environment()
    kubeconfig = places.state / "kubeconfig"
    print(LOOK_AROUND.format(lab=lab, kubeconfig=kubeconfig, journals=places.journals))
    print(f"The demo took {time.time() - began:.0f} s.")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1], float(sys.argv[2])))
