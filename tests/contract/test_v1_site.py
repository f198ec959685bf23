"""The site of an operation in the v1 API, as far as it needs no other host."""

import time
import types

import pytest

pytest.importorskip("tacker", reason="the contract is with an installed Tacker")

from tacker_k8s_mgmt import errors
from tacker_k8s_mgmt.cluster.nodes import Machine, Role
from tacker_k8s_mgmt.hooks import site, vim
from tests.unit.lifecycle.fakes import params

MACHINES = tuple(
    Machine(Role.WORKER, f"server-{number}", f"192.0.2.{number}", f"10.0.0.{number}")
    for number in range(1, 25)
)


@pytest.fixture
def one(monkeypatch, tmp_path):
    monkeypatch.setattr(vim, "_plugin", lambda: None)
    instance = types.SimpleNamespace(id="vnf", tenant_id="tenant", vnf_metadata={})
    options = types.SimpleNamespace(
        boot_timeout=0.2, connect_timeout=1, key_directory=""
    )
    made = site.V1Site(None, instance, params(), options, str(tmp_path))
    monkeypatch.setattr(made, "_keys", lambda: None)
    return made


def test_all_vms_share_one_boot_timeout_and_each_gets_a_try(one, monkeypatch):
    limits = {}

    def silent(machine, limit, auth_grace=0):
        limits[machine.server_id] = limit
        time.sleep(limit)
        raise errors.RemoteError(detail=f"no answer from {machine.ssh_address}")

    monkeypatch.setattr(one, "_open", silent)
    monkeypatch.setattr(site, "_LAST_TRY", 0.01)
    with pytest.raises(errors.RemoteError) as caught:
        one.wait_reachable(MACHINES)
    assert len(limits) == len(MACHINES)
    # 8 are tried side by side; the others come when the time has passed.
    assert sorted(limits.values())[-9] == pytest.approx(0.01, abs=0.005)
    for machine in MACHINES:
        assert f"worker VM {machine.server_id}: no answer" in str(caught.value)
