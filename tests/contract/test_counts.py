# SPDX-License-Identifier: Apache-2.0
"""What each hook asks of other hosts, in a fixed history: counts, never times.

A change that has a hook ask for more changes the table below, and so is seen.
"""

import types
from typing import cast

import pytest

pytest.importorskip("tacker", reason="the contract is with an installed Tacker")

from oslo_config import cfg
from tacker import context as tacker_context
from tacker.tosca import utils as tosca_utils
from tacker.vnflcm import utils as vnflcm_utils

from tacker_k8s_mgmt import config
from tacker_k8s_mgmt.hooks.v1 import database, driver, heal_update, vim_registry
from tacker_k8s_mgmt.hooks.v1.instance import V1Instance
from tacker_k8s_mgmt.hooks.v2 import driver as v2_driver
from tacker_k8s_mgmt.hooks.v2.call import HookCall
from tacker_k8s_mgmt.hooks.v2.program import Streams
from tacker_k8s_mgmt.remote.ssh.routes import HostConnector
from tests.contract import hosts as bed
from tests.contract.v1_vims import FakePlugin
from tests.helpers.kubeapi import make_certificate
from tests.helpers.kubectl_server import needs_kubectl
from tests.helpers.requests import VNF

pytestmark = needs_kubectl


@pytest.fixture
def hosts(tmp_path, monkeypatch):
    made = bed.Hosts(tmp_path, *make_certificate(tmp_path))
    monkeypatch.setattr(HostConnector, "_via", lambda *_: made)
    config.register(cfg.CONF)
    cfg.CONF.set_override("state_path", str(tmp_path / "state"), config.GROUP)
    with made.openstack.running():
        yield made
    made.close()
    cfg.CONF.clear_override("state_path", config.GROUP)


class V1:
    """The hooks of Tacker's v1 API, with its database faked."""

    def __init__(self, hosts, monkeypatch):
        self.hosts = hosts
        self.found: dict[str, bed.Asked] = {}
        access = {
            "auth_url": hosts.openstack.url,
            "username": "u",
            "password": "p",
            "project_name": "p",
            "user_domain_name": "d",
            "project_domain_name": "d",
            "cert_verify": "False",
        }
        plugin = FakePlugin()
        for place, name, made in (
            (vim_registry, "_plugin", lambda: plugin),
            (vim_registry, "is_current", lambda *_: True),
            (database, "release", lambda *_: None),
            (heal_update, "_update", lambda *_: ({}, [])),
            (V1Instance, "checkpoint", lambda *_: ""),
            (V1Instance, "package", lambda _: str(hosts.package)),
            (V1Instance, "vim_access", lambda _: access),
            (vnflcm_utils, "get_vnfd_dict", lambda *_: {}),
            (tosca_utils, "get_scale_group", lambda *_: {}),
        ):
            monkeypatch.setattr(place, name, made)
        self.driver = driver.MgmtDriver()
        self.context = tacker_context.get_admin_context()
        info = types.SimpleNamespace(
            additional_params=None,
            instance_id="",
            flavour_id="simple",
            vnfc_resource_info=[],
            scale_status=[],
        )
        self.instance = types.SimpleNamespace(
            id=VNF,
            tenant_id="tenant",
            vnfd_id="vnfd",
            vnf_metadata={},
            vim_connection_info=[types.SimpleNamespace(vim_id="openstack")],
            task_state=None,
            instantiated_vnf_info=info,
            save=lambda: None,
        )

    def call(self, name, *, vnfcs=(), kind="", **passed):
        request = types.SimpleNamespace(
            additional_params=self.hosts.parameters()
            if name.startswith("instantiate")
            else None,
            aspect_id="worker_instance",
            flavour_id="simple",
            type=kind,
            number_of_steps=1,
            vnfc_instance_id=list(vnfcs),
            termination_type="GRACEFUL",
            ext_virtual_links=[],
        )
        operation = name.rpartition("_")[0]
        passed[f"{operation}_vnf_request"] = request
        with self.hosts.counting() as found:
            getattr(self.driver, name)(self.context, self.instance, **passed)
        self.found[name] = found

    def live(self):
        info, hosts = self.instance.instantiated_vnf_info, self.hosts
        self.call("instantiate_start")
        info.instance_id = bed.STACK
        info.additional_params = hosts.parameters()
        self.call("instantiate_end")
        new = hosts.add_worker(23)
        self.call(
            "scale_end", kind="SCALE_OUT", scale_out_id_list=[hosts.stack_of(new)]
        )
        oldest = next(iter(hosts.workers))
        self.call(
            "scale_start", kind="SCALE_IN", scale_out_id_list=[hosts.stack_of(oldest)]
        )
        hosts.delete_worker(oldest)
        compute = types.SimpleNamespace(resource_id=next(iter(hosts.workers)))
        vnfc = types.SimpleNamespace(
            id="vnfc", compute_resource=compute, metadata={}, vdu_id="workerNode"
        )
        info.vnfc_resource_info = [vnfc]
        self.call("heal_start", vnfcs=["vnfc"])
        compute.resource_id = hosts.rebuild_worker(compute.resource_id)
        self.call("heal_end", vnfcs=["vnfc"])
        self.call("terminate_start")
        self.call("terminate_end")


