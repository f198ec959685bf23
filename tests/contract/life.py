# SPDX-License-Identifier: Apache-2.0
"""A program: every hook of the driver, one after the other, for some VNFs at once.

Run by test_threads.py, in a process of its own, because it may be one that eventlet has
patched, as conductors of earlier releases were. SSH, files, playbook runs and waits are
real, with the in-process server of the unit tests on the other end; Heat, the cluster,
the load balancer and Tacker's registry are the fakes of the unit tests.

Reads one JSON object from standard input: ``vnfs``, ``port``, ``home``,
``silent_port``. Prints one with what came out.
"""

import json
import sys
import threading
import types
import uuid
from pathlib import Path

from oslo_config import cfg
from pydantic import SecretStr

from tacker_k8s_mgmt import config, errors
from tacker_k8s_mgmt.hooks.v1 import driver, stack, vim_registry
from tacker_k8s_mgmt.hooks.v1 import hook as context
from tacker_k8s_mgmt.hooks.v1.instance import V1Instance
from tacker_k8s_mgmt.model.nodes import Role
from tacker_k8s_mgmt.remote.ssh import login, session
from tacker_k8s_mgmt.remote.ssh.known_hosts import HostKeys
from tacker_k8s_mgmt.remote.ssh.login import Credentials
from tacker_k8s_mgmt.remote.ssh.session import LoginTarget
from tacker_k8s_mgmt.request.accounts import Account
from tests.helpers.fakes.nodes import machine
from tests.helpers.fakes.site import FakeSite
from tests.helpers.requests import additional_params
from tests.helpers.sshd import PASSWORD, USER

GIVEN = json.load(sys.stdin)
HOME = Path(GIVEN["home"])
WORLDS: dict[str, FakeSite] = {}
REQUESTS = {
    "instantiate": "instantiate_vnf",
    "terminate": "terminate_vnf",
    "scale": "scale_vnf",
    "heal": "heal_vnf",
    "change_external_connectivity": "change_ext_conn",
    "modify_information": "modify_vnf",
}
SETTINGS = {"k8s_nodes:worker:label:example.com/disk": "ssd"}


class Playbooks:
    """Real runs; what they do to the cluster is faked."""

    def __init__(self, real, world, read):
        self._real, self._world, self._read = real, world, read
        self.done, self.live, self.stop = real.done, real.live, real.stop

    def run(self, request, nodes, on_progress):
        self._real.run(request, nodes, on_progress)
        for name in ("hosts.yaml", "vars.json"):
            self._world.files[name] = self._read(name)
        self._world.playbooks.run(request, nodes, on_progress)


class Site(context.V1Site):
    """The real site with a fake cloud and a fake cluster."""

    def __init__(self, hook, params):
        super().__init__(hook, params)
        self.world = WORLDS[hook.vnf_id]
        self.vims = self.world.vims
        self.attachments = self.world.attachments
        self.fixed_groups = self.world.fixed_groups
        for name in (
            "machines",
            "identity",
            "unusable",
            "clocks",
            "clocks_of",
            "cluster",
            "manifests",
            "client",
            "balancer",
            "group_sizes",
            "trust_registries",
            "changes_of_heal",
        ):
            setattr(self, name, getattr(self.world, name))

    def package_findings(self):
        return ()

    def wait_reachable(self, machines):
        """All are the one server, whose key each of them has."""
        super().wait_reachable(machines)
        keys = self._keys().of("127.0.0.1", GIVEN["port"])
        for vm in machines:
            self.record_host_keys(vm.ssh_address, keys)

    @property
    def playbooks(self):
        return Playbooks(super().playbooks, self.world, self.workdir.read)


def _account(port):
    return Account("vms", USER, SecretStr(PASSWORD), None, port=port)


def endpoint(*_, **__):
    """Every host is the one server."""
    return LoginTarget("127.0.0.1", _account(GIVEN["port"]))


def instance():
    one = types.SimpleNamespace(
        id=str(uuid.uuid4()),
        tenant_id="tenant",
        vnfd_id="vnfd",
        vnf_metadata=SETTINGS,
        vim_connection_info=[],
        task_state=None,
        save=lambda: None,
    )
    ansible = {
        "ip_address": "127.0.0.1",
        "port": GIVEN["port"],
        "username": USER,
        "password": PASSWORD,
        "kubespray_root_path": str(HOME / "kubespray"),
        "transferring_inventory_path": str(HOME / "clusters" / one.id),
    }
    one.instantiated_vnf_info = types.SimpleNamespace(
        additional_params=additional_params(ansible=ansible),
        instance_id="stack",
        vnfc_resource_info=[],
    )
    return one


