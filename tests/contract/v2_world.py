# SPDX-License-Identifier: Apache-2.0
"""Tacker's v2 API with our script, and fakes of everything beyond it.

:class:`Tacker` runs operations with the conductor's own code, which starts the script
of a real package in a process of its own. There :func:`.v2_fakes.enter` puts the fakes
of the unit tests in the place of SSH, Heat and the cluster; their state is in a file.
"""

import copy
import pickle
import types
import zipfile
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

from tacker.sol_refactored import objects
from tacker.sol_refactored.common import vnfd_utils
from tacker.sol_refactored.conductor import vnflcm_driver_v2

from tacker_k8s_mgmt.model.nodes import Role
from tests.contract.v2_fakes import Site
from tests.helpers.fakes.nodes import machine
from tests.helpers.requests import VNF

ROOT = Path(__file__).resolve().parents[2]
SHIM = "Scripts/kubespray_mgmt_v2.py"
VIM = {
    "vimId": "openstack",
    "vimType": "ETSINFV.OPENSTACK_KEYSTONE.V_3",
    "interfaceInfo": {"endpoint": "http://192.0.2.1/identity"},
    "accessInfo": {
        "username": "nfv",
        "password": "v1m-secret",
        "project": "nfv",
        "userDomain": "Default",
        "projectDomain": "Default",
    },
}
_PRODUCT = {
    "vnfProvider": "us",
    "vnfProductName": "cluster",
    "vnfSoftwareVersion": "1",
    "vnfdVersion": "1",
}
#: Runs before the shim in the script's process; only the standard library is there yet.
_BEFORE = """\
import runpy, sys
sys.path.insert(0, {root!r})
from tacker_k8s_mgmt.hooks.v2 import program
read = program.Streams.read
def enter(self):
    given = read(self)
    from tests.contract import v2_fakes
    v2_fakes.enter({world!r})
    return given
program.Streams.read = enter
runpy.run_path({shim!r}, run_name="__main__")
"""


def unpack(package, directory, world=None):
    """Lay a package out as Tacker has it; its script meets the fakes, if there are."""
    with zipfile.ZipFile(package) as opened:
        opened.extractall(directory)
    shim = directory / SHIM
    if world is not None:
        original = directory / "original.py"
        original.write_bytes(shim.read_bytes())
        shim.write_text(
            _BEFORE.format(root=str(ROOT), world=str(world), shim=str(original))
        )
    return directory


def stored(instance):
    """A VNF instance as MySQL gives it back: keys by their length, then their bytes.

    MariaDB keeps the order that they are written in, which is then no other.
    """
    infos = instance.get("vimConnectionInfo") or {}
    names = sorted(infos, key=lambda name: (len(name.encode()), name.encode()))
    return {**instance, "vimConnectionInfo": {name: infos[name] for name in names}}


def _replace_unhealthy(site):
    """What any update of the stack does, whatever it is for."""
    site.workers = [
        replace(one, server_id=f"{one.server_id}-new")
        if one.server_id in site.unfinished
        else one
        for one in site.workers
    ]
    site.unfinished.clear()


