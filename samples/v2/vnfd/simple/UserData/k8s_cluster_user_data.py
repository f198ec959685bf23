# SPDX-License-Identifier: Apache-2.0
"""User data for Tacker's v2 API: makes the Base HOT's parameters out of a request.

Tacker runs it in a process of its own and shows the operator what that process says on
stderr. So it ends with SystemExit, which says one sentence, and not with a traceback.

What is not overridden here Tacker's DefaultUserData do: scaling and healing. They need
nothing but the stack's own parameters, so their requests need not name this class.

A Base HOT may also have the parameters of the specification's one: ``flavor`` and
``image``, if all VDUs have the same, ``public_network``, and ``net1`` for an internal
network that exists already.
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
            Tacker recreates a stack to heal it, it has the template and ``nfv`` alone.
        :raises SystemExit: with everything that is missing, for the operator.
        """
        vnfd = utils.get_vnfd(inst["vnfdId"], tmp_csar_dir)
        flavour_id = req["flavourId"]
        hot = vnfd.get_base_hot(flavour_id)
        top = hot["template"]
        nfv = {"VDU": {}, "CP": {}, **utils.init_nfv_dict(top)}
        for vdu, values in nfv["VDU"].items():
            values.update(
                _machine(vdu, values, vnfd, flavour_id, inst, grant_req, grant)
            )
        nfv["CP"] = {cp: _port(cp, req, grant) for cp in nfv["CP"]}
        utils.apply_ext_managed_vls(top, req, grant)
        given = req.get("additionalParams", {})
        given = {**_singles(top, vnfd, flavour_id, req, grant), **given}
        for port in nfv["CP"].values():
            port["network"] = port["network"] or given.get("public_network")
        problems = [*_missing(nfv), *_even(nfv), *_shared_addresses(nfv, top)]
        _refuse([*problems, *_ungiven(top, given)])
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
        """Say again of which networks and addresses the connected ports are."""
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
        "locationConstraints": utils.get_param_zone(vdu, grant_req, grant),
    }
    return {key: value for key, value in found.items() if key in wanted}


def _singles(top, vnfd, flavour_id, req, grant):
    """Values that are parameters of their own: the template's or, where it has no
    default, that of all VDUs or connection points."""
    vdus = vnfd.get_vdu_nodes(flavour_id)
    links = req.get("extVirtualLinks", [])
    values = {
        "flavor": {utils.get_param_flavor(v, flavour_id, vnfd, grant) for v in vdus},
        "image": {utils.get_param_image(v, flavour_id, vnfd, grant) for v in vdus},
        "public_network": {link["resourceId"] for link in links},
    }
    singles = {}
    for name in values.keys() & top["parameters"].keys():
        common = values[name].pop() if len(values[name]) == 1 else None
        singles[name] = top["parameters"][name].get("default", common)
    return {name: value for name, value in singles.items() if value}


def _ungiven(top, given):
    for name, schema in top["parameters"].items():
        if name != "nfv" and "default" not in schema and not given.get(name):
            yield f"additionalParams has no {name}, which the Base HOT requires"


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
        for key, kind in (("computeFlavourId", "flavour"), ("vcImageId", "image")):
            if key in values and not values[key]:
                yield f"the VNFD names no {kind} for {vdu}"
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
