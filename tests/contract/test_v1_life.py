# SPDX-License-Identifier: Apache-2.0
"""Scale and heal as Tacker calls them: which VMs are meant, and what is refused."""

import copy
import json
import types
import uuid
from typing import Any

import pytest
import yaml
from tacker.vnflcm import utils as vnflcm_utils

pytest.importorskip("tacker", reason="the contract is with an installed Tacker")

from tacker import objects
from tacker.common import driver_manager

from tacker_k8s_mgmt import config, errors, journal
from tacker_k8s_mgmt.hooks.v1 import hook as context
from tacker_k8s_mgmt.hooks.v1 import vim_registry
from tacker_k8s_mgmt.hooks.v1.instance import V1Instance
from tacker_k8s_mgmt.model.nodes import Role
from tacker_k8s_mgmt.model.timeline import Timeline
from tacker_k8s_mgmt.operations.records import WHOLE_FILE
from tacker_k8s_mgmt.tools.csar import parts
from tacker_k8s_mgmt.topology.scaling_groups import GroupSize
from tests.contract.v1_instances import DEFINITIONS, GOOD, NAME, OpenSite, instance
from tests.helpers.fakes.nodes import machine
from tests.helpers.operations import (
    FIFTY_FIVE,
    FIVE,
    MASTER,
    SIX,
    instantiated,
    replace_all,
)
from tests.helpers.requests import VNF

CNF = "6ba7b810-9dad-41d1-80b4-00c04fd430c8"
EXPOSED = json.dumps(
    [
        {
            "owner": CNF,
            "namespace": "shop",
            "service": "dns",
            "protocol": "udp",
            "port": 53,
            "node_port": 30053,
        }
    ]
)

objects.register_all()


@pytest.fixture
def site(monkeypatch, tmp_path):
    made: Any = instantiated()
    made.__class__ = OpenSite

    def opened(hook, _params):
        return made

    monkeypatch.setattr(context, "V1Site", opened)
    monkeypatch.setattr(config, "state_path", lambda _: str(tmp_path))
    monkeypatch.setattr(V1Instance, "checkpoint", lambda *_, **__: None)
    # Tacker's database has the body of the request; see test_v1_heal_requests.py.
    monkeypatch.setattr(V1Instance, "names_no_vnfc", lambda _: False)
    return made


@pytest.fixture(scope="module")
def manager():
    return driver_manager.DriverManager("tacker.tacker.mgmt.drivers", [NAME])


@pytest.fixture
def vnf():
    """An instance whose VNFCs are the servers of the fake site."""
    made = instance(GOOD)
    made.id = VNF
    made.instantiated_vnf_info.vnfc_resource_info = [
        objects.VnfcResourceInfo(
            id=f"vnfc-{number}",
            vdu_id="some",
            compute_resource=objects.ResourceHandle(resource_id=f"server-{number}"),
        )
        for number in (4, 5, 55, 9)
    ]
    return made


def call(manager, name, vnf_instance, request, **more):
    """Call a hook with the arguments that Tacker's vnflcm_driver gives it."""
    kind = name.split("_")[0]
    manager.invoke(
        NAME,
        name,
        context=None,
        vnf_instance=vnf_instance,
        grant=None,
        grant_request=None,
        **{f"{kind}_vnf_request": request},
        **more,
    )


def scale(kind, aspect="worker_instance"):
    return objects.ScaleVnfRequest(
        type=kind,
        aspect_id=aspect,
        number_of_steps=1,
        # Tacker's API adds these.
        additional_params={"is_reverse": "False", "is_auto": "False"},
    )


def heal(*numbers):
    return objects.HealVnfRequest(
        vnfc_instance_id=[f"vnfc-{number}" for number in numbers],
        cause="a test",
        additional_params={},
    )