class Heat:
    """What Tacker's OpenStack driver does to the fake VMs and to the VNF instance."""

    def __init__(self, tacker):
        self._tacker = tacker

    def instantiate(self, req, inst, *_):
        self._tell(inst, req.flavourId)

    def instantiate_rollback(self, *_):
        self._tacker.deleted = True

    def terminate(self, *_):
        self._tacker.deleted = True

    def scale(self, req, inst, grant_req, *_):
        """Like Heat, it is told a size, and deletes failed ones, then the oldest."""
        vnfcs = inst.instantiatedVnfInfo.vnfcResourceInfo
        size = sum(vnfc.vduId == "workerNode" for vnfc in vnfcs)
        with self._tacker.world() as site:
            if req.type == "SCALE_OUT":
                size += sum(one.type == "COMPUTE" for one in grant_req.addResources)
                while len(site.workers) < size:
                    number = 6 + len(site.workers)
                    site.workers.append(machine(Role.WORKER, number))
            else:
                places = self._places(inst, grant_req)
                size -= len(places)
                here = {server: stack for server, _, stack in site.vnfcs()}
                site.workers = [
                    w for w in site.workers if here[w.server_id] not in places
                ]
            site.workers.sort(key=lambda one: one.server_id not in site.unfinished)
            site.workers = site.workers[-size:]
            _replace_unhealthy(site)
        self._tell(inst, inst.instantiatedVnfInfo.flavourId)

    @staticmethod
    def _places(inst, grant_req):
        """The stacks of the servers that an operation takes away."""
        gone = {
            resource.resource.resourceId
            for resource in grant_req.removeResources
            if resource.type == "COMPUTE"
        }
        return {
            vnfc.metadata["stack_id"].rpartition("/")[2]
            for vnfc in inst.instantiatedVnfInfo.vnfcResourceInfo
            if vnfc.computeResource.resourceId in gone
        }

    def change_ext_conn(self, req, inst, *_):
        """A worker is reached at another address."""
        with self._tacker.world() as site:
            first, *others = site.workers
            site.workers = [replace(first, ssh_address="192.0.2.200"), *others]
            _replace_unhealthy(site)
        self._tell(inst, inst.instantiatedVnfInfo.flavourId)

    def change_ext_conn_rollback(self, req, inst, *_):
        with self._tacker.world() as site:
            first, *others = site.workers
            site.workers = [replace(first, ssh_address="192.0.2.155"), *others]
        self._tell(inst, inst.instantiatedVnfInfo.flavourId)

    def change_vnfpkg(self, req, inst, *_):
        self._tell(inst, inst.instantiatedVnfInfo.flavourId)

    def scale_rollback(self, req, inst, *_):
        known = {vnfc.id for vnfc in inst.instantiatedVnfInfo.vnfcResourceInfo}
        with self._tacker.world() as site:
            site.workers = [w for w in site.workers if w.server_id in known]

    def heal(self, req, inst, grant_req, *_):
        """Like Tacker, it has Heat replace whatever is in the VNFCs' places now.

        With ``all``, it has the stack deleted and created.
        """
        if self._tacker.stopped:
            raise RuntimeError("Heat does not answer")
        every = req.obj_attr_is_set("additionalParams") and (
            req.additionalParams.get("all")
            and not req.obj_attr_is_set("vnfcInstanceId")
        )
        places = self._places(inst, grant_req)
        with self._tacker.world() as site:
            here = {server: stack for server, _, stack in site.vnfcs()}

            def built(one):
                if here[one.server_id] not in places and not every:
                    return one
                return replace(one, server_id=f"{one.server_id}-new")

            site.workers = [built(worker) for worker in site.workers]
            site.control_planes = [
                built(control_plane) for control_plane in site.control_planes
            ]
            site.load_balancer = built(site.load_balancer)
            if not req.obj_attr_is_set("vnfcInstanceId"):
                site.cluster_nodes = []
        self._tell(inst, inst.instantiatedVnfInfo.flavourId)

    def _tell(self, inst, flavour):
        with self._tacker.world() as site:
            found = list(site.vnfcs())
        inst.instantiatedVnfInfo = objects.VnfInstanceV2_InstantiatedVnfInfo.from_dict(
            {
                "flavourId": flavour,
                "vnfState": "STARTED",
                "metadata": {"stack_id": "top"},
                "vnfcResourceInfo": [
                    {
                        "id": server,
                        "vduId": vdu,
                        "computeResource": {
                            "vimConnectionId": "openstack",
                            "resourceId": server,
                        },
                        "metadata": {
                            "stack_id": f"vnf-1-{vdu}/{stack}",
                            **({"parent_stack_id": vdu} if vdu != "externalLB" else {}),
                        },
                    }
                    for server, vdu, stack in reversed(found)
                ],
                "vnfcInfo": [
                    {
                        "id": f"{vdu}-{server}",
                        "vduId": vdu,
                        "vnfcResourceInfoId": server,
                        "vnfcState": "STARTED",
                    }
                    for server, vdu, _ in reversed(found)
                ],
            }
        )


