# SPDX-License-Identifier: Apache-2.0
"""VNF instances and definitions as Tacker's v1 API has them."""

import contextlib
import types
import uuid
from typing import Any

from tacker import objects

from tacker_k8s_mgmt.hooks.v1.driver import MgmtDriver
from tacker_k8s_mgmt.hooks.v1.hook import V1Hook
from tacker_k8s_mgmt.hooks.v1.instance import V1Instance
from tests.helpers.fakes.site import FakeSite

NAME = "mgmt-drivers-kubespray"


class OpenSite(FakeSite):
    """A fake site that is used as the hooks use the real one."""

    def __enter__(self):
        return self

    def __exit__(self, *_):
        pass


def instance(additional_params=None):
    info = types.SimpleNamespace(additional_params=additional_params, instance_id=None)
    return types.SimpleNamespace(
        id=str(uuid.uuid4()),
        tenant_id="tenant",
        vnfd_id="vnfd",
        vnf_metadata={},
        vim_connection_info=[],
        instantiated_vnf_info=info,
        saved=0,
    )


def hook(vnf_instance, options, state_path, context=None):
    """What the site of an operation needs of its hook."""
    return types.SimpleNamespace(
        instance=V1Instance(context, vnf_instance),
        options=options,
        state_path=str(state_path),
        name="scale_end",
        note=print,
    )


def steps_of(monkeypatch, name, cluster, vnf_instance, request):
    """The steps of one of the v1 hooks.

    :param cluster: what the steps work with.
    """
    made = []

    def opened(*_, **__):
        return contextlib.nullcontext(cluster)

    def run(_, operation, **__):
        made.extend(operation.steps())

    monkeypatch.setattr(V1Hook, "cluster", opened)
    monkeypatch.setattr(V1Hook, "run", run)
    monkeypatch.setattr(V1Instance, "checkpoint", lambda *_: "")
    getattr(MgmtDriver(), name)(None, vnf_instance, request)
    return made


ACCOUNT = {"username": "ubuntu", "password": "s3cret-word"}
GOOD = {
    "k8s_cluster_installation_param": {
        "ansible": {
            "ip_address": "192.0.2.5",
            "kubespray_root_path": "/opt/kubespray",
            "transferring_inventory_path": "/srv/clusters/one",
            **ACCOUNT,
        },
        "master_node": {"ssh_cp_name": "m_ssh", "nic_cp_name": "m_nic", **ACCOUNT},
        "worker_node": {"ssh_cp_name": "w_ssh", "nic_cp_name": "w_nic", **ACCOUNT},
        "external_lb_param": {
            "ssh_cp_name": "lb_ssh",
            "ssh_username": "ubuntu",
            "ssh_password": "s3cret-word",
            "script_path": "Scripts/lb.sh",
        },
    }
}


class Saved(types.SimpleNamespace):
    def save(self):
        self.saved += 1


def saved_instance():
    one = Saved(**vars(instance()))
    one.vim_connection_info = [types.SimpleNamespace(vim_id="openstack")]
    return one


DEFINITIONS = "vnfd/simple/Definitions/kubernetes_df_simple.yaml"


def create_row(context: Any, name: str = "cluster", **fields: Any) -> Any:
    """A VNF instance in Tacker's table; *fields* are others than the usual ones."""
    usual = {
        "instantiation_state": "INSTANTIATED",
        "vnfd_id": str(uuid.uuid4()),
        "vnf_provider": "us",
        "vnf_product_name": "cluster",
        "vnf_software_version": "1",
        "vnfd_version": "1",
        "vnf_pkg_id": str(uuid.uuid4()),
        "tenant_id": "tenant",
        "vnf_metadata": {},
        "vim_connection_info": [],
    }
    one = objects.VnfInstance(
        context=context, vnf_instance_name=name, **{**usual, **fields}
    )
    one.create()
    return one
