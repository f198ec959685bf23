# SPDX-License-Identifier: Apache-2.0
"""The VNFD of the package that is made for Tacker's sample driver."""

from typing import Any

DESCRIPTOR = "b1db0ce7-ebca-1fb7-95ed-4840d70a1163"
TYPES = "Definitions/sample_kubernetes_types.yaml"
VDUS = {
    "masterNode": ("masterNode_CP1", 1, 3),
    "workerNode": ("workerNode_CP2", 2, 4),
    "externalLB": ("externalLB_CP3", 1, 1),
}
GROUPS = {"master_instance": "masterNode", "worker_instance": "workerNode"}
LEVELS = {"instantiation_level_1": 0, "instantiation_level_2": 2}
HOOKS = (
    *("instantiate_end", "terminate_end", "scale_start", "scale_end"),
    *("heal_start", "heal_end"),
)
IDENTITY = {
    "descriptor_id": DESCRIPTOR,
    "descriptor_version": "1.0",
    "provider": "Company",
    "product_name": "Sample VNF",
    "software_version": "1.0",
}
ETSI = ("etsi_nfv_sol001_common_types.yaml", "etsi_nfv_sol001_vnfd_types.yaml")
TOSCA = "tosca_simple_yaml_1_2"


def documents(occurrences: bool) -> dict[str, Any]:
    """Its files by name.

    :param occurrences: whether requirements state them, as the parser requires.
    """
    return {
        "Definitions/sample_kubernetes_top.vnfd.yaml": _top(),
        "Definitions/sample_kubernetes_df_simple.yaml": _flavour(),
        TYPES: _types(occurrences),
    }


def _top() -> dict[str, Any]:
    properties = {"flavour_id": {"get_input": "selected_flavour"}, **IDENTITY}
    vnf = {
        "type": "company.provider.VNF",
        "properties": {**properties, "vnfm_info": ["Tacker"]},
    }
    imports = ["sample_kubernetes_types.yaml", "sample_kubernetes_df_simple.yaml"]
    return {
        "tosca_definitions_version": TOSCA,
        "imports": [*ETSI, *imports],
        "topology_template": {
            "inputs": {"selected_flavour": {"type": "string"}},
            "node_templates": {"VNF": vnf},
        },
    }


def _types(occurrences: bool) -> dict[str, Any]:
    properties: dict[str, Any] = {
        "id": {"type": "string", "default": "vnf_id"},
        "vendor": {"type": "string", "default": "vendor"},
        "version": {"type": "version", "default": 1.0},
        "vnfm_info": {
            "type": "list",
            "entry_schema": {"type": "string"},
            "default": ["Tacker"],
        },
        "flavour_id": {"type": "string", "default": "simple"},
        "flavour_description": {"type": "string", "default": "none"},
    }
    for name, value in IDENTITY.items():
        properties[name] = {"type": "string", "default": value}
    link: dict[str, Any] = {"capability": "tosca.capabilities.nfv.VirtualLinkable"}
    if occurrences:
        link["occurrences"] = [0, 1]
    vnf = {
        "derived_from": "tosca.nodes.nfv.VNF",
        "properties": properties,
        "requirements": [{"virtual_link_internal": link}],
        "interfaces": {"Vnflcm": {"type": "tosca.interfaces.nfv.Vnflcm"}},
    }
    return {
        "tosca_definitions_version": TOSCA,
        "imports": list(ETSI),
        "node_types": {"company.provider.VNF": vnf},
    }