def test_scale_in_takes_the_stacks_that_tacker_names(manager, site, vnf):
    call(
        manager,
        "scale_start",
        vnf,
        scale("SCALE_IN"),
        scale_name_list=["abcd"],
        # The oldest, as Tacker chooses and Heat removes it.
        scale_out_id_list=["member-server-55"],
        vnf={},
    )
    assert site.members == [MASTER, FIVE]


def test_the_journal_names_the_operation_and_the_vnf(
    manager, site, vnf, monkeypatch, tmp_path
):
    monkeypatch.setattr(V1Instance, "checkpoint", lambda *_, **__: "occurrence")
    vnf.vnf_instance_name = "my-cluster"
    given = {"scale_name_list": ["a"], "scale_out_id_list": ["member-server-55"]}
    call(manager, "scale_start", vnf, scale("SCALE_IN"), **given, vnf={})
    records, _ = journal.read(journal.path_of(str(tmp_path), VNF))
    (begun,) = (one for one in records if one["event"] == "operation-start")
    assert (begun["vnf_name"], begun["lcm_op_occ_id"]) == ("my-cluster", "occurrence")


def test_scale_out_takes_the_stacks_that_tacker_names(manager, site, vnf):
    site.workers.append(machine(Role.WORKER, 6))
    call(
        manager,
        "scale_end",
        vnf,
        scale("SCALE_OUT"),
        scale_out_id_list=["member-server-6"],
        vnf={},
    )
    assert site.members == [MASTER, FIVE, FIFTY_FIVE, SIX]


@pytest.mark.parametrize(
    ("hook", "kind", "way_out"),
    [
        ("scale_start", "SCALE_IN", "Send `fail` for this operation"),
        ("scale_end", "SCALE_OUT", "Send `rollback` for this operation"),
    ],
)
def test_the_aspect_of_the_control_plane_is_refused_before_a_host_is_asked(
    manager, site, vnf, monkeypatch, hook, kind, way_out
):
    """Tacker's sample has one, with VMs that Heat makes or would delete."""
    given = copy.deepcopy(GOOD)
    given["k8s_cluster_installation_param"]["master_node"]["aspect_id"] = "masters"
    vnf.instantiated_vnf_info.additional_params = given
    monkeypatch.setattr(V1Instance, "checkpoint", None)  # no work is begun
    with pytest.raises(Exception, match="scaling aspect masters is that") as caught:
        call(manager, hook, vnf, scale(kind, "masters"), scale_out_id_list=["a"])
    assert way_out in str(caught.value)
    assert site.calls == []


def titles(state):
    records, _ = journal.read(journal.path_of(str(state), VNF))
    return [operation.title for operation in Timeline(records).operations]


def test_heal_takes_the_servers_of_the_vnfc_resources(manager, site, vnf, tmp_path):
    call(manager, "heal_start", vnf, heal(55))
    assert titles(tmp_path) == ["Heal: some"]
    assert site.members == [MASTER, FIVE]
    call(manager, "heal_end", vnf, heal(55), vnf={})
    assert site.members == [MASTER, FIVE, FIFTY_FIVE]


@pytest.fixture
def grown(site, vnf, monkeypatch):
    """Heat has a worker more than Tacker's scale level stands for."""
    vnfd = yaml.safe_load((parts.samples() / DEFINITIONS).read_text())
    monkeypatch.setattr(vnflcm_utils, "get_vnfd_dict", lambda *_: vnfd)
    info = vnf.instantiated_vnf_info
    info.flavour_id = "simple"
    info.scale_status = [objects.ScaleInfo(aspect_id="worker_instance", scale_level=0)]
    vnf.save = lambda: None
    site.groups = {"worker_instance": GroupSize(3)}
    site.workers.append(machine(Role.WORKER, 6))
    return info.scale_status[0]


def test_heal_keeps_the_worker_that_tacker_does_not_count(manager, site, vnf, grown):
    call(manager, "heal_start", vnf, heal(55))
    assert grown.scale_level == 1
    # Before a node is drained: it may refuse the heal.
    assert site.calls[0] == "group_sizes"
    call(manager, "heal_end", vnf, heal(55), vnf={})
    assert site.members == [MASTER, FIVE, FIFTY_FIVE, SIX]


