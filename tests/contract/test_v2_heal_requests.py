# SPDX-License-Identifier: Apache-2.0
"""What Tacker's v2 API makes of ``vnfcInstanceId`` in a heal request."""

import copy
import pickle
import subprocess
import threading
import types

import pytest

pytest.importorskip("tacker", reason="the contract is with an installed Tacker")

from tacker import context as tacker_context
from tacker.common import coordination
from tacker.sol_refactored import objects
from tacker.sol_refactored.api import api_version
from tacker.sol_refactored.common import exceptions as sol_ex
from tacker.sol_refactored.common import lcm_op_occ_utils, vnf_instance_utils
from tacker.sol_refactored.conductor import vnflcm_driver_v2
from tacker.sol_refactored.controller import vnflcm_v2

from tests.contract import v2_world
from tests.contract.v2_operations import FIFTY_FIVE, FIVE, MASTER, REPEATED, instantiate
from tests.helpers.requests import VNF

pytestmark = pytest.mark.usefixtures("quick_hooks")

EVERY = {"server-4", "server-5", "server-55", "server-9"}
ONE = "workerNode-server-5"


class Stopped(Exception):
    """Tacker was about to have Heat replace servers."""


class Api:
    """Tacker's API and conductor, without the queue and the database between them.

    :ivar hooks: what each hook was called for, and the request that it got.
    :ivar replaced: the servers that Tacker would replace; None: it has not come so far.
    """

    def __init__(self, tacker, monkeypatch):
        self._tacker, self._made = tacker, []
        self.hooks, self.replaced = [], None
        lock = threading.Lock()
        coordinator = types.SimpleNamespace(start=lambda: None, get_lock=lambda _: lock)
        for where, name, instead in (
            (vnf_instance_utils, "get_inst", self._instance),
            (lcm_op_occ_utils, "check_lcmocc_in_progress", lambda *_: None),
            (objects.VnfLcmOpOccV2, "create", lambda one, _: self._made.append(one)),
            (coordination, "COORDINATOR", coordinator),
            (
                vnflcm_driver_v2,
                "subprocess",
                types.SimpleNamespace(run=self._run, PIPE=subprocess.PIPE),
            ),
            (v2_world.Heat, "heal", self._heal),
        ):
            monkeypatch.setattr(where, name, instead)

    def _instance(self, *_):
        return objects.VnfInstanceV2.from_dict(copy.deepcopy(self._tacker.instance))

    def _run(self, argv, **given):
        passed = pickle.loads(given["input"])  # noqa: S301
        self.hooks.append((passed["operation"], passed["request"]))
        return subprocess.run(argv, check=False, **given)

    def _heal(self, req, inst, grant_req, *_):
        self.replaced = (
            {one.resource.resourceId for one in grant_req.removeResources}
            if grant_req.obj_attr_is_set("removeResources")
            else set()
        )
        raise Stopped

    def heal(self, body):
        """Send the request, and have the conductor do what was stored of it."""
        controller = object.__new__(vnflcm_v2.VnfLcmControllerV2)
        controller.endpoint = "http://192.0.2.1"
        controller.conductor_rpc = types.SimpleNamespace(start_lcm_op=lambda *_: None)
        context = tacker_context.get_admin_context()
        context.api_version = api_version.APIVersion("2.0.0")
        request = types.SimpleNamespace(context=context)
        answer = controller.heal(request=request, id=VNF, body=body)
        assert answer.status == 202
        self.hooks.clear()
        stored = self._made[-1].to_dict()["operationParams"]
        self._tacker.operate("HEAL", stored)


@pytest.fixture
def api(tacker, monkeypatch):
    instantiate(tacker)
    return Api(tacker, monkeypatch)


def test_an_empty_list_is_accepted_and_refused_by_the_hook(api, tacker):
    """Tacker would have Heat replace nothing, and call heal_end as after a heal."""
    before, instance = tacker.site, tacker.instance
    body = {"vnfcInstanceId": [], "additionalParams": REPEATED}
    with pytest.raises(sol_ex.MgmtDriverExecutionFailed) as caught:
        api.heal(body)
    assert "vnfcInstanceId is an empty list" in caught.value.detail
    assert "Send `fail` for this operation" in caught.value.detail
    assert api.hooks == [("heal_start", body)]
    assert api.replaced is None
    after = tacker.site
    assert (after.files, after.owner, after.known, after.members) == (
        *(before.files, before.owner, before.known),
        [MASTER, FIVE, FIFTY_FIVE],
    )
    assert tacker.instance == instance


def test_without_our_hook_tacker_replaces_nothing(api, tacker, monkeypatch):
    """This is what the refusal is for."""
    monkeypatch.setattr(
        tacker.driver, "_exec_mgmt_driver_script", lambda *_, **__: None
    )
    for body, replaced in (
        ({"vnfcInstanceId": []}, set()),
        ({"vnfcInstanceId": [ONE]}, {"server-5"}),
        ({}, EVERY),
    ):
        with pytest.raises(Stopped):
            api.heal(body)
        assert api.replaced == replaced


@pytest.mark.parametrize(
    ("body", "leaving"),
    [({"vnfcInstanceId": [ONE]}, {FIVE}), ({}, set())],
)
def test_other_requests_reach_the_hook_as_they_were_sent(api, tacker, body, leaving):
    """A heal of the whole VNF removes nothing before the servers are new."""
    members = set(tacker.site.members)
    sent = {**body, "additionalParams": REPEATED}
    with pytest.raises(Stopped):
        api.heal(sent)
    assert api.hooks == [("heal_start", sent)]
    assert api.replaced == ({"server-5"} if body else EVERY)
    assert members - set(tacker.site.members) == leaving