def live(driver, one):
    """Instantiate, scale out and in, heal a worker, terminate; the workers between."""
    world = WORLDS[one.id] = FakeSite()
    told = []
    types_of_scaling = {"scale_start": "SCALE_IN", "scale_end": "SCALE_OUT"}

    def call(hook, vnfcs=(), **kwargs):
        request = types.SimpleNamespace(
            additional_params=None,
            aspect_id="worker_instance",
            type=types_of_scaling.get(hook),
            number_of_steps=1,
            vnfc_instance_id=list(vnfcs),
            ext_virtual_links=[],
        )
        kwargs[f"{REQUESTS[hook.rpartition('_')[0]]}_request"] = request
        getattr(driver, hook)(context=None, vnf_instance=one, **kwargs)
        told.append(hook)

    call("instantiate_start")
    call("instantiate_end")
    call("modify_information_start")
    call("modify_information_end")
    call("change_external_connectivity_start")
    call("change_external_connectivity_end")
    members = [world.members]
    # A scale-in removes the one that Heat has created first.
    world.workers.insert(0, machine(Role.WORKER, 77))
    call("scale_end", scale_out_id_list=["member-server-77"])
    members.append(world.members)
    call("scale_start", scale_out_id_list=["member-server-77"])
    world.workers.pop(0)
    members.append(world.members)
    compute = types.SimpleNamespace(resource_id="server-5")
    known = {"vdu_id": "workerNode", "compute_resource": compute}
    vnfc = types.SimpleNamespace(id="vnfc-5", **known)
    one.instantiated_vnf_info.vnfc_resource_info = [vnfc]
    call("heal_start", vnfcs=["vnfc-5"])
    world.workers[1] = machine(Role.WORKER, 5, server="server-5-new")
    compute.resource_id = "server-5-new"
    call("heal_end", vnfcs=["vnfc-5"])
    members.append(world.members)
    call("terminate_start")
    call("terminate_end")
    return {"hooks": told, "members": members, "vim": world.vim is not None}


def outcome(work, *args):
    """What it returns, or its error."""
    try:
        return work(*args)
    except errors.K8sMgmtError as error:
        return {"error": f"{type(error).__name__}: {error}"}


def lives(driver):
    """All VNFs at once, each in a thread of its own."""
    ones = [instance() for _ in range(GIVEN["vnfs"])]
    found = {}

    def work(one):
        found[one.id] = outcome(live, driver, one)

    threads = [threading.Thread(target=work, args=(one,)) for one in ones]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return list(found.values())


def limits():
    """What each limit says when it has passed."""
    silent = LoginTarget("127.0.0.1", _account(GIVEN["silent_port"]))

    def connect(to):
        return login.open_ssh(
            to, connect_timeout=1, host_keys=HostKeys(), redact=str, deadline=2
        )

    def command():
        with connect(endpoint()) as session:
            session.run(["sleep", "60"], timeout=0.5)

    def unanswered():
        with connect(endpoint()) as session:
            # `timeout` on the other end is stopped and ends nothing; our wait ends.
            session.run(["sh", "-c", "kill -STOP $PPID; sleep 60"], timeout=0.5)

    return [outcome(connect, silent), outcome(command), outcome(unanswered)]


def main():
    cfg.CONF([], project="life")
    config.register(cfg.CONF)
    values = {
        "state_path": str(HOME / "state"),
        "connect_timeout": 20,
        "boot_timeout": 40,
        "poll_interval": 0.2,
        "ready_timeout": 20,
    }
    for name, value in values.items():
        cfg.CONF.set_override(name, value, group=config.GROUP)
    vars(context).update(V1Site=Site)
    # Tacker's database has the request.
    V1Instance.requested_metadata = lambda instance: SETTINGS
    nothing = types.SimpleNamespace(find_stack=lambda name: None)
    vars(stack).update(heat_of=lambda instance: nothing)
    Credentials.endpoint = endpoint
    vars(vim_registry).update(
        VimRegistry=lambda instance: WORLDS[instance.vnf_id].vims,
        _plugin=lambda: types.SimpleNamespace(get_vims=lambda context: []),
    )
    session._KILL_AFTER = session._GRACE = 0.5
    print(json.dumps({"limits": limits(), "lives": lives(driver.MgmtDriver())}))


main()
