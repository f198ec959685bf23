# SPDX-License-Identifier: Apache-2.0
"""What each reader of texts of others is given: a valid text, and how it is read."""

from collections.abc import Mapping

from tests.helpers.untrusted.clusters import CLUSTER
from tests.helpers.untrusted.fed import Fed, is_ours
from tests.helpers.untrusted.hosts import HOST
from tests.helpers.untrusted.tacker import TACKER
from tests.helpers.untrusted.texts import TEXTS

__all__ = ["FED", "TRUSTED", "Fed", "is_ours"]

FED: Mapping[str, Fed] = {**CLUSTER, **TEXTS, **HOST, **TACKER}
_OPERATOR = "what the operator of the command writes on its own line or answers it"
_ARGPARSE = f"{_OPERATOR}; argparse reports the ValueError"
_CLOUD = "the operator's cloud, which is trusted, and whose answers openstacksdk reads"
_PACKAGE = (
    "csar check, whose process may end in any way: "
    "unit/tools/csar/test_sandbox.py::test_what_may_not"
)
_TACKER = "what Tacker itself has written into its database or its standard input"
_OURS = "a value of a checked request, or one that is calculated here"
_WRITTEN = "variables that are rendered here just before"
_NOT_HERE = "not without Tacker, which unit tests do not import: "
#: The readers that are not fed, and why.
TRUSTED: Mapping[str, str] = {
    "tools.cli.__init__.main": _OURS,
    "tools.cli.commands.cluster_access._seconds": _ARGPARSE,
    "tools.cli.commands.request._value": _OPERATOR,
    "tools.cli.base.seconds": _ARGPARSE,
    "tools.cli.base.count": _ARGPARSE,
    "tools.cli.commands.runs._number": _ARGPARSE,
    "tools.cloud.client.Cloud.compute_quotas": _CLOUD,
    "tools.cloud.client.Cloud.network_quotas": _CLOUD,
    "tools.cloud.client.Cloud.volume_quotas": _CLOUD,
    "tools.cloud.interview.Interview._parameters": _OPERATOR,
    "tools.tacker.client.Refused.status": _OURS,
    "tools.tacker.client.Tacker.send": "a status of HTTP, which a library has read",
    "tools.tacker.scaling.request_body": _OURS,
    "tools.cli.commands.runs._port": _ARGPARSE,
    "tools.tacker.scaling.size": _ARGPARSE,
    "tools.csar.build._charts": _OPERATOR,
    "tools.csar.vnfd.id_in": _PACKAGE,
    "tools.csar.hot._typed": _PACKAGE,
    "tools.csar.hot._number": _PACKAGE,
    "tools.csar.body.tackers": "a file of the installed Tacker",
    "tools.csar.consistency.SecurityGroups._has_port": _PACKAGE,
    "tools.csar.stack_preview._covers": _PACKAGE,
    "hooks.v1.heal_update.changes": f"{_NOT_HERE}whatever it raises is a RemoteError",
    "hooks.v1.heal_update._values": _TACKER,
    "hooks.v1.instance.V1Instance.requested_metadata": _TACKER,
    "hooks.v1.instance.V1Instance.profile": f"{_NOT_HERE}other text is kept as it is",
    "hooks.v1.instance.V1Instance.names_no_vnfc": _TACKER,
    "hooks.v1.instance.V1Instance.scale_levels": _TACKER,
    "hooks.v1.group_sizes.size_in": _TACKER,
    "hooks.v1.group_sizes.step_size": _TACKER,
    "hooks.v2.program.Streams.read": _TACKER,
    "kubespray.variables.certified_addresses": _WRITTEN,
    "operations.state.ClusterState.etcd_leader": _WRITTEN,
    "features.applications.rollout.Rollout._install": _OURS,
    "features.applications.rollout.Rollout._go_back": _OURS,
    "model.network_plugins.numbers": "at most nine digits of each part",
    **dict.fromkeys(
        (
            "remote.ansible.run_files.k8s_mgmt_resolve._load",
            "remote.ansible.run_files.k8s_mgmt_resolve._values",
            "remote.ansible.run_files.k8s_mgmt_resolve.changed",
        ),
        "kubespray's checkout, and hosts that Ansible asks: "
        "unit/remote/ansible/test_resolve.py::test_any_failure_is_a_note",
    ),
    "remote.ansible.run_files.k8s_mgmt_resolve.note": "a file of the kernel's",
    "remote.ansible.run_files.k8s_mgmt_events.parsed": "a program of Ansible's: "
    "unit/remote/ansible/test_events_history.py::test_garbage_gives_no_estimate_and_is_replaced",
    "remote.ansible.run_files.k8s_mgmt_events.uptime": "a file of the kernel's",
    "remote.kubernetes.draining._Drain._repeated": _OURS,
    "remote.site.Site._api_patience": _OURS,
    "request.fields._mtu": _OURS,
    "tools.csar.archive._blocks": _PACKAGE,
    "tools.csar.archive._head": _PACKAGE,
    "tools.csar.build._with_defaults": _OPERATOR,
    "tools.csar.consistency._translated": _PACKAGE,
    "tools.csar.package_check._blanks": _PACKAGE,
    "tools.csar.package_check._entry_problems": _PACKAGE,
    "tools.csar.package_check._leads_to_flavour": _PACKAGE,
    "tools.csar.package_check._yaml_problems": _PACKAGE,
    "tools.csar.request_check._unkept": _PACKAGE,
    "tools.csar.sandbox.run": "the answer of its own child, which writes it itself",
    "tools.csar.vnfd.load": _PACKAGE,
    "tools.csar.vnfd.parse_flavour": _PACKAGE,
    "topology.base_hot._template": "a file of the package; read() has its errors",
    "request.fields._connection": _OURS,
    "request.structure.at": "the location is one that the reader made itself",
}
