# SPDX-License-Identifier: Apache-2.0
"""Options of the driver: the group ``[k8s_mgmt]`` of ``tacker.conf``.

Every remote call and every wait takes its limit from here. All limits are seconds.
"""

import os
from collections.abc import Sequence
from dataclasses import dataclass, fields
from typing import Any

from oslo_config import cfg

GROUP = "k8s_mgmt"
#: Environment variable with the paths of configuration files, joined with ``:``.
VARIABLE = "TACKER_K8S_MGMT_CONFIG"
KEY_DIRECTORY = "/etc/tacker/k8s-mgmt/keys"
SECRET_DIRECTORY = "/etc/tacker/k8s-mgmt/secrets"  # noqa: S105
#: Variables that no task of kubespray uses on the Ansible server itself.
ANSIBLE_VARIABLES = (
    *("allow_unsupported_distribution_setup", "flannel_interface", "gvisor_enabled"),
    *("kata_containers_enabled", "kube_proxy_mode", "kubelet_max_pods"),
    *("minimal_master_memory_mb", "minimal_node_memory_mb", "ping_access_ip"),
    "retry_stagger",
)

OPTIONS: tuple[cfg.Opt, ...] = (
    cfg.StrOpt(
        "state_path",
        help="Directory for journals and for the host keys of Ansible servers. "
        "Default: k8s_mgmt below Tacker's own state_path.",
    ),
    cfg.StrOpt(
        "key_directory",
        default=KEY_DIRECTORY,
        help="Directory below which SSH private keys may lie that requests name by "
        "their path. Any user who may send requests can use every key in it, and have "
        "one for VMs copied to an Ansible server of their choice; {project_id} stands "
        "for the id of the VNF's project and so keeps projects apart. Empty: no "
        "request may name a file.",
    ),
    cfg.StrOpt(
        "secret_directory",
        default=SECRET_DIRECTORY,
        help="Directory below which secrets may lie that requests name in place of "
        "passwords. Any user who may send requests can have each of them sent to a "
        "host of their choice, which is why keys have another directory; {project_id} "
        "stands for the id of the VNF's project. Empty: no request may name a file.",
    ),
    cfg.FloatOpt(
        "secret_timeout",
        default=30,
        min=1,
        help="Limit for a response of Keystone or Barbican about a secret.",
    ),
    cfg.FloatOpt(
        "connect_timeout",
        default=30,
        min=1,
        help="Limit for an SSH connection to a host that is expected to be up.",
    ),
    cfg.FloatOpt(
        "boot_timeout",
        default=600,
        min=1,
        help="Limit for all new VMs to accept SSH logins.",
    ),
    cfg.FloatOpt(
        "login_timeout",
        default=60,
        min=0,
        help="Limit for a new VM that refuses the SSH login: cloud-init may install it "
        "after the SSH server has started.",
    ),
    cfg.FloatOpt(
        "load_balancer_timeout",
        default=900,
        min=1,
        help="Limit for the load balancer's script, which may install packages.",
    ),
    cfg.FloatOpt(
        "playbook_base_timeout",
        default=7200,
        min=1,
        help="Limit for a playbook run, whatever the number of nodes.",
    ),
    cfg.FloatOpt(
        "playbook_node_timeout",
        default=900,
        min=0,
        help="What each node adds to playbook_base_timeout.",
    ),
    cfg.FloatOpt(
        "playbook_idle_timeout",
        default=2700,
        min=1,
        help="Limit for a playbook run that reports no new task.",
    ),
    cfg.FloatOpt(
        "poll_interval",
        default=5,
        min=0.2,
        help="Pause between two looks at something that is under way.",
    ),
    cfg.FloatOpt(
        "ready_timeout",
        default=600,
        min=1,
        help="Limit for all nodes to become Ready after the playbook has ended.",
    ),
    cfg.FloatOpt(
        "api_timeout",
        default=60,
        min=0,
        help="Limit for an API server that refuses connections or answers with an "
        "internal error, as one does for half a minute while it restarts. 0: such an "
        "answer is a failure at once.",
    ),
    cfg.FloatOpt(
        "pod_network_timeout",
        default=60,
        min=1,
        help="Limit for the pod network to carry packets from and to a new node.",
    ),
    cfg.IntOpt(
        "journal_keep",
        default=50,
        min=1,
        help="How many operations of a VNF instance its journal keeps.",
    ),
    cfg.StrOpt(
        "metrics_directory",
        default="",
        help="Directory of node exporter's textfile collector, in which the end of "
        "each hook writes tacker_k8s_mgmt.prom; the conductor's user must be able to "
        "write there. Empty: no metrics are written.",
    ),
    cfg.StrOpt(
        "ansible_host",
        default="",
        help="Address or name of the Ansible server for requests without ansible. All "
        "users who may send requests then have playbooks run there, under an account "
        "that should be for nothing else. Empty: each request names its own server.",
    ),
    cfg.PortOpt(
        "ansible_port", default=22, min=1, help="SSH port of that Ansible server."
    ),
    cfg.StrOpt(
        "ansible_host_key",
        default="",
        help="SSH host key of that Ansible server, its public key or the fingerprint; "
        "needed with ansible_host.",
    ),
    cfg.StrOpt(
        "ansible_username", default="", help="User name on that Ansible server."
    ),
    cfg.StrOpt(
        "ansible_private_key_file",
        default="",
        help="Path of a file with that user's SSH private key, outside of "
        "key_directory and secret_directory, whose files requests may name.",
    ),
    cfg.StrOpt(
        "ansible_private_key_passphrase_file",
        default="",
        help="Path of a file with the passphrase of that key, outside of the same.",
    ),
    cfg.StrOpt(
        "ansible_password_file",
        default="",
        help="Path of a file with that user's password, outside of the same. Not "
        "needed with a private key.",
    ),
    cfg.StrOpt(
        "ansible_kubespray_root_path",
        default="",
        help="Absolute path of the kubespray checkout on that Ansible server.",
    ),
    cfg.StrOpt(
        "ansible_venv_path",
        default="",
        help="Absolute path of the virtual environment with ansible-core on that "
        "Ansible server. Empty: the one on the user's PATH.",
    ),
    cfg.StrOpt(
        "ansible_inventory_root",
        default="",
        help="Absolute path of a directory on that Ansible server. Each cluster has "
        "its directory below it, by the id of the VNF instance.",
    ),
    cfg.IntOpt(
        "ansible_forks",
        min=1,
        max=200,
        help="How many hosts Ansible works on at the same time for each cluster of "
        "that Ansible server. Default: as without the request's ansible.forks.",
    ),
    cfg.StrOpt(
        "ansible_strategy",
        default="configured",
        choices=("configured", "auto", "linear", "k8s_linear", "mitogen_linear"),
        help="Strategy of playbook runs on that Ansible server, as the request's "
        "ansible.strategy.",
    ),
    cfg.BoolOpt(
        "ansible_resolve_downloads",
        default=True,
        help="Whether kubespray's list of downloads is evaluated once in a run there, "
        "as the request's ansible.resolve_downloads.",
    ),
    cfg.ListOpt(
        "ansible_variables",
        default=list(ANSIBLE_VARIABLES),
        help="The variables that kubespray_vars may have with that Ansible server. "
        "Others could have kubespray run programs, or read and write files, under the "
        "operator's account.",
    ),
)