class Tacker:
    """The conductor, as far as it does not talk to its database, to NFVO and VIM.

    :ivar instance: the VNF instance in its database.
    :ivar data: ``userScriptErrHandlingData`` of an operation that has failed.
    :ivar stopped: whether Heat does not answer when Tacker has it heal.
    """

    stopped = False

    def __init__(self, package, directory):
        objects.register_all()
        self.driver = object.__new__(vnflcm_driver_v2.VnfLcmDriverV2)
        told = types.SimpleNamespace(**_PRODUCT)
        self.driver.nfvo_client = types.SimpleNamespace(
            get_vnf_package_info_vnfd=lambda *_: told
        )
        self.state = directory / "state"
        self.path = directory / "world"
        self.path.write_bytes(pickle.dumps(Site()))
        unpacked = unpack(package, directory / "csar", self.path)
        self._vnfd = vnfd_utils.Vnfd("vnfd")
        self._vnfd.init_from_csar_dir(str(unpacked))
        self.deleted = False
        self.data = {}
        self.instance = {
            "id": VNF,
            "vnfInstanceName": "my-cluster",
            "vnfdId": "vnfd",
            **_PRODUCT,
            "instantiationState": "NOT_INSTANTIATED",
        }
        self._granted = ""
        self._last: tuple[Any, Any] = (None, None)

    def grants(self, vdu):
        """Have every resource that an operation makes be of this VDU."""
        self._granted = vdu

    def declare(self, hook):
        """Have the package name one more hook."""
        for definition in self._vnfd.definitions.values():
            nodes = definition.get("topology_template", {}).get("node_templates", {})
            for node in nodes.values():
                hooks = node.get("interfaces", {}).get("Vnflcm", {})
                if "instantiate_end" in hooks:
                    hooks[hook] = hooks["instantiate_end"]

    @contextmanager
    def world(self):
        """What the script finds, to look at and to change."""
        site = self.site
        yield site
        self.path.write_bytes(pickle.dumps(site))

    @property
    def site(self):
        """What the script has left."""
        return pickle.loads(self.path.read_bytes())  # noqa: S301

    def operate(self, operation, request):
        """Take an operation from its grant to its end (``start_lcm_op_internal``)."""
        kinds = {
            "INSTANTIATE": objects.InstantiateVnfRequest,
            "TERMINATE": objects.TerminateVnfRequest,
            "SCALE": objects.ScaleVnfRequest,
            "HEAL": objects.HealVnfRequest,
            "CHANGE_EXT_CONN": objects.ChangeExtVnfConnectivityRequest,
            "CHANGE_VNFPKG": objects.ChangeCurrentVnfPkgRequest,
            "MODIFY_INFO": objects.VnfInfoModificationRequest,
        }
        req = kinds[operation].from_dict(request)
        lcmocc = objects.VnfLcmOpOccV2(
            id="occ", operation=operation, operationParams=req
        )
        lcmocc.operationState = "PROCESSING"
        # A modification is not granted.
        modifies = operation == "MODIFY_INFO"
        self._last = (lcmocc, None if modifies else self._grant(operation, req))
        self.data = {}
        self.retry()

    def _grant(self, operation, req):
        granted = objects.GrantRequestV1(
            vnfInstanceId=VNF,
            vnfLcmOpOccId="occ",
            vnfdId="vnfd",
            operation=operation,
            isAutomaticInvocation=False,
        )
        grant = getattr(self.driver, f"{operation.lower()}_grant")
        grant(granted, req, self._instance(), self._vnfd)
        for resource in granted.addResources if self._granted else ():
            resource.resourceTemplateId = self._granted
        return granted

    def retry(self):
        """Do it again, with the grant and the data of the first time."""
        inst = self._run(self.driver.process)
        self.instance = stored(inst.to_dict())

    def rollback(self):
        """Take the operation that has failed back; nothing of it is stored."""
        self._run(self.driver.rollback)

    def _run(self, work):
        lcmocc, granted = self._last
        inst, grant = self._instance(), objects.GrantV1() if granted else None
        args = None, lcmocc, inst, granted, grant, self._vnfd
        self.driver.post_grant(*args)
        data = copy.deepcopy(self.data)
        try:
            work(*args, data)
        finally:
            self.data = data
        return inst

    def _instance(self):
        return objects.VnfInstanceV2.from_dict(copy.deepcopy(self.instance))
