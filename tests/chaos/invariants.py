# SPDX-License-Identifier: Apache-2.0
"""What has to hold while no operation is under way; each function names what does not.

They ask every source themselves, so that they also find what ``cluster check`` misses.
"""

import contextlib
import json
import time
from collections.abc import Callable, Iterator
from pathlib import Path

from lab import client, settings
from lab.cloud import CloudError
from tests.chaos.subject import Subject
from tests.integration import workloads
from tests.integration.cluster import SECRETS, Cluster
from tests.integration.laboratory import ANSIBLE_SERVER, WRITTEN, Lab

_PAUSE = 2.0
_REPLICAS = 4
#: Temporary files on hosts. A conductor that was killed leaves its directory
#: ``tacker-k8s-mgmt.*``, which is removed a day later.
_TEMPORARY = ("tmp.*", "k8s-mgmt.*")
_SCRATCH = "tacker-k8s-mgmt.*"
# With the credentials on standard input: a program's arguments are looked at, too.
_READABLE = (
    f"find {WRITTEN} -xdev -type f -size -1000k -perm /o+r"
    " -exec grep -laF -f - {} + 2>/dev/null; true"
)
_STEADY = ("COMPLETED", "FAILED", "ROLLED_BACK")

Check = Callable[[Subject], Iterator[str]]


def nodes_agree(subject: Subject) -> Iterator[str]:
    """Heat, inventory, Nodes and routes name the same workers, which are Ready."""
    cluster = subject.cluster
    nodes = cluster.ready_nodes()
    heat = _workers_of_heat(cluster)
    named = {
        "Nodes": {name for name in nodes if name.startswith("worker-")},
        "inventory": {one for one in cluster.inventory() if one.startswith("worker-")},
    }
    for source, workers in named.items():
        if workers != heat:
            yield f"{source} {sorted(workers)} and Heat {sorted(heat)} differ"
    yield from (f"{name} is not Ready" for name, ready in nodes.items() if not ready)
    if subject.balanced:
        missing = heat - cluster.routes()
        allowed = 1 if subject.maintained else 0
        if len(missing) > allowed:
            yield f"no routes to {sorted(missing)}"
        if cluster.routes() - heat:
            yield f"routes to {sorted(cluster.routes() - heat)}, which are none"


def _workers_of_heat(cluster: Cluster) -> set[str]:
    """By the cloud: Tacker does not list each of them (:doc:`scale` in the guide)."""
    return {
        f"worker-{address.replace('.', '-')}"
        for host in cluster.hosts()
        if "worker" in host.name
        for address in host.addresses
        if address.startswith("10.10.")
    }


def api_answers(subject: Subject) -> Iterator[str]:
    """The API answers where clients reach it, with a verified certificate."""
    answer = subject.cluster.api("/readyz")
    if answer != "ok":
        yield f"/readyz says {answer}"


def cluster_is_vim(subject: Subject) -> Iterator[str]:
    """Tacker has the cluster as a VIM, once."""
    cluster = subject.cluster
    if subject.is_v2:
        infos = (cluster.show().get("vimConnectionInfo") or {}).values()
        found = [info for info in infos if "KUBERNETES" in info["vimType"]]
    else:
        vims = subject.lab.tacker.vims()
        found = [vim for vim in vims if vim["name"] == cluster.vim_name]
    if len(found) != 1:
        yield f"the cluster is {len(found)} VIMs"


def nothing_runs(subject: Subject) -> Iterator[str]:
    """No lock is held, no playbook runs, no operation is open."""
    cluster, lab = subject.cluster, subject.lab
    for name in ("operation.lock", "run.lock"):
        path = f"{cluster.directory}/{name}"
        told = lab.ansible(
            f"[ ! -e {path} ] || flock -n {path} true || echo held; true"
        )
        if "held" in told:
            yield f"{name} is held"
    processes = lab.ansible("ps -eo args")
    if cluster.directory in processes:
        yield "a process works on the cluster's directory on the Ansible server"
    every = lab.tacker.call("GET", f"{lab.tacker.LCM}/vnf_lcm_op_occs").json()
    ours = {cluster.id, subject.cnfs.id}
    for one in every:
        if one["vnfInstanceId"] in ours and one["operationState"] not in _STEADY:
            yield f"operation {one['operation']} is {one['operationState']}"


def workload_runs(subject: Subject) -> Iterator[str]:
    """Every replica of the Deployment runs on a Ready node, an agent on each worker."""
    if not subject.is_loaded:
        return
    ready = {name for name, is_so in subject.cluster.ready_nodes().items() if is_so}
    web = workloads.pods(subject.cluster, "app=web")
    runs = [pod for pod in web if pod["phase"] == "Running" and pod["node"] in ready]
    if len(runs) != _REPLICAS:
        yield f"{len(runs)} of {_REPLICAS} replicas run"
    agents = {pod["node"] for pod in workloads.pods(subject.cluster, "app=agent")}
    workers = {name for name in ready if name.startswith("worker-")}
    if len(workers - agents) > (1 if subject.maintained else 0):
        yield f"no agent on {sorted(workers - agents)}"