def test_scale_out_has_tacker_count_what_is_there(manager, site, vnf, grown):
    more = {"scale_out_id_list": ["member-server-6"], "vnf": {}}
    call(manager, "scale_end", vnf, scale("SCALE_OUT"), **more)
    assert site.members == [MASTER, FIVE, FIFTY_FIVE, SIX]
    assert grown.scale_level == 1


def test_heal_of_a_control_plane_is_refused(manager, site, vnf):
    with pytest.raises(errors.StepFailed, match="vnfc-4") as caught:
        call(manager, "heal_start", vnf, heal(5, 4))
    assert "`fail`" in str(caught.value)
    assert site.members == [MASTER, FIVE, FIFTY_FIVE]


def test_heal_of_the_whole_vnf_removes_and_installs_when_heat_is_done(
    manager, site, vnf, tmp_path
):
    former = copy.deepcopy((site.vim, site.owner, site.files))
    call(manager, "heal_start", vnf, heal())
    assert titles(tmp_path) == ["Heal: the whole VNF"]
    note = site.files.pop(WHOLE_FILE)
    assert (site.vim, site.owner, site.files) == former
    site.files[WHOLE_FILE] = note
    # Heat could not delete the stack, and a retry has Tacker update it instead.
    with pytest.raises(errors.StepFailed, match="has not replaced") as caught:
        call(manager, "heal_end", vnf, heal(), vnf={})
    for name in (MASTER, FIVE, FIFTY_FIVE):
        assert f"{name} (server " in str(caught.value)
    assert "Send `fail` for this operation, and heal the whole VNF again" in (
        str(caught.value)
    )
    assert (site.vim, site.owner, {**site.files, WHOLE_FILE: note}) == (
        *former[:2],
        {**former[2], WHOLE_FILE: note},
    )
    replace_all(site)
    call(manager, "heal_end", vnf, heal(), vnf={})
    assert site.vim is not None
    assert site.members == [MASTER, FIVE, FIFTY_FIVE]
    assert {node.machine_id for node in site.cluster_nodes} == {
        f"server-{number}-new" for number in (4, 5, 55)
    }


def test_cluster_of_a_heal_of_all_that_was_given_up_can_be_scaled(manager, site, vnf):
    """Keystone or Heat did not answer, and nothing was replaced."""
    call(manager, "heal_start", vnf, heal())
    site.workers.append(machine(Role.WORKER, 6))
    more = {"scale_out_id_list": ["member-server-6"], "vnf": {}}
    call(manager, "scale_end", vnf, scale("SCALE_OUT"), **more)
    assert site.members == [MASTER, FIVE, FIFTY_FIVE, SIX]


@pytest.mark.parametrize("what", ["scale", "heal"])
def test_cluster_whose_vms_heat_has_replaced_names_the_heal_of_all(
    manager, site, vnf, what
):
    """The heal was abandoned before heal_end, when Heat could not build a worker."""
    call(manager, "heal_start", vnf, heal())
    replace_all(site)
    site.unfinished.add(site.workers[0].server_id)
    before = copy.deepcopy(site.files)
    more = {"scale_out_id_list": ["member-server-6"], "vnf": {}}
    given = {
        "scale": ("scale_end", vnf, scale("SCALE_OUT"), more),
        "heal": ("heal_start", vnf, heal(5), {}),
    }
    *arguments, more = given[what]
    with pytest.raises(errors.StepFailed, match="Heal the whole VNF"):
        call(manager, *arguments, **more)
    assert site.files == before


def test_heal_of_the_whole_vnf_is_refused_while_the_vim_is_in_use(manager, site, vnf):
    site.vim_in_use = True
    with pytest.raises(errors.StepFailed, match="still used"):
        call(manager, "heal_start", vnf, heal())
    assert site.vim is not None
    assert site.files


