# SPDX-License-Identifier: Apache-2.0
"""The verbs of the command line against Tacker's own REST APIs."""

import json
import types
import uuid

import pytest

pytest.importorskip("tacker", reason="the contract is with an installed Tacker")

from oslo_config import cfg
from tacker import objects
from tacker.objects import fields
from tacker.sol_refactored.api.router import VnflcmAPIRouterV2
from tacker.sol_refactored.common import exceptions as sol_ex
from tacker.sol_refactored.conductor import vnflcm_driver_v2
from tacker.sol_refactored.nfvo import nfvo_client

from tacker_k8s_mgmt.errors import TackerError
from tacker_k8s_mgmt.hooks.advice import FAIL, RETRY, ROLLBACK
from tacker_k8s_mgmt.tools.tacker import records, table, verbs
from tacker_k8s_mgmt.tools.tacker.client import Refused, Request, Tacker
from tacker_k8s_mgmt.tools.tacker.records import V1, V2
from tests.contract.tacker_rest import Rest
from tests.helpers.fakes import tacker_api
from tests.helpers.fakes.tacker_api import TackerApi

VERBS = (RETRY, ROLLBACK, FAIL)
STATES = (
    *("STARTING", "PROCESSING", "COMPLETED", "FAILED", "ROLLING_BACK", "ROLLED_BACK"),
)
EVERY = [(api, kind) for api in (V1, V2) for kind in sorted(table.OPERATIONS[api.name])]


@pytest.fixture
def rest(monkeypatch):
    return Rest(monkeypatch)


@pytest.fixture
def tacker(rest):
    return Tacker(rest)


def made(rest, api, name="a", state="INSTANTIATED"):
    make = rest.v1_instance if api is V1 else rest.v2_instance
    return make(name, state)


def operation(rest, api, vnf_id, kind, state="FAILED_TEMP"):
    make = rest.v1_operation if api is V1 else rest.v2_operation
    return make(vnf_id, kind, state)


def sent(tacker, api, operation_id, verb):
    """Whether Tacker takes a verb for an operation."""
    path = f"{api.operations}/{operation_id}/{verb.value}"
    try:
        tacker.send(Request("POST", path, api.version))
    except Refused as error:
        print(error)
        return False
    return True


def has_rollback(kind):
    """Whether the conductor of the v2 API rolls an operation back."""
    driver = vnflcm_driver_v2.VnfLcmDriverV2.__new__(vnflcm_driver_v2.VnfLcmDriverV2)
    driver._exec_mgmt_driver_script = lambda *_, **__: None
    name = "SCALE" if kind.startswith("SCALE_") else kind
    req = types.SimpleNamespace(type=kind, flavourId="simple")
    lcmocc = types.SimpleNamespace(operation=name, operationParams=req)
    inst = types.SimpleNamespace(
        obj_attr_is_set=lambda _: True,
        instantiatedVnfInfo=types.SimpleNamespace(flavourId="simple"),
    )
    try:
        driver.rollback(None, lcmocc, inst, None, None, None, {})
    except sol_ex.RollbackNotSupported:
        return False
    except Exception:  # It has begun with fakes that lead no further.
        return True
    return True


@pytest.mark.parametrize(
    ("api", "kind"), EVERY, ids=lambda one: getattr(one, "name", one)
)
def test_verbs_that_tacker_takes_for_a_failed_operation(rest, tacker, api, kind):
    state = "NOT_INSTANTIATED" if kind == "INSTANTIATE" else "INSTANTIATED"
    vnf_id = made(rest, api, state=state)
    for verb in VERBS:
        taken = sent(tacker, api, operation(rest, api, vnf_id, kind), verb)
        if api is V2 and verb is ROLLBACK:
            # The API takes it, and the conductor finds out.
            assert taken
            taken = has_rollback(kind)
        assert taken is (kind in table.HANDLED[api.name, verb]), verb