def ports_are_exposed(subject: Subject) -> Iterator[str]:
    """The load balancer exposes the CNF, if there is one, and nothing else."""
    if subject.balanced:
        yield from subject.cnfs.violations()


def no_secret_in_files(subject: Subject) -> Iterator[str]:
    """No file that others may read, on a VM or the Ansible server, has a credential."""
    texts = "\n".join(SECRETS) + "\n"
    for host in (*subject.cluster.servers(), ANSIBLE_SERVER):
        with contextlib.suppress(CloudError, RuntimeError):
            if told := client.on_host(host, "sh", "-c", _READABLE, stdin=texts).split():
                yield f"{host}: {' '.join(told[:3])}"


def no_temporary_files(subject: Subject) -> Iterator[str]:
    """Neither the driver nor its script has left any in /tmp of a VM."""
    ids = set(subject.cluster.servers())
    names = [*_TEMPORARY, *([] if subject.cut_off else [_SCRATCH])]
    # The script's service for UDP keeps its own open as long as it runs.
    find = (
        f"cd /tmp && for one in $(ls -d {' '.join(names)} 2>/dev/null); do"
        " ls -l /proc/[0-9]*/fd 2>/dev/null | grep -q /tmp/$one/ || echo $one; done"
    )
    for host in client.hosts():
        if host.id in ids:
            with contextlib.suppress(CloudError, RuntimeError):
                left = client.on_host(host.id, "sh", "-c", find).split()
                if left:
                    yield f"{host.name}: {' '.join(left)}"


def nothing_left(subject: Subject) -> Iterator[str]:
    """After the end of a cluster: no VIM, directory, VM, stack or process of it."""
    cluster, lab = subject.cluster, subject.lab
    # Those of its tenants begin in the same way.
    for name in [vim["name"] for vim in lab.tacker.vims()]:
        if name.startswith(cluster.vim_name):
            yield f"its VIM {name} is left"
    if "No such" not in lab.ansible(f"ls -d {cluster.directory} 2>&1; true"):
        yield "its directory on the Ansible server is left"
    if stacks := cluster.stacks():
        yield f"Heat stacks {stacks} are left"
    if hosts := [host.name for host in cluster.hosts()]:
        yield f"VMs {hosts} are left"
    if cluster.directory in lab.ansible("ps -eo args"):
        yield "a playbook run of it continues"


STANDING: tuple[Check, ...] = (
    *(nodes_agree, api_answers, cluster_is_vim),
    *(nothing_runs, workload_runs, ports_are_exposed, no_temporary_files),
    no_secret_in_files,
)
GONE: tuple[Check, ...] = (nothing_left,)


def violations(
    subject: Subject, *, stands: bool, patience: float | None = None
) -> list[str]:
    """What does not hold, though it had some time to become so.

    :param stands: whether the cluster is instantiated.
    :param patience: seconds; default: what fits the laboratory.
    """
    limit = subject.pace.patience if patience is None else patience
    deadline = time.monotonic() + limit
    while True:
        found = [
            f"{check.__name__}: {text}"
            for check in ((*STANDING, *subject.checks) if stands else GONE)
            for text in _texts(check, subject)
        ]
        if not found or time.monotonic() > deadline:
            return found
        time.sleep(_PAUSE)


def _texts(check: Check, subject: Subject) -> Iterator[str]:
    try:
        yield from check(subject)
    except Exception as error:
        yield f"{type(error).__name__}: {error}"[:500]


class Secrets:
    """Looks for the lab's credentials in what the services and journals write.

    What was looked at once is not read again.
    """

    def __init__(self) -> None:
        self._read: dict[Path, int] = {}

    def found(self) -> list[str]:
        """Files in which there is one, and which one."""
        return [
            f"{path.name} has {secret[:3]}…"
            for path in _written()
            for secret in _secrets_in(self._news(path))
        ]

    def _news(self, path: Path) -> str:
        with contextlib.suppress(OSError), path.open("rb") as file:
            file.seek(self._read.get(path, 0))
            data = file.read()
            # Secrets may be cut by the end.
            self._read[path] = max(0, file.tell() - 100)
            return data.decode(errors="replace")
        return ""


def _written() -> list[Path]:
    logs = (client.state() / "log").glob("*.log")
    journals = settings.from_environment().journals.rglob("*")
    return [path for path in (*logs, *journals) if path.is_file()]


def _secrets_in(text: str) -> list[str]:
    return [secret for secret in SECRETS if secret in text]


def fingerprint(cluster: Cluster, lab: Lab) -> str:
    """A cluster that nobody works on, to see whether another one's operation did."""
    with contextlib.suppress(Exception):
        nodes = {
            one["metadata"]["name"]: one["metadata"]["uid"] for one in cluster.nodes()
        }
        files = lab.ansible(
            f"cd {cluster.directory} && sha256sum hosts.yaml joined.json"
        )
        routes = sorted(cluster.routes()) if cluster.is_balanced else []
        return json.dumps([nodes, files, routes, sorted(cluster.servers())])
    return ""
