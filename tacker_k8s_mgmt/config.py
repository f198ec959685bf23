# SPDX-License-Identifier: Apache-2.0
"""Options of the driver: the group ``[k8s_mgmt]`` of ``tacker.conf``.

Every remote call and every wait takes its limit from here. All limits are seconds.
"""

from oslo_config import cfg

GROUP = "k8s_mgmt"
KEY_DIRECTORY = "/etc/tacker/k8s-mgmt/keys"
SECRET_DIRECTORY = "/etc/tacker/k8s-mgmt/secrets"  # noqa: S105

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
)


def register(conf: cfg.ConfigOpts) -> None:
    """Make the options known to *conf*; calling it again is harmless."""
    conf.register_opts(OPTIONS, group=GROUP)


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