@pytest.mark.parametrize("api", [V1, V2], ids=lambda api: api.name)
@pytest.mark.parametrize("state", STATES)
def test_no_verb_is_for_an_operation_in_another_state(rest, tacker, api, state):
    one = operation(rest, api, made(rest, api), "HEAL", state)
    for verb in VERBS:
        assert not sent(tacker, api, one, verb)
    assert rest.cast == []


def without_directions(kinds):
    return {kind.partition("_")[0] if "SCALE_" in kind else kind for kind in kinds}


def test_tacker_has_no_other_operations():
    own = without_directions(table.OPERATIONS["v1"])
    assert own == {*fields.LcmOccsOperationType.ALL, "MODIFY_INFO"}
    processed = {
        name.removesuffix("_process").upper()
        for name in vars(vnflcm_driver_v2.VnfLcmDriverV2)
        if name.endswith("_process")
    }
    assert without_directions(table.OPERATIONS["v2"]) == processed


@pytest.mark.parametrize("api", [V1, V2], ids=lambda api: api.name)
def test_an_instance_is_found_by_name_and_id(rest, tacker, api):
    vnf_id = made(rest, api, f"cluster-{api.name}")
    for name in (vnf_id, f"cluster-{api.name}"):
        found = verbs.find_instance(tacker, name)
        assert (found.id, found.api) == (vnf_id, api)
        assert (found.state, found.flavour) == ("INSTANTIATED", "simple")
        assert [vnfc.server for vnfc in found.vnfcs] == ["server-1", "server-2"]
        assert {vnfc.vdu for vnfc in found.vnfcs} == {"workerNode"}
        assert found.levels == {"worker_instance": 1}
        assert found.highest == ({} if api is V1 else {"worker_instance": 7})


def test_a_name_of_several_and_of_none(rest, tacker):
    first, second = rest.v1_instance("twice"), rest.v2_instance("twice")
    with pytest.raises(TackerError) as caught:
        verbs.find_instance(tacker, "twice")
    for text in (f"{first} (v1)", f"{second} (v2)"):
        assert text in str(caught.value)
    for name in ("none", "with (odd), signs; and 'quotes'", second[:-1] + "x"):
        with pytest.raises(TackerError, match="Tacker shows no VNF instance"):
            verbs.find_instance(tacker, name)
    odd = rest.v2_instance("with (odd), signs; and 'quotes'")
    assert verbs.find_instance(tacker, "with (odd), signs; and 'quotes'").id == odd


@pytest.mark.parametrize("api", [V1, V2], ids=lambda api: api.name)
def test_open_operations_and_their_errors(rest, tacker, api):
    vnf_id = made(rest, api)
    operation(rest, api, vnf_id, "HEAL", "COMPLETED")
    operation(rest, api, made(rest, api, "b"), "HEAL")
    instance = verbs.find_instance(tacker, vnf_id)
    assert verbs.open_operations(tacker, instance) == []
    verbs.ready(tacker, instance)
    one = operation(rest, api, vnf_id, "SCALE_OUT")
    (found,) = verbs.open_operations(tacker, instance)
    assert (found.id, found.state) == (one, "FAILED_TEMP")
    shown = verbs.shown_operation(tacker, found)
    assert (shown.kind, shown.error) == ("SCALE_OUT", "heal_start failed")
    # Both write times in two ways: only those of one are compared.
    assert shown.mark[0] == found.mark[0]
    with pytest.raises(TackerError, match="has to be dealt with first"):
        verbs.ready(tacker, instance)


@pytest.mark.parametrize("api", [V1, V2], ids=lambda api: api.name)
def test_what_is_refused_here_tacker_would_refuse(rest, tacker, api):
    """Heal and scale with an operation in FAILED_TEMP."""
    vnf_id = made(rest, api)
    instance = verbs.find_instance(tacker, vnf_id)
    operation(rest, api, vnf_id, "HEAL")
    body = {"type": "SCALE_OUT", "aspectId": "worker_instance", "numberOfSteps": 1}
    for request in (
        verbs.heal(instance, [instance.vnfcs[0].id]),
        verbs.scale(instance, body),
    ):
        with pytest.raises(Refused) as caught:
            tacker.send(request)
        assert caught.value.status == 409


