# SPDX-License-Identifier: Apache-2.0
"""User data for Tacker's v1 API: makes the Base HOT's parameters out of a request.

Flavours and images come from the VNFD and from nowhere else: when Tacker heals a VM, it
fills these parameters from the VNFD again, and any other value would make Heat replace
machines that no request named.

A Base HOT may also have the parameters of the specification's one: ``flavor`` and
``image``, if all VDUs have the same, ``public_network``, and ``net1`` for an internal
network that exists already.
"""

import yaml
from tacker.extensions import vnfm
from tacker.vnfm.lcm_user_data import utils
from tacker.vnfm.lcm_user_data.abstract_user_data import AbstractUserData


class KubernetesClusterUserData(AbstractUserData):
    @staticmethod
    def instantiate(
        base_hot_dict=None, vnfd_dict=None, inst_req_info=None, grant_info=None
    ):
        """Fill the Base HOT's parameters.

        :param base_hot_dict: the templates by file name; the top one is named
            ``heat_template``.
        :param inst_req_info: Tacker's InstantiateVnfRequest. Keys of its
            additionalParams that are parameters of the Base HOT override its defaults.
        :raises LCMUserDataFailed: with everything that is missing, for the operator.
        """
        top = base_hot_dict["heat_template"]
        given = inst_req_info.additional_params or {}
        wanted = {"VDU": set(), "CP": set()}
        for kind, name in _nfv_paths(list(base_hot_dict.values())):
            wanted[kind].add(name)
        flavors = utils.create_vdu_flavor_capability_name_dict(vnfd_dict)
        images = utils.create_sw_image_dict(vnfd_dict)
        ports = _external_ports(inst_req_info)
        single = _singles(top, given, flavors, images, ports)
        if single.get("public_network"):
            for cp in wanted["CP"] - ports.keys():
                ports[cp] = {"network": single["public_network"], "fixed_ips": []}
        problems = [
            *_absent("the VNFD names no flavour for {}", wanted["VDU"], flavors),
            *_absent("the VNFD names no image for {}", wanted["VDU"], images),
            *_absent("extVirtualLinks has no entry for {}", wanted["CP"], ports),
            *_shared_addresses(ports, top),
            *_ungiven(top, {**given, **single}),
            *_unkept({name: given[name] for name in top["parameters"].keys() & given}),
        ]
        if problems:
            raise vnfm.LCMUserDataFailed(reason="failed: " + "; ".join(problems))
        parameters = utils.get_diff_base_hot_param_from_api(
            base_hot_dict, inst_req_info
        )
        parameters.update(single)
        parameters["nfv"] = {
            "VDU": {
                vdu: {"flavor": flavors[vdu], "image": images[vdu]}
                for vdu in wanted["VDU"]
            },
            "CP": {cp: ports[cp] for cp in wanted["CP"]},
        }
        return parameters

    @staticmethod
    def scale(
        base_hot_dict=None,
        vnfd_dict=None,
        scale_vnf_request=None,
        vnf_instance=None,
        inst_vnf_info=None,
        param=None,
        vnf_capacity=None,
    ):
        """Say the group's size where Tacker updates the stack to scale.

        It does so to roll a scale-out back. Without this it would hand in the size of
        the instantiation, and Heat would delete workers that no request named.

        :param param: the parameters that the stack has.
        :param vnf_capacity: members that the group has afterwards.
        """
        capacity = f"{scale_vnf_request.aspect_id}_desired_capacity"
        return {**param, capacity: vnf_capacity} if capacity in param else param


def _nfv_paths(value):
    """Yield kind and name of each ``get_param: [nfv, VDU or CP, NAME, ...]``.

    Tacker's own function (``create_initial_param_server_port_dict``) passes over the
    members of a ResourceGroup, which the control planes are.
    """
    if isinstance(value, list):
        for item in value:
            yield from _nfv_paths(item)
    elif isinstance(value, dict):
        path = value.get("get_param")
        if isinstance(path, list) and len(path) == 4 and path[0] == "nfv":
            yield path[1], path[2]
        for item in value.values():
            yield from _nfv_paths(item)


def _absent(text, names, given):
    return [text.format(name) for name in sorted(names) if not given.get(name)]


def _singles(top, given, flavors, images, ports):
    """Values that are parameters of their own: the request's, the template's, or, where
    it has no default, that of all VDUs or connection points."""
    values = {
        "flavor": set(flavors.values()),
        "image": set(images.values()),
        "public_network": {port["network"] for port in ports.values()},
    }
    singles = {}
    for name in values.keys() & top["parameters"].keys():
        common = values[name].pop() if len(values[name]) == 1 else None
        default = top["parameters"][name].get("default", common)
        singles[name] = given.get(name) or default
    return {name: value for name, value in singles.items() if value}


def _ungiven(top, given):
    return [
        f"additionalParams has no {name}, which the Base HOT requires"
        for name, schema in top["parameters"].items()
        if name != "nfv" and "default" not in schema and not given.get(name)
    ]


def _unkept(given):
    """What later operations would get otherwise: Tacker stores the parameters as Python
    writes them, and reads that as YAML."""
    for name, value in sorted(given.items()):
        try:
            kept = yaml.safe_load(str([value])) == [value]
        except yaml.YAMLError:
            kept = False
        if not kept:
            yield (
                f"additionalParams.{name} has lines or quotes that Tacker does not "
                "keep; make it the default in the package"
            )


def _external_ports(request):
    """What the request says about each external connection point.

    ``ipOverEthernet`` may be absent, which leaves the choice of addresses to the VIM.
    """
    ports = {}
    for link in request.ext_virtual_links or []:
        for cp in link.ext_cps:
            addresses = [
                address
                for config in cp.cp_config
                for protocol in config.cp_protocol_data
                if protocol.ip_over_ethernet
                for address in protocol.ip_over_ethernet.ip_addresses or []
            ]
            ports[cp.cpd_id] = {
                "network": link.resource_id,
                "fixed_ips": [
                    fixed for address in addresses for fixed in _fixed_ips(address)
                ],
            }
    return ports


def _fixed_ips(address):
    """The ``fixed_ips`` of a port for one entry of ``ipAddresses``."""
    subnet = {"subnet": address.subnet_id} if address.subnet_id else {}
    fixed = [{"ip_address": ip, **subnet} for ip in address.fixed_addresses or []]
    return fixed or ([subnet] if subnet else [])


def _shared_addresses(ports, top):
    """Fixed addresses that several members of a scaling group would have to share."""
    return [
        f"{cp} cannot have the fixed address {fixed['ip_address']}, "
        "because the VMs of a scaling group would all get it"
        for cp, port in ports.items()
        if cp not in top["resources"]
        for fixed in port["fixed_ips"]
        if "ip_address" in fixed
    ]