class V2:
    """The hooks of Tacker's v2 API, without the conductor that starts them."""

    def __init__(self, hosts, monkeypatch):
        self.hosts = hosts
        self.found: dict[str, bed.Asked] = {}
        monkeypatch.setattr(v2_driver, "begin", lambda _: cfg.CONF)
        vim = {
            "vimId": "openstack",
            "vimType": "ETSINFV.OPENSTACK_KEYSTONE.V_3",
            "interfaceInfo": {"endpoint": hosts.openstack.url},
            "accessInfo": {
                "username": "u",
                "password": "p",
                "project": "p",
                "userDomain": "d",
                "projectDomain": "d",
            },
        }
        self.instance = {"id": VNF, "vimConnectionInfo": {"openstack": vim}}
        self.between = {}

    def call(self, name, request=None, grant=None):
        given = {
            "operation": name,
            "request": {"additionalParams": self.hosts.parameters(), **(request or {})},
            "vnf_instance": self.instance,
            "grant_request": grant or {},
            "tmp_csar_dir": str(self.hosts.package),
            "user_script_err_handling_data": self.between,
        }
        call = HookCall.read(given)
        with self.hosts.counting() as found:
            v2_driver.perform(call, cast(Streams, None))
        result = call.result()
        self.instance = result["vnf_instance"]
        self.between = result["user_script_err_handling_data"]
        self.found[name] = found

    def operate(self, operation, request=None, grant=None, work=lambda: None):
        self.between = {}
        self.call(f"{operation}_start", request, grant)
        work()
        self._list()
        self.call(f"{operation}_end", request, grant)

    def _list(self):
        """Have Tacker list the servers that Heat has."""
        found = [("m1", "masterNode", bed.STACK), ("lb", "externalLB", bed.STACK)]
        stack_of = self.hosts.stack_of
        found += [(w, "workerNode", stack_of(w)) for w in self.hosts.workers]
        self.instance["instantiatedVnfInfo"] = {
            "flavourId": "simple",
            "metadata": {"stack_id": bed.STACK},
            "vnfcResourceInfo": [_resource(*one) for one in found],
            "vnfcInfo": [
                {"id": f"vnfc-{server}", "vduId": vdu, "vnfcResourceInfoId": server}
                for server, vdu, _ in found
            ],
        }

    def live(self):
        hosts = self.hosts
        self.operate("instantiate", {"flavourId": "simple"})
        out = {"type": "SCALE_OUT", "aspectId": "worker_instance", "numberOfSteps": 1}
        new = {"type": "COMPUTE", "resourceTemplateId": "workerNode"}
        self.operate(
            "scale", out, {"addResources": [new]}, lambda: hosts.add_worker(23)
        )
        joined = {f"{name} of a scale-out": self.found.pop(name) for name in SCALE}
        oldest, second, _ = hosts.workers
        gone = {"type": "COMPUTE", "resource": {"resourceId": oldest}}
        self.operate(
            "scale",
            {**out, "type": "SCALE_IN"},
            {"removeResources": [gone]},
            lambda: hosts.delete_worker(oldest),
        )
        self.operate(
            "heal",
            {"vnfcInstanceId": [f"vnfc-{second}"]},
            work=lambda: hosts.rebuild_worker(second),
        )
        self.operate("terminate", {"terminationType": "GRACEFUL"})
        self.found |= joined


SCALE = ("scale_start", "scale_end")


def _resource(server, vdu, stack):
    """An entry of ``vnfcResourceInfo``."""
    place = {"stack_id": f"name/{stack}"}
    if vdu == "workerNode":
        place["parent_stack_id"] = "asg"
    return {
        "id": server,
        "vduId": vdu,
        "computeResource": {"vimConnectionId": "openstack", "resourceId": server},
        "metadata": place,
    }


#: Of each hook: logins on the host with the most, requests that Heat answers, remote
#: commands, and files opened over SFTP.
COUNTS = {
    V1: {
        "instantiate_start": (1, 1, 13, 3),
        "instantiate_end": (1, 3, 64, 49),
        "scale_end": (1, 3, 39, 50),
        "scale_start": (1, 3, 33, 39),
        # With what a check asks of the stack that Tacker's heal updates.
        "heal_start": (1, 7, 30, 43),
        "heal_end": (1, 3, 36, 50),
        "terminate_start": (1, 0, 0, 2),
        "terminate_end": (1, 0, 7, 2),
    },
    V2: {
        "instantiate_start": (1, 0, 13, 3),
        "instantiate_end": (1, 2, 64, 49),
        "scale_start": (1, 2, 33, 39),
        "scale_end": (0, 0, 0, 0),
        "heal_start": (1, 2, 30, 43),
        "heal_end": (1, 2, 36, 50),
        "terminate_start": (1, 0, 7, 4),
        "terminate_end": (0, 0, 0, 0),
        "scale_start of a scale-out": (1, 2, 10, 3),
        "scale_end of a scale-out": (1, 2, 39, 50),
    },
}
#: Bytes that no hook exceeds; those of a poll count, so there is room.
MOST_SENT = 200_000


@pytest.mark.parametrize("api", COUNTS)
def test_a_hook_asks_for_no_more_than_this(api, hosts, monkeypatch):
    tacker = api(hosts, monkeypatch)
    tacker.live()
    for hook, asked in tacker.found.items():
        print(f"{hook!r}: {asked.figures},  # {asked.sent} bytes")
        for text, count in asked.commands.most_common():
            print(f"{count:8} {text}")
    found = {hook: asked.figures for hook, asked in tacker.found.items()}
    assert found == COUNTS[api]
    assert max(asked.sent for asked in tacker.found.values()) < MOST_SENT
