# SPDX-License-Identifier: Apache-2.0
"""A cluster in each of Tacker's APIs, in a cloud whose login is in the environment."""

import types
import uuid

import pytest

from lab.cloud.state import State
from tacker_k8s_mgmt.tools.cli import main
from tacker_k8s_mgmt.tools.csar import parts
from tacker_k8s_mgmt.tools.csar.tacker_api import V1, V2
from tacker_k8s_mgmt.tools.tacker import waiting
from tests.helpers.fakes import tacker_api
from tests.helpers.fakes.tacker_api import TackerApi
from tests.helpers.openstack_cloud import OpenStack

ROOTS = {"v1": tacker_api.V1, "v2": tacker_api.V2}
VMS = {
    "masterNode": "10.10.0.4",
    "workerNode": "10.10.0.5",
    "workerNode2": "10.10.0.55",
    "externalLB": "10.10.0.9",
}


@pytest.fixture
def tacker():
    return TackerApi()


@pytest.fixture
def openstack(monkeypatch, tmp_path, tacker):
    """A cloud with this Tacker."""
    for name in ("OS_CLOUD", "XDG_CONFIG_HOME"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(waiting, "PAUSE", 0.0)
    cloud = OpenStack()
    cloud.instead["nfv-orchestration"] = tacker.handler()
    with cloud.running() as running:
        for name, value in running.environment(tmp_path).items():
            monkeypatch.setenv(name, value)
        yield running


@pytest.fixture(params=ROOTS)
def api(request):
    return request.param


def servers(home):
    """The servers of a cluster, as Nova has them; their ids by :data:`VMS`."""
    ids = {vm: str(uuid.uuid4()) for vm in VMS}
    with State(home / "cloud").edit() as records:
        for vm, address in VMS.items():
            port = {"id": vm, "address": address, "network_id": "inner", "mac": ""}
            records["ports"][vm] = port
            row = {"id": ids[vm], "name": f"cl-{vm}", "status": "ACTIVE", "ports": [vm]}
            records["servers"][ids[vm]] = row
    return ids


def vnfd(api, edit=lambda text: text):
    """The VNFD of the sample package, as Tacker sends it."""
    version = {"v1": V1, "v2": V2}[api]
    place = parts.samples(version) / "vnfd" / "simple" / "Definitions"
    texts = {f"Definitions/{p.name}": p.read_text() for p in place.glob("*.yaml")}
    return tacker_api.vnfd_zip({name: edit(text) for name, text in texts.items()})


@pytest.fixture
def cluster(openstack, tacker, api, tmp_path):
    """A cluster with two workers: its ids, and what runs a command on it."""
    ids = servers(tmp_path)
    vdus = {server: vm.rstrip("2") for vm, server in ids.items()}
    info, vnfcs = tacker_api.instantiated(ROOTS[api], vdus)
    healed = {vm: vnfcs[server] for vm, server in ids.items()}
    one = tacker.instance(ROOTS[api], "my-cluster", instantiatedVnfInfo=info)
    document = tacker.rows[ROOTS[api], "vnf_instances"][one]
    tacker.packages[str(uuid.uuid4()), document["vnfdId"]] = vnfd(api)
    return types.SimpleNamespace(
        id=one,
        api=api,
        root=ROOTS[api],
        path=f"{ROOTS[api]}/vnf_instances/{one}",
        document=document,
        servers=ids,
        vnfcs=healed,
    )


@pytest.fixture
def run(capsys):
    """Return a function: exit code, output and errors of a command of ``cluster``."""

    def run(*words):
        capsys.readouterr()
        try:
            code = main(["cluster", *words])
        except SystemExit as end:
            code = end.code
        return (code, *capsys.readouterr())

    return run
