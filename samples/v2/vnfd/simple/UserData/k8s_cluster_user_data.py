"""User data for Tacker's v2 API: makes the Base HOT's parameters out of a request.

Tacker runs it in a process of its own and shows the operator what that process says on
stderr. So it ends with SystemExit, which says one sentence, and not with a traceback.

What is not overridden here Tacker's DefaultUserData do: scaling and healing. They need
nothing but the stack's own parameters, so their requests need not name this class.
"""

import sys

import yaml
from tacker.sol_refactored.common import common_script_utils as utils
from tacker.sol_refactored.infra_drivers.openstack.userdata_default import (
    DefaultUserData,
)

CONTROL_PLANE = "masterNode"


class KubernetesClusterUserData(DefaultUserData):
    @staticmethod
    def instantiate(req, inst, grant_req, grant, tmp_csar_dir):
        """Fill the Base HOT's parameters.

        :param req: the InstantiateVnfRequest. Keys of its additionalParams that are
            parameters of the Base HOT become their defaults in the template: when
            Tacker makes a stack anew to heal it, it has the template and ``nfv`` alone.
        :raises SystemExit: with everything that is missing, for the operator.
        """
        vnfd = utils.get_vnfd(inst["vnfdId"], tmp_csar_dir)
        flavour_id = req["flavourId"]
        hot = vnfd.get_base_hot(flavour_id)
        top = hot["template"]
        nfv = utils.init_nfv_dict(top)
        for vdu, values in nfv["VDU"].items():
            values.update(
                _machine(vdu, values, vnfd, flavour_id, inst, grant_req, grant)
            )
        nfv["CP"] = {cp: _port(cp, req, grant) for cp in nfv["CP"]}
        utils.apply_ext_managed_vls(top, req, grant)
        given = req.get("additionalParams", {})
        _refuse([*_missing(nfv), *_even(nfv), *_shared_addresses(nfv, top)])
        for name, schema in top["parameters"].items():
            if name != "nfv" and name in given:
                schema["default"] = given[name]
        return {
            "template": yaml.safe_dump(top),
            "parameters": {"nfv": nfv},
            "files": {
                name: yaml.safe_dump(one) for name, one in hot.get("files", {}).items()
            },
        }

    @staticmethod
    def change_ext_conn(req, inst, grant_req, grant, tmp_csar_dir):
        """Say anew of which networks and addresses the connected ports are."""
        top = _template(inst["vnfdId"], inst, tmp_csar_dir)
        ports = {
            cp: _port(cp, req, grant)
            for cp in utils.init_nfv_dict(top)["CP"]
            if utils.get_param_network(cp, grant, req)
        }
        _refuse(_shared_addresses({"CP": ports}, top))
        return {"parameters": {"nfv": {"CP": ports}}}

    @staticmethod
    def change_ext_conn_rollback(req, inst, grant_req, grant, tmp_csar_dir):
        """Say what it was before."""
        top = _template(inst["vnfdId"], inst, tmp_csar_dir)
        ports = {
            cp: {
                "network": utils.get_param_network_from_inst(cp, inst),
                "fixed_ips": utils.get_param_fixed_ips_from_inst(cp, inst) or [],
            }
            for cp in utils.init_nfv_dict(top)["CP"]
        }
        return {"parameters": {"nfv": {"CP": ports}}}

    @staticmethod
    def change_vnfpkg(req, inst, grant_req, grant, tmp_csar_dir):
        """Leave the VMs as they are: the hooks upgrade what runs on them."""
        if req["additionalParams"].get("vdu_params"):
            _refuse(["vdu_params must be [], since no VM is replaced"])
        return {"parameters": {"nfv": {}}}

    @staticmethod
    def change_vnfpkg_rollback(req, inst, grant_req, grant, tmp_csar_dir):
        """Leave the VMs as they are."""
        return {"parameters": {"nfv": {}}}


def _template(vnfd_id, inst, tmp_csar_dir):
    vnfd = utils.get_vnfd(vnfd_id, tmp_csar_dir)
    return vnfd.get_base_hot(inst["instantiatedVnfInfo"]["flavourId"])["template"]


def _machine(vdu, wanted, vnfd, flavour_id, inst, grant_req, grant):
    """Values of a VDU for the Base HOT; the NFVO's grant comes first."""
    found = {
        "computeFlavourId": utils.get_param_flavor(vdu, flavour_id, vnfd, grant),
        "vcImageId": utils.get_param_image(vdu, flavour_id, vnfd, grant),
        "desired_capacity": utils.get_param_capacity(vdu, inst, grant_req),
    }
    return {key: value for key, value in found.items() if key in wanted}


def _port(cp, req, grant):
    """Network and addresses of an external connection point.

    Without addresses the choice is the VIM's.
    """
    return {
        "network": utils.get_param_network(cp, grant, req),
        "fixed_ips": utils.get_param_fixed_ips(cp, grant, req) or [],
    }


def _missing(nfv):
    for vdu, values in nfv["VDU"].items():
        if not values["computeFlavourId"]:
            yield f"the VNFD names no flavour for {vdu}"
        if not values["vcImageId"]:
            yield f"the VNFD names no image for {vdu}"
    for cp, values in nfv["CP"].items():
        if not values["network"]:
            yield f"extVirtualLinks has no entry for {cp}"


def _even(nfv):
    number = nfv["VDU"].get(CONTROL_PLANE, {}).get("desired_capacity", 1)
    if number % 2 == 0:
        yield f"{number} control planes: etcd wants an odd number of members"


def _shared_addresses(nfv, top):
    """Fixed addresses that several members of a group would have to share."""
    for cp, port in nfv["CP"].items():
        for fixed in port["fixed_ips"]:
            if cp not in top["resources"] and "ip_address" in fixed:
                yield (
                    f"{cp} cannot have the fixed address {fixed['ip_address']}, "
                    "because the VMs of a group would all get it"
                )


def _refuse(problems):
    listed = list(problems)
    if listed:
        sys.exit("user data: " + "; ".join(listed))