@dataclass(frozen=True)
class Limits:
    """The options that operations on a cluster wait by, under the options' names.

    :param ready_timeout: seconds for nodes to become Ready.
    :param poll_interval: seconds, the longest pause between two probes.
    """

    ready_timeout: float
    poll_interval: float

    @classmethod
    def of(cls, options: Any) -> "Limits":
        """Those of the group of options."""
        return cls(**{one.name: getattr(options, one.name) for one in fields(cls)})


def register(conf: cfg.ConfigOpts) -> None:
    """Make the options known to *conf*; calling it again is harmless."""
    conf.register_opts(OPTIONS, group=GROUP)


def files_of_environment() -> list[str]:
    """The configuration files that :data:`VARIABLE` names; none where it is not set."""
    return [path for path in os.environ.get(VARIABLE, "").split(":") if path]


def read(conf: cfg.ConfigOpts, files: Sequence[str] = ()) -> None:
    """Read Tacker's configuration.

    :param files: its files; none: those of :data:`VARIABLE`, else those that the
        conductor finds by itself.
    :raises cfg.Error: a file cannot be read or understood.
    """
    named = files_of_environment()
    conf(
        args=[word for file in files for word in ("--config-file", file)],
        project="tacker",
        prog="tacker-conductor",
        default_config_files=named or None,
        default_config_dirs=[] if named else None,
    )


def list_opts() -> list[tuple[str, tuple[cfg.Opt, ...]]]:
    """The options for ``oslo-config-generator``."""
    return [(GROUP, OPTIONS)]


def project_directory(directory: str | None, project_id: str) -> str:
    """Where the keys or secrets of a project's requests may lie; "" for nowhere.

    :param directory: the option ``key_directory`` or ``secret_directory``.
    """
    if "{project_id}" in (directory or "") and not project_id:
        # An unknown project must not get the directory of another one.
        return ""
    return (directory or "").replace("{project_id}", project_id)


def state_path(conf: cfg.ConfigOpts) -> str:
    """The driver's state directory: the option, or ``k8s_mgmt`` below Tacker's."""
    own = conf[GROUP].state_path
    if own:
        return str(own)
    return f"{getattr(conf, 'state_path', None) or '/var/lib/tacker'}/k8s_mgmt"
