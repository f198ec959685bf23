# SPDX-License-Identifier: Apache-2.0
"""The Base HOT of the package that is made for Tacker's sample driver."""

from typing import Any

from tests.helpers.sampledriver_vnfd import GROUPS, VDUS


def documents() -> dict[str, Any]:
    """Its files by name."""
    return {
        "BaseHOT/simple/base_hot_top.yaml": _hot(),
        "BaseHOT/simple/nested/base_hot_nested_master.yaml": _member("masterNode"),
        "BaseHOT/simple/nested/base_hot_nested_worker.yaml": _member("workerNode"),
    }


def _hot() -> dict[str, Any]:
    resources = _machine(
        "externalLB", "externalLB_CP3", ["nfv", "CP", "externalLB_CP3"]
    )
    server = resources["externalLB"]["properties"]
    for key in ("flavor", "image"):
        server[key] = {"get_param": ["nfv", "VDU", "externalLB", key]}
    for group, vdu in GROUPS.items():
        cp, least, most = VDUS[vdu]
        short = vdu.removesuffix("Node")
        properties = {
            "flavor": {"get_param": ["nfv", "VDU", vdu, "flavor"]},
            "image": {"get_param": ["nfv", "VDU", vdu, "image"]},
            "net1": {"get_param": ["nfv", "CP", cp, "network"]},
        }
        member = {"type": f"base_hot_nested_{short}.yaml", "properties": properties}
        resources[group] = {
            "type": "OS::Heat::AutoScalingGroup",
            "properties": {
                "min_size": least,
                "max_size": most,
                "desired_capacity": least,
                "resource": member,
            },
        }
        for way, step in (("out", 1), ("in", -1)):
            resources[f"{group}_scale_{way}"] = {
                "type": "OS::Heat::ScalingPolicy",
                "properties": {
                    "scaling_adjustment": step,
                    "auto_scaling_group_id": {"get_resource": group},
                    "adjustment_type": "change_in_capacity",
                },
            }
    return {
        "heat_template_version": "2013-05-23",
        "parameters": {"nfv": {"type": "json"}},
        "resources": resources,
        "outputs": {},
    }


def _member(vdu: str) -> dict[str, Any]:
    return {
        "heat_template_version": "2013-05-23",
        "parameters": {
            name: {"type": "string"} for name in ("flavor", "image", "net1")
        },
        "resources": _machine(vdu, VDUS[vdu][0], None),
    }


def _machine(vdu: str, cp: str, network: list[str] | None) -> dict[str, Any]:
    """A VM, its only port, and a floating IP before that."""
    outside = {"get_param": [*network, "network"] if network else "net1"}
    return {
        vdu: {
            "type": "OS::Nova::Server",
            "properties": {
                "flavor": {"get_param": "flavor"},
                "image": {"get_param": "image"},
                "name": vdu,
                "networks": [{"port": {"get_resource": cp}}],
            },
        },
        cp: {"type": "OS::Neutron::Port", "properties": {"network": outside}},
        f"{vdu}_FloatingIP": {
            "type": "OS::Neutron::FloatingIP",
            "properties": {
                "floating_network": "public",
                "port_id": {"get_resource": cp},
            },
        },
    }
