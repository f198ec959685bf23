# SPDX-License-Identifier: Apache-2.0
"""What each reader of texts of others is given: a valid text, and how it is read."""

from collections.abc import Mapping

from tests.helpers.untrusted.clusters import CLUSTER
from tests.helpers.untrusted.fed import Fed, is_ours
from tests.helpers.untrusted.hosts import HOST
from tests.helpers.untrusted.texts import TEXTS

__all__ = ["FED", "TRUSTED", "Fed", "is_ours"]

FED: Mapping[str, Fed] = {**CLUSTER, **TEXTS, **HOST}
_OPERATOR = "what the operator of the command writes on its own line or answers it"
_ARGPARSE = f"{_OPERATOR}; argparse reports the ValueError"
_CLOUD = "the operator's cloud, which is trusted, and whose answers openstacksdk reads"
_PACKAGE = (
    "csar check, whose process may end in any way: "
    "unit/csar/test_sandbox.py::test_what_may_not"
)
_TACKER = "what Tacker itself has written into its database or its standard input"
_OURS = "a value of a checked request, or one that is calculated here"
_WRITTEN = "variables that are rendered here just before"
_NOT_HERE = "not without Tacker, which unit tests do not import: "
#: The readers that are not fed, and why.
TRUSTED: Mapping[str, str] = {
    "cli.__init__.main": _OURS,
    "cli.commands.cluster_kubeconfig._seconds": _ARGPARSE,
    "cli.commands.request_init._value": _OPERATOR,
    "cli.common.seconds": _ARGPARSE,
    "cli.common.count": _ARGPARSE,
    "cloud.client.Cloud.compute_quotas": _CLOUD,
    "cloud.client.Cloud.network_quotas": _CLOUD,
    "cloud.client.Cloud.volume_quotas": _CLOUD,
    "cloud.interview.Interview._parameters": _OPERATOR,
    "csar.cnf._charts": _OPERATOR,
    "csar.hot_values._typed": _PACKAGE,
    "csar.hot_values._number": _PACKAGE,
    "csar.request_schemas.tackers": "a file of the installed Tacker",
    "csar.sandbox.run": "the answer of its own child, which writes it there itself",
    "csar.security_groups.SecurityGroups._has_port": _PACKAGE,
    "csar.vms._covers": _PACKAGE,
    "hooks.v1.heal_update.changes": f"{_NOT_HERE}whatever it raises is a RemoteError",
    "hooks.v1.heal_update._values": _TACKER,
    "hooks.v1.metadata_patch.read": _TACKER,
    "hooks.v1.profile.kept": f"{_NOT_HERE}what is no JSON is kept as a text",
    "hooks.v1.requests.refuse_empty_heal": _TACKER,
    "hooks.v1.rollback.size_in": _TACKER,
    "hooks.v1.scale_level._Group.counted": _TACKER,
    "hooks.v2.process.Streams.read": _TACKER,
    "kubespray.variables.certified_addresses": _WRITTEN,
    "lifecycle.state.ClusterState.etcd_leader": _WRITTEN,
    "lifecycle.steps.application_rollout.Rollout._install": _OURS,
    "lifecycle.steps.application_rollout.Rollout._go_back": _OURS,
    "model.versions.numbers": "at most nine digits of each part",
    "model.tree.parse": _PACKAGE,
    "remote.ansible.run_files.k8s_mgmt_events.parsed": "a program of Ansible's: "
    "unit/remote/ansible/test_events_history.py::test_garbage_gives_no_estimate_and_is_replaced",
    "remote.ansible.run_files.k8s_mgmt_events.uptime": "a file of the kernel's",
    "remote.kubernetes.drain._Drain._repeated": _OURS,
    "remote.site.Site._api_patience": _OURS,
    "request.option_types._mtu": _OURS,
    "request.option_types._connection": _OURS,
}
