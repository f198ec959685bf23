"""A VNF package and a request as they are made for Tacker's sample driver.

Written for these tests. Names, keys and structure are those of the package in
``samples/mgmt_driver/kubernetes/kubespray`` of Tacker's tree and of the request in its
user guide: floating IPs before the only port of each VM, a scaling aspect for the
control plane, sizes that the Base HOT fixes, inputs without defaults, no security
groups, and requirements without occurrences.
"""

from pathlib import Path
from typing import Any

import yaml

from tacker_k8s_mgmt.csar import sources

DESCRIPTOR = "b1db0ce7-ebca-1fb7-95ed-4840d70a1163"
TYPES = "Definitions/sample_kubernetes_types.yaml"
SCRIPT = "Scripts/install_external_lb.sh"
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


def body() -> dict[str, Any]:
    """The request that the guide has, with another site's values."""
    login = {"username": "ubuntu", "password": "ubuntu"}
    installation = {
        "vim_name": "kubernetes_vim",
        "master_node": {
            "aspect_id": "master_instance",
            "ssh_cp_name": "masterNode_FloatingIP",
            "nic_cp_name": "masterNode_CP1",
            **login,
            "pod_cidr": "192.168.0.0/16",
            "cluster_cidr": "10.199.187.0/24",
        },
        "worker_node": {
            "aspect_id": "worker_instance",
            "ssh_cp_name": "workerNode_FloatingIP",
            "nic_cp_name": "workerNode_CP2",
            **login,
        },
        "proxy": {
            "http_proxy": "http://user1:password1@192.0.2.1:3128",
            "https_proxy": "https://user2:password2@192.0.2.2:3128",
        },
        "ansible": {
            "ip_address": "10.10.0.50",
            **login,
            "kubespray_root_path": "/home/ubuntu/kubespray",
            "transferring_inventory_path": "/home/ubuntu/kubespray/inventory/one",
        },
        "external_lb_param": {
            "ssh_cp_name": "externalLB_FloatingIP",
            "ssh_username": "ubuntu",
            "ssh_password": "ubuntu",
            "script_path": SCRIPT,
        },
    }
    return {
        "flavourId": "simple",
        "vimConnectionInfo": [
            {
                "id": "daa80cf2-9b73-4806-8176-56cd6fab8cea",
                "vimId": "c3369b54-e376-4423-bb61-afd255900fea",
                "vimType": "openstack",
            }
        ],
        "additionalParams": {
            "k8s_cluster_installation_param": installation,
            "lcm-operation-user-data": "./UserData/lcm_user_data.py",
            "lcm-operation-user-data-class": "SampleUserData",
        },
        "extVirtualLinks": [
            {
                "id": f"link-{cp}",
                "resourceId": "1642ac54-642c-407c-9c7d-e94c55ba5d33",
                "extCps": [{"cpdId": cp, "cpConfig": [{"linkPortId": f"link-{cp}"}]}],
            }
            for cp, _, _ in VDUS.values()
        ],
    }


def write(root: Path, occurrences: bool = True) -> Path:
    """Write the package's files as they are before they are zipped.

    :param occurrences: whether requirements state them, as the parser requires.
    """
    documents = {
        "Definitions/sample_kubernetes_top.vnfd.yaml": _top(),
        "Definitions/sample_kubernetes_df_simple.yaml": _flavour(),
        TYPES: _types(occurrences),
        "BaseHOT/simple/base_hot_top.yaml": _hot(),
        "BaseHOT/simple/nested/base_hot_nested_master.yaml": _member("masterNode"),
        "BaseHOT/simple/nested/base_hot_nested_worker.yaml": _member("workerNode"),
    }
    texts = {
        "TOSCA-Metadata/TOSCA.meta": "TOSCA-Meta-File-Version: 1.0\n"
        "Created-by: somebody\nCSAR-Version: 1.1\n"
        "Entry-Definitions: Definitions/sample_kubernetes_top.vnfd.yaml\n",
        SCRIPT: "#!/bin/bash\n# -m and -w: addresses of masters and workers\n",
        "Scripts/kubespray_mgmt.py": "class KubesprayMgmtDriver:\n    pass\n",
        "UserData/__init__.py": "",
        "UserData/lcm_user_data.py": _user_data(),
    }
    texts |= {name: yaml.safe_dump(one) for name, one in documents.items()}
    for name, text in texts.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return root


def _user_data() -> str:
    """As ours, under the sample's name and without the method ``scale``."""
    path = sources.samples() / "vnfd/simple/UserData/k8s_cluster_user_data.py"
    text = path.read_text().replace("KubernetesClusterUserData", "SampleUserData")
    begin, end = (
        text.index("    @staticmethod\n    def scale("),
        text.index("def _absent"),
    )
    return f"{text[:begin].rstrip()}\n\n\n{text[end:]}"


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
    found: list[dict[str, Any]] = [
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
            found.append(_policy(f"{vdu}_{name}", policy + kind, properties, vdu))
    return found


def _policy(
    name: str, kind: str, properties: dict[str, Any], *targets: str
) -> dict[str, Any]:
    one: dict[str, Any] = {"type": kind, "properties": properties}
    return {name: {**one, "targets": list(targets)} if targets else one}


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
        given = {
            "flavor": {"get_param": ["nfv", "VDU", vdu, "flavor"]},
            "image": {"get_param": ["nfv", "VDU", vdu, "image"]},
            "net1": {"get_param": ["nfv", "CP", cp, "network"]},
        }
        member = {"type": f"base_hot_nested_{short}.yaml", "properties": given}
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