@pytest.mark.parametrize("api", [V1, V2], ids=lambda api: api.name)
def test_heal_and_scale_are_taken_and_lead_to_their_operation(rest, tacker, api):
    for make in (
        lambda one: verbs.heal(one, [one.vnfcs[0].id], "why", {"a": "b"}),
        lambda one: verbs.scale(
            one, {"type": "SCALE_IN", "aspectId": "worker_instance", "numberOfSteps": 1}
        ),
    ):
        instance = verbs.find_instance(tacker, made(rest, api))
        answer = tacker.send(make(instance))
        assert answer.status == 202
        new = records.location_id(answer.headers["location"])
        (found,) = verbs.open_operations(tacker, instance)
        assert (found.id, found.state) == (new, "STARTING")
        if api is V2:
            # v1 has no field for the operation itself in its list of pages.
            assert found.kind in ("HEAL", "SCALE")


@pytest.mark.parametrize("api", [V1, V2], ids=lambda api: api.name)
def test_vnfcs_that_there_are_not_and_wrong_bodies(rest, tacker, api):
    instance = verbs.find_instance(tacker, made(rest, api))
    with pytest.raises(Refused) as caught:
        tacker.send(verbs.heal(instance, ["no-such"]))
    assert (caught.value.status, "no-such" in str(caught.value)) == (400, True)
    steps = {"type": "SCALE_IN", "aspectId": "worker_instance", "numberOfSteps": 2}
    with pytest.raises(Refused) as caught:
        tacker.send(verbs.scale(instance, steps))
    assert caught.value.status == 400


def shape(value):
    """The names and types in a document."""
    if isinstance(value, dict):
        return {name: shape(inner) for name, inner in value.items()}
    if isinstance(value, list):
        return [shape(value[0])] if value else []
    return type(value).__name__


def beyond(ours, theirs, place=""):
    """The places in a shape that another one has not, or has otherwise."""
    if isinstance(ours, dict) and isinstance(theirs, dict):
        for name, inner in ours.items():
            yield from beyond(inner, theirs.get(name), f"{place}.{name}")
    elif isinstance(ours, list) and isinstance(theirs, list) and ours and theirs:
        yield from beyond(ours[0], theirs[0], f"{place}.0")
    elif type(ours) is not type(theirs) or (isinstance(ours, str) and ours != theirs):
        yield place


@pytest.mark.parametrize("api", [V1, V2], ids=lambda api: api.name)
def test_the_fake_shows_nothing_that_tacker_does_not(rest, tacker, api):
    fake = TackerApi()
    info, _ = tacker_api.instantiated(api.root, {"server-1": "workerNode"})
    fake.instance(api.root, "a", instantiatedVnfInfo=info)
    error = {"status": 500, "detail": "why"}
    vnf_id = made(rest, api)
    fake.operation(api.root, vnf_id, "SCALE_OUT", error=error)
    (ours,) = fake.rows[api.root, "vnf_instances"].values()
    theirs = tacker.document(f"{api.instances}/{vnf_id}", api.version)
    assert list(beyond(shape(ours), shape(theirs))) == []
    (ours,) = fake.rows[api.root, "vnf_lcm_op_occs"].values()
    one = operation(rest, api, vnf_id, "SCALE_OUT")
    theirs = tacker.document(f"{api.operations}/{one}", api.version)
    assert list(beyond(shape(ours), shape(theirs))) == []
    query = {"filter": f"(eq,vnfInstanceId,{vnf_id})"}
    (listed,) = tacker.rows(api.operations, api.version, query)
    assert {"operationParams", "error"}.isdisjoint(listed)
    assert listed.keys() >= ours.keys() - {"operationParams", "error"}