def test_heal_of_the_whole_vnf_exposes_the_cnfs_again(manager, site, vnf):
    site.files["exposures.json"] = EXPOSED
    call(manager, "heal_start", vnf, heal())
    replace_all(site)
    call(manager, "heal_end", vnf, heal(), vnf={})
    assert [(one.port, one.node_port) for one in site.exposed] == [(53, 30053)]


@pytest.fixture
def registry(monkeypatch, site):
    monkeypatch.setattr(vim_registry, "VimRegistry", lambda *_: site.vims)


def terminate(manager, vnf, kind):
    request = objects.TerminateVnfRequest(termination_type=kind, additional_params={})
    call(manager, "terminate_start", vnf, request)
    call(manager, "terminate_end", vnf, request)


def test_a_cluster_that_exposes_cnfs_is_not_terminated(manager, site, vnf, registry):
    site.files["exposures.json"] = EXPOSED
    with pytest.raises(errors.StepFailed, match=f"{CNF} .port 53/udp of Service"):
        terminate(manager, vnf, "GRACEFUL")
    assert site.vim is not None
    assert site.owner == VNF
    site.files["exposures.json"] = "[]"
    terminate(manager, vnf, "GRACEFUL")
    assert (site.vim, site.owner) == (None, None)


def test_a_forceful_termination_goes_on_with_cnfs(manager, site, vnf, registry):
    site.files["exposures.json"] = EXPOSED
    terminate(manager, vnf, "FORCEFUL")
    assert (site.vim, site.owner, site.files) == (None, None, {})


def test_scale_in_for_which_tacker_names_too_few_is_refused(manager, site, vnf):
    """It would count more steps than VMs that Heat deletes."""
    request, stacks = scale("SCALE_IN"), ["member-server-5"]
    request.number_of_steps = 2
    with pytest.raises(errors.StepFailed, match="announces fewer members: 1"):
        call(manager, "scale_start", vnf, request, scale_out_id_list=stacks)
    assert site.members == [MASTER, FIVE, FIFTY_FIVE]


def test_rollback_of_a_scale_out_by_tackers_own_hand_is_harmless(manager, site, vnf):
    """After a failure in NOTIFY_COMPLETED Tacker calls scale_start without ids."""
    call(manager, "scale_start", vnf, scale("SCALE_OUT"), scale_name_list=["abcd"])
    assert site.members == [MASTER, FIVE, FIFTY_FIVE]


def test_failed_scale_out_is_not_to_be_retried(manager, site, vnf):
    """Tacker ends a retry of it without calling the driver."""
    site.workers.append(machine(Role.WORKER, 6))
    site.faults.add("lock")
    site.error = errors.LockedError(path="/srv", host="h", owner="another operation")
    more = {"scale_out_id_list": ["member-server-6"], "vnf": {}}
    with pytest.raises(errors.StepFailed, match="locked by another") as caught:
        call(manager, "scale_end", vnf, scale("SCALE_OUT"), **more)
    assert "retry" not in str(caught.value)
    assert "`fail` deletes none" in str(caught.value)


def test_failed_heal_names_the_verbs_that_tacker_has_for_it(manager, site, vnf):
    site.faults.add("lock")
    with pytest.raises(errors.StepFailed) as caught:
        call(manager, "heal_start", vnf, heal(5))
    text = str(caught.value)
    assert text.endswith("`retry` continues from here; `fail` gives the operation up.")
    assert "rollback" not in text


def test_another_vnf_is_left_alone(manager, site):
    other = instance({"other": 1})
    other.id = str(uuid.uuid4())
    request = types.SimpleNamespace(additional_params={}, vnfc_instance_id=[])
    for name in ("scale_start", "scale_end", "heal_start", "heal_end"):
        call(manager, name, other, request)
    assert site.calls == []