def _flavour() -> dict[str, Any]:
    kinds = {"version": "version", "vnfm_info": "list"}
    names = ("id", "vendor", "version", *IDENTITY, "flavour_id", "flavour_description")
    inputs: dict[str, Any] = {
        name: {"type": kinds.get(name, "string")} for name in names
    }
    inputs["vnfm_info"] = {"type": "list", "entry_schema": {"type": "string"}}
    driver = "mgmt-drivers-kubespray"
    vnf = {
        "type": "company.provider.VNF",
        "properties": {"flavour_description": "A simple flavour"},
        "interfaces": {"Vnflcm": {hook: {"implementation": driver} for hook in HOOKS}},
        "artifacts": {
            driver: {
                "type": "tosca.artifacts.Implementation.Python",
                "file": "Scripts/kubespray_mgmt.py",
            }
        },
    }
    nodes: dict[str, Any] = {"VNF": vnf}
    for vdu, (cp, least, most) in VDUS.items():
        nodes[vdu] = _vdu(vdu, least, most)
        nodes[cp] = {
            "type": "tosca.nodes.nfv.VduCp",
            "properties": {"layer_protocols": ["ipv4"], "order": 0},
            "requirements": [{"virtual_binding": vdu}],
        }
    return {
        "tosca_definitions_version": TOSCA,
        "imports": [*ETSI, "sample_kubernetes_types.yaml"],
        "topology_template": {
            "inputs": inputs,
            "substitution_mappings": {
                "node_type": "company.provider.VNF",
                "properties": {"flavour_id": "simple"},
                "requirements": {
                    f"virtual_link_external1_{number}": [cp, "virtual_link"]
                    for number, (cp, _, _) in enumerate(VDUS.values(), 1)
                },
            },
            "node_templates": nodes,
            "policies": _policies(),
        },
    }


def _vdu(name: str, least: int, most: int) -> dict[str, Any]:
    wanted = {
        "requested_additional_capability_name": "ds2G",
        "support_mandatory": True,
        "target_performance_parameters": {"entry_schema": "test"},
    }
    return {
        "type": "tosca.nodes.nfv.Vdu.Compute",
        "properties": {
            "name": name,
            "description": name,
            "vdu_profile": {
                "min_number_of_instances": least,
                "max_number_of_instances": most,
            },
            "sw_image_data": {
                "name": "ubuntu-22.04",
                "version": "22.04",
                "checksum": {"algorithm": "sha-512", "hash": "0" * 128},
                "container_format": "bare",
                "disk_format": "qcow2",
                "min_disk": "0 GB",
                "size": "2 GB",
            },
        },
        "capabilities": {
            "virtual_compute": {
                "properties": {
                    "requested_additional_capabilities": {"properties": wanted},
                    "virtual_memory": {"virtual_mem_size": "2 GB"},
                    "virtual_cpu": {"num_virtual_cpu": 2},
                    "virtual_local_storage": [{"size_of_storage": "10 GB"}],
                }
            }
        },
    }


def _policies() -> list[dict[str, Any]]:
    policy = "tosca.policies.nfv."
    scaled = {
        group: {
            "name": group,
            "description": group,
            "max_scale_level": 2,
            "step_deltas": ["delta_1"],
        }
        for group in GROUPS
    }
    levels = {
        level: {
            "description": level,
            "scale_info": {group: {"scale_level": height} for group in GROUPS},
        }
        for level, height in LEVELS.items()
    }
    policies: list[dict[str, Any]] = [
        _policy("scaling_aspects", policy + "ScalingAspects", {"aspects": scaled}),
        _policy(
            "instantiation_levels",
            policy + "InstantiationLevels",
            {"levels": levels, "default_level": "instantiation_level_1"},
        ),
    ]
    for group, vdu in GROUPS.items():
        first = VDUS[vdu][1]
        for name, kind, properties in (
            (
                "initial_delta",
                "VduInitialDelta",
                {"initial_delta": {"number_of_instances": first}},
            ),
            (
                "scaling_aspect_deltas",
                "VduScalingAspectDeltas",
                {"aspect": group, "deltas": {"delta_1": {"number_of_instances": 1}}},
            ),
            (
                "instantiation_levels",
                "VduInstantiationLevels",
                {
                    "levels": {
                        level: {"number_of_instances": first + height}
                        for level, height in LEVELS.items()
                    }
                },
            ),
        ):
            policies.append(_policy(f"{vdu}_{name}", policy + kind, properties, vdu))
    return policies


def _policy(
    name: str, kind: str, properties: dict[str, Any], *targets: str
) -> dict[str, Any]:
    value: dict[str, Any] = {"type": kind, "properties": properties}
    return {name: {**value, "targets": list(targets)} if targets else value}