@pytest.mark.parametrize("api", [V1, V2], ids=lambda api: api.name)
@pytest.mark.parametrize(
    ("method", "path", "status"),
    [
        ("GET", "vnf_instances/{nobody}", 404),
        ("GET", "vnf_lcm_op_occs/{nobody}", 404),
        ("POST", "vnf_lcm_op_occs/{completed}/retry", 409),
    ],
)
def test_the_fake_refuses_as_tacker_does(rest, tacker, api, method, path, status):
    one = operation(rest, api, made(rest, api), "HEAL", "COMPLETED")
    path = path.format(nobody=uuid.uuid4(), completed=one)
    request = Request(method, f"{api.root}/{path}", api.version)
    with pytest.raises(Refused) as caught:
        tacker.send(request)
    assert caught.value.status == status
    fake = TackerApi()
    row = {"id": one, "operationState": "COMPLETED"}
    fake.rows[api.root, "vnf_lcm_op_occs"][one] = row
    headers = {name.lower(): value for name, value in request.headers.items()}
    told, _, data = fake.answer(method, request.path, headers, None, "http://x")
    assert told == status
    # v1 has another sentence for each verb, which nobody reads by a program.
    assert set(json.loads(data)) == {"status", "title", "detail"}
    assert "without a reason" not in str(caught.value)


@pytest.mark.parametrize("api", [V1, V2], ids=lambda api: api.name)
def test_modifications_are_taken(rest, tacker, api, monkeypatch):
    vnf_id = made(rest, api)
    instance = verbs.find_instance(tacker, vnf_id)
    found = {"status": "ACTIVE", "vnfd_id": instance.vnfd_id}
    monkeypatch.setattr(objects.VNF, "vnf_index_list", lambda *_: found)
    request = verbs.modify(instance, {"k8s_nodes:worker:label:a": "b", "c": None})
    verbs.refuse_wrong(instance, request)
    answer = tacker.send(request)
    assert answer.status == 202
    assert records.location_id(answer.headers["location"])
    assert rest.cast[-1] in ("update", "modify_vnfinfo")


def test_another_package_is_taken(rest, tacker, monkeypatch):
    instance = verbs.find_instance(tacker, made(rest, V2))
    enabled = types.SimpleNamespace(operationalState="ENABLED")
    client = nfvo_client.NfvoClient
    monkeypatch.setattr(client, "get_vnf_package_info_vnfd", lambda *_: enabled)
    request = verbs.upgrade(instance, instance.vnfd_id, {"a": "b"})
    verbs.refuse_wrong(instance, request)
    assert tacker.send(request).status == 202
    (one,) = verbs.open_operations(tacker, instance)
    assert one.kind == table.CHANGE_VNFPKG


def test_v2_demands_its_version(rest, tacker):
    with pytest.raises(Refused) as caught:
        tacker.document(V2.instances, "")
    assert caught.value.status == 400
    assert "ersion" in str(caught.value)


@pytest.mark.parametrize("api", [V1, V2], ids=lambda api: api.name)
def test_lists_have_pages(rest, tacker, api, monkeypatch):
    view = VnflcmAPIRouterV2.controller.controller._inst_view
    monkeypatch.setattr(view, "page_size", 2)
    # The v2 API takes rows in the order in which MariaDB has them, which is by id.
    ids = [f"{number:08x}-0000-4000-8000-000000000000" for number in range(5)]
    wanted = {
        rest.v1_instance("paged")
        if api is V1
        else rest.v2_instance("paged", vnf_id=one)
        for one in ids
    }
    rest.v1_instance("another")
    cfg.CONF.set_override("vnf_instance_num", 2, group="vnf_lcm")
    query = {"filter": "(eq,vnfInstanceName,paged)"}
    try:
        rows = list(tacker.rows(api.instances, api.version, query))
    finally:
        cfg.CONF.clear_override("vnf_instance_num", group="vnf_lcm")
    assert {row["id"] for row in rows} == wanted
    assert len(rows) == len(wanted)
