# SPDX-License-Identifier: Apache-2.0
"""The driver beside kubespray by hand: same VMs, same inventory, same variables.

Runs inside a laboratory with the real kubespray::

    python3 -m lab --state DIR exec -- python -m benchmarks.by_hand

By hand means what kubespray's guide says: ``ansible-playbook -i INVENTORY -b`` in its
checkout, with the ``ansible.cfg`` of the checkout and no ``--limit``. One worker joins
a cluster of a control plane and two workers, and leaves it.
"""

import argparse
import json
import sys
import tempfile
import time
import uuid
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import yaml
from rich.console import Console
from rich.table import Table

from benchmarks import laboratory, machine, measure
from benchmarks.figures import OperationFigures
from lab import client
from lab.cloud.addresses import ANSIBLE_SERVER_ADDRESS
from lab.cloud.ansible_server import ENVIRONMENT, KUBESPRAY
from lab.real import request
from lab.real.site import Site
from tacker_k8s_mgmt.tools.csar.build import Site as Names
from tacker_k8s_mgmt.tools.csar.build import build

#: What kubespray refuses in its first play, before it has touched a VM; by hand its own
#: default is given in its place.
REFUSED, ACCEPTED = {"etcd_deployment_type": "none"}, {"etcd_deployment_type": "host"}
DIRECTORY = "/home/ansible/by-hand"
LONGEST = 3 * 3600.0
#: By playbook, the driver's operation that runs it.
PLAYBOOKS = {
    "cluster.yml": "instantiate",
    "scale.yml": "scale out 1",
    "remove-node.yml": "scale in 1",
}


class RealCluster(laboratory.Cluster):
    """A cluster that the real kubespray makes."""

    def __init__(self, vnfd_id: str, level: str, **variables: Any) -> None:
        super().__init__(vnfd_id, level)
        self._tacker.longest = LONGEST
        self._body = request.adapted(self._body, Site.load(client.state()))
        ours = self._body["additionalParams"][laboratory.PARAMETERS]
        ours["kubespray_vars"].update(variables)

    @property
    def directory(self) -> str:
        """Where its inventory is on the Ansible server."""
        return self._directory

    @contextmanager
    def refused(self) -> Iterator[None]:
        """Have VMs made and the inventory written, and nothing done to the VMs."""
        operation = self._tacker.operate(self._id, "instantiate", self._body)
        self._tacker.wait(operation, "FAILED_TEMP")
        try:
            yield
        finally:
            self._tacker.handle(operation, "rollback")
            self._tacker.wait(operation, "ROLLED_BACK")


def by_driver(vnfd_id: str) -> list[OperationFigures]:
    """Instantiate, join and remove a worker through Tacker."""
    cluster = RealCluster(vnfd_id, "instantiation_level_1")
    try:
        return list(cluster.life([1], heal=False))
    finally:
        cluster.end()


def by_hand(vnfd_id: str, tell: Callable[[str], None]) -> dict[str, float]:
    """Seconds of each playbook, started by hand."""
    cluster = RealCluster(vnfd_id, "instantiation_level_2", **REFUSED)
    found: dict[str, float] = {}
    try:
        with cluster.refused():
            leaving = _copy_inventory(cluster.directory)
            removal = ("-e", f"node={leaving}", "-e", "skip_confirmation=yes")
            for playbook, inventory, more in (
                ("cluster.yml", "two.yaml", ()),
                ("scale.yml", "three.yaml", ()),
                ("remove-node.yml", "three.yaml", removal),
            ):
                began = time.monotonic()
                _play(playbook, inventory, more)
                found[playbook] = time.monotonic() - began
                tell(f"by hand: {playbook}: {found[playbook]:.0f} s")
        return found
    finally:
        cluster.end()


def _copy_inventory(directory: str) -> str:
    """Put inventories with two and three workers apart; name of the third worker."""
    whole = yaml.safe_load(_shell(f"cat {directory}/hosts.yaml"))
    leaving = max(whole["all"]["children"]["kube_node"]["hosts"])
    variables = json.loads(_shell(f"cat {directory}/vars.json")) | ACCEPTED
    _shell(f"rm -rf {DIRECTORY}; mkdir -m 700 {DIRECTORY}")
    _write("three.yaml", whole)
    del whole["all"]["children"]["kube_node"]["hosts"][leaving]
    del whole["all"]["hosts"][leaving]
    _write("two.yaml", whole)
    _write("vars.json", variables)
    return str(leaving)


def _play(playbook: str, inventory: str, more: Sequence[str]) -> None:
    words = [f"{ENVIRONMENT}/bin/ansible-playbook", "-i", f"{DIRECTORY}/{inventory}"]
    words += ["-b", "-e", f"@{DIRECTORY}/vars.json", *more, playbook]
    line = f"cd {KUBESPRAY} && {' '.join(words)} >{DIRECTORY}/log 2>&1 </dev/null"
    try:
        _shell(line)
    except RuntimeError as error:
        raise RuntimeError(
            f"{playbook}: {_shell(f'tail -30 {DIRECTORY}/log')}"
        ) from error


def _write(name: str, document: Any) -> None:
    _shell(f"cat >{DIRECTORY}/{name}", stdin=json.dumps(document))


def _shell(line: str, stdin: str | None = None) -> str:
    words = ["runuser", "-u", "ansible", "--", "bash", "-lc", line]
    return client.on_host(ANSIBLE_SERVER_ADDRESS, *words, stdin=stdin, limit=LONGEST)


def table(hand: dict[str, float], driven: Sequence[OperationFigures]) -> Table:
    """Each playbook by hand beside the operation that runs it."""
    shown = Table("playbook", "by hand, s", "operation", "hooks, s", "Ansible, s")
    named = {one.name: one for one in driven}
    for playbook, name in PLAYBOOKS.items():
        one = named[name]
        hooks = sum(hook.seconds for hook in one.hooks)
        ansible = sum(hook.ansible for hook in one.hooks)
        cells = (f"{hand[playbook]:.0f}", name, f"{hooks:.0f}", f"{ansible:.0f}")
        shown.add_row(playbook, *cells)
    return shown


def main() -> int:
    """Measure both ways; the exit code."""
    top = argparse.ArgumentParser(description=__doc__)
    top.add_argument("--json", type=Path, metavar="FILE")
    args = top.parse_args()
    machine.wait_until_quiet(machine.PATIENCE)
    tacker = client.tacker()
    with tempfile.TemporaryDirectory() as scratch:
        csar = Path(scratch, "simple.zip")
        build("simple", csar, names=Names(vnfd_id=str(uuid.uuid4())))
        uploaded = tacker.upload_package(csar, {"benchmark": uuid.uuid4().hex})
    try:
        hand = by_hand(uploaded["vnfdId"], measure.tell)
        driven = by_driver(uploaded["vnfdId"])
    finally:
        with suppress(RuntimeError):
            tacker.delete_package(uploaded["id"])
    if args.json:
        args.json.write_text(json.dumps({"by hand": hand}, indent=2) + "\n")
    Console().print(table(hand, driven))
    return 0


if __name__ == "__main__":
    sys.exit(main())
