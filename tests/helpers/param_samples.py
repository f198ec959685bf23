# SPDX-License-Identifier: Apache-2.0
"""Parameters that are right, wrong or missing."""

from typing import Any

# The body in the specification's section "Request parameters for operation".
SPECIFICATION: dict[str, Any] = {
    "script_path": "",
    "vim_name": "kubernetes_vim",
    "ansible": {
        "ip_address": "0.0.0.0",
        "username": "ansible",
        "password": "ansible",
        "kubespray_root_path": "",
        "transferring_inventory_path": "",
    },
    "master_node": {
        "aspect_id": "master_instance",
        "ssh_cp_name": "masterNode_CP1",
        "nic_cp_name": "masterNode_CP1",
        "username": "ubuntu",
        "password": "ubuntu",
        "pod_cidr": "192.168.3.0/16",
        "cluster_cidr": "10.199.187.0/24",
        "cluster_cp_name": "masterNode_CP1",
    },
    "worker_node": {
        "aspect_id": "worker_instance",
        "ssh_cp_name": "workerNode_CP2",
        "nic_cp_name": "workerNode_CP2",
        "username": "ubuntu",
        "password": "ubuntu",
    },
    "proxy": {
        "http_proxy": "http://user1:password1@host1:port1",
        "https_proxy": "https://user2:password2@host2:port2",
        "no_proxy": "192.168.246.0/24,10.0.0.1",
        "k8s_node_cidr": "10.10.0.0/24",
    },
    "external_lb_param": {
        "ssh_cp_name": "externalLB_instance",
        "ssh_username": "ubuntu",
        "ssh_password": "ubuntu",
        "script_path": "./Scripts/ExternalLB_installation.sh",
    },
}
MISSING = [
    *("ansible", "master_node", "worker_node"),
    *("ansible.ip_address", "ansible.username", "ansible.kubespray_root_path"),
    "ansible.transferring_inventory_path",
    *("master_node.ssh_cp_name", "master_node.username"),
    *("worker_node.ssh_cp_name", "worker_node.username"),
    *("external_lb_param.ssh_cp_name", "external_lb_param.ssh_username"),
    "external_lb_param.script_path",
]
DIRECTORY = "ansible.transferring_inventory_path"
ABSOLUTE = "must be an absolute path (it starts with /)"
HOST = "must be an IP address or a host name"
NETWORK = "must be a network such as 10.233.64.0/18"
SHARED = (
    "must be a directory of this cluster's own, which is deleted with it, such as "
    "/home/<user>/clusters/<name>; this one is shared"
)
SYSTEM = "must not be below a directory of the operating system"
PROXY = "must be an http:// or https:// URL with a host"
ENCODE = "must have blanks and { } / ? # percent-encoded"
PORT = "must be from 1 to 65535"
WRONG = [
    ("ansible", "text", "must be a structure with attributes"),
    (
        "ansible.ip_address",
        "10.0.0.0/8",
        "must be one address or host name, not a network",
    ),
    ("ansible.ip_address", "300.1.1.1", HOST),
    ("ansible.ip_address", "-a.example", HOST),
    ("ansible.ip_address", "under_score", HOST),
    ("ansible.ip_address", "a" * 64, HOST),
    ("ansible.ip_address", "a.b" * 90, HOST),
    ("ansible.ip_address", "", "must not be empty"),
    ("ansible.ip_address", ["10.0.0.1"], "must be text"),
    (
        "ansible.ip_address",
        "::",
        "must be the address of a host; this one is a placeholder",
    ),
    ("ansible.port", 0, PORT),
    ("ansible.port", 65536, PORT),
    ("ansible.port", True, "must be a whole number"),
    ("ansible.username", "", "must not be empty"),
    ("ansible.password", 12345, "must be text"),
    ("ansible.forks", 0, "must be from 1 to 200"),
    ("ansible.forks", 201, "must be from 1 to 200"),
    ("ansible.forks", "20", "must be a whole number"),
    ("ansible.allow_unknown_release", "true", "must be true or false"),
    (
        "ansible.strategy",
        "free",
        "must be 'configured', 'auto', 'linear', 'k8s_linear' or 'mitogen_linear'",
    ),
    ("ansible.resolve_downloads", 1, "must be true or false"),
    ("address_family", "ipv5", "must be 'ipv4' or 'ipv6'"),
    ("address_family", ["ipv4"], "must be 'ipv4' or 'ipv6'"),
    ("drain", "fast", "must be a structure with attributes"),
    ("drain.timeout", 0, "must be from 1 to 86400"),
    ("drain.timeout", "300", "must be a whole number"),
    ("drain.grace_period", -2, "must be from -1 to 86400"),
    ("drain.on_failure", "ignore", "must be 'abort' or 'force'"),
    ("drain.delete_emptydir_data", 1, "must be true or false"),
    ("drain.disable_eviction", "no", "must be true or false"),
    ("drain.parallel", 0, "must be from 1 to 100"),
    ("ansible.password", "two\nlines", "must not contain control characters"),
    ("ansible.password", "half \ud800", "must not contain control characters"),
    ("ansible.kubespray_root_path", "kubespray", ABSOLUTE),
    ("ansible.kubespray_root_path", "/opt/../etc", "must not contain '..'"),
    ("ansible.venv_path", "~/venv", ABSOLUTE),
    (DIRECTORY, "inventory/mycluster", ABSOLUTE),
    *(
        (DIRECTORY, path, SHARED)
        for path in (
            *("/home", "/home/ansible", "/home/ansible/", "/root", "/tmp"),
            *("/var/lib", "/clusters"),
        )
    ),
    *(
        (DIRECTORY, path, SYSTEM)
        for path in (
            *("/etc", "/etc/ansible/x", "/usr/local/clusters", "//etc/x"),
            "/dev/shm/x",
        )
    ),
    *(
        (
            DIRECTORY,
            f"/srv/clusters/o{character}e",
            "must not contain colon, percent or dollar sign, or quotes",
        )
        for character in ":%$\"'"
    ),
    (
        DIRECTORY,
        "/opt/kubespray",
        "is deleted with the cluster, so ansible.kubespray_root_path must not be in it",
    ),
    ("ansible.venv_path", "/home/ansible/clusters/simple/venv", None),
    ("master_node.pod_cidr", "10.0.0.1", NETWORK),
    ("master_node.pod_cidr", "10.0.0.0/33", NETWORK),
    ("master_node.cluster_cidr", 10, NETWORK),
    (
        "master_node.cluster_cidr",
        "fd00::/108",
        "must be of the family that address_family names, ipv4",
    ),
    ("worker_node.ssh_cp_name", "", "must not be empty"),
    ("worker_node.ssh_cp_name", "x" * 256, "must have 1 to 255 characters"),
    ("vim_name", "", "must not be empty"),
    ("vim_name", "x" * 256, "must have 1 to 255 characters"),
    ("proxy.http_proxy", "proxy:3128", PROXY),
    ("proxy.http_proxy", "ftp://proxy", PROXY),
    ("proxy.https_proxy", "http://[::1", PROXY),
    ("proxy.https_proxy", "http://u:{{p}}@proxy", ENCODE),
    *(
        ("proxy.http_proxy", f"http://user:pa{character}ss@proxy:3128", ENCODE)
        for character in "/?# "
    ),
    ("proxy.no_proxy", ["a"], "must be text: names and addresses with commas between"),
    ("proxy.k8s_node_cidr", "10.10.0.0", NETWORK),
    (
        "external_lb_param.script_path",
        "/etc/shadow",
        "must be relative to the top of the VNF package",
    ),
    *(
        (
            "external_lb_param.script_path",
            path,
            "must name a file inside the VNF package",
        )
        for path in ("../x.sh", "Scripts/../../x.sh", ".", "./", "a/..")
    ),
    ("external_lb_param.api_port", 6443.5, "must be a whole number"),
    ("kubespray_vars", ["x"], "must be a structure with attributes"),
]
