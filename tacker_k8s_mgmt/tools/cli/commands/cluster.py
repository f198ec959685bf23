# SPDX-License-Identifier: Apache-2.0
"""``tacker-k8s-mgmt cluster``: clusters listed and compared.

``cluster check``
    compares a cluster as it is with Tacker's records.
``cluster labels``
    shows the settings of nodes, wanted and actual.
``cluster list``
    shows the clusters that Tacker records.
``cluster show``
    shows a cluster and its nodes, with the VNFC of each.
"""

import argparse
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from cliff.columns import FormattableColumn
from oslo_config import cfg
from rich.text import Text

from tacker_k8s_mgmt import config, files
from tacker_k8s_mgmt.hooks.instance_view import FAILED_TEMP
from tacker_k8s_mgmt.model.nodes import Machine
from tacker_k8s_mgmt.status import rows
from tacker_k8s_mgmt.status.facts import ClusterComparison, Row, Source
from tacker_k8s_mgmt.status.rows import Member
from tacker_k8s_mgmt.tools.cli import base, cluster_report, host_records
from tacker_k8s_mgmt.tools.cli.base import Lister
from tacker_k8s_mgmt.tools.cli.cluster_report import ClusterReport
from tacker_k8s_mgmt.tools.render.console import Console
from tacker_k8s_mgmt.tools.tacker.table import verbs_for

if TYPE_CHECKING:
    from tacker_k8s_mgmt.features.node_settings.feature import (
        SettingRow,
        SettingsReport,
    )
    from tacker_k8s_mgmt.operations.cluster_check import ClusterInspection


class ClusterCheck(ClusterReport):
    """Compare Heat, inventory, cluster, load balancer and VIM; changes nothing.

    Show what Heat, the inventory on the Ansible server, the cluster's API, the load
    balancer and Tacker, where it keeps the cluster as a VIM, report of each VM, what
    differs, and what to do about it. VNF instances of both of Tacker's APIs are
    supported.

    It changes nothing and takes no lock: no operation is kept waiting, and while one
    works on the cluster, differences are its work in progress. Hosts whose SSH key no
    operation has recorded are not asked. The load balancer is asked by the script of
    the VNF package, which is copied into a directory of its own there and removed
    again.

    Run it on a conductor's host as the user of the conductor, or as root: it reads
    tacker.conf, Tacker's database, the VNF package and the recorded host keys. Where
    [k8s_mgmt] metrics_directory is set, the numbers of differences are written there.
    """

    examples = (
        f"tacker-k8s-mgmt cluster check {base.EXAMPLE_ID}",
        f"tacker-k8s-mgmt cluster check {base.EXAMPLE_ID} --json",
        f"tacker-k8s-mgmt cluster check {base.EXAMPLE_ID} --watch",
    )

    def compare(self, survey: "ClusterInspection", vnf_id: str) -> ClusterComparison:
        report = survey.take()
        _write_metrics(vnf_id, report)
        return report

    def document(self, report: ClusterComparison) -> Mapping[str, Any]:
        return {"rows": [_row_document(row, report) for row in report.rows]}

    def show(self, console: Console, report: ClusterComparison) -> None:
        console.table(
            ["VM", *(source.title.upper() for source in report.sources)],
            [
                [Text(row.name), *(_cell(row, source) for source in report.sources)]
                for row in report.rows
            ],
        )
        for row in report.rows:
            for finding in row.findings:
                console.say(f"{row.name}: {finding.text}.", "red")
                console.say(f"  {finding.remedy.text}")
                for command in report.commands(row, finding):
                    console.say(f"    {command}", "bold")


def _write_metrics(vnf_id: str, report: ClusterComparison) -> None:
    config.register(cfg.CONF)
    directory = cfg.CONF[config.GROUP].metrics_directory
    if not directory:
        return
    # Imported late, as most sites have no use for it.
    from tacker_k8s_mgmt import metrics

    differences = {
        source.value: sum(len(row.cells[source].findings) for row in report.rows)
        for source in report.sources
    }
    unread = [source.value for source in report.failures]
    place = config.state_path(cfg.CONF), directory
    try:
        metrics.write_check(*place, vnf_id, differences, unread)
    except OSError as error:
        why = files.reason(error)
        base.complain(f"The metrics in {directory} cannot be written: {why}")


def _row_document(row: Row, report: ClusterComparison) -> dict[str, Any]:
    return {
        "name": row.name,
        "role": row.role.value,
        "server_id": row.server_id,
        "address": row.address,
        **{source.value: row.cells[source].text for source in report.sources},
        "differences": [
            {
                "what": finding.text,
                "remedy": finding.remedy.text,
                "commands": list(report.commands(row, finding)),
            }
            for finding in row.findings
        ],
    }


def _cell(row: Row, source: Source) -> Text:
    cell = row.cells[source]
    return Text(cell.text, style="bold red" if cell.findings else "")


class ClusterLabels(ClusterReport):
    """List labels, taints, annotations and maintenance, wanted and actual.

    List the settings of the nodes that requests to modify the VNF instance have stored
    in its metadata: labels, annotations, taints and maintenance, with the value that
    each Node object has. What a former request has set and no entry wants any more is
    listed, too.

    It changes nothing, asks the Ansible server for the inventory and a control plane
    for the Node objects, and runs where `cluster check` runs.
    """

    examples = (
        f"tacker-k8s-mgmt cluster labels {base.EXAMPLE_ID}",
        f"tacker-k8s-mgmt cluster labels {base.EXAMPLE_ID} --json",
    )

    def compare(self, survey: "ClusterInspection", vnf_id: str) -> "SettingsReport":
        from tacker_k8s_mgmt.features.node_settings import feature

        return feature.compare(survey)

    def document(self, report: "SettingsReport") -> Mapping[str, Any]:
        """Return the settings and the problems of the metadata."""
        return {
            "problems": list(report.problems),
            "settings": [
                {
                    "node": row.node or None,
                    "setting": row.setting,
                    "wanted": row.wanted,
                    "actual": row.actual,
                    "entry": row.entry or None,
                }
                for row in report.rows
            ],
        }

    def show(self, console: Console, report: "SettingsReport") -> None:
        console.table(
            ["NODE", "SETTING", "WANTED", "ACTUAL", "ENTRY OF METADATA"],
            [_row(row) for row in report.rows],
        )
        for problem in report.problems:
            console.say(f"{problem}.", "red")


def _row(row: "SettingRow") -> list[Text]:
    values = (
        "-" if value is None else value or '""' for value in (row.wanted, row.actual)
    )
    style = "bold red" if row.differs else ""
    texts = (row.node or "none", row.setting, *values, row.entry or "none any more")
    return [Text(text, style=style) for text in texts]


@dataclass(frozen=True)
class Shown:
    """A cluster and its VMs, as the sources report them.

    :param vms: nodes, then the load balancer, each as a document.
    """

    api: str
    url: str | None
    vim: str | None
    vms: Sequence[Mapping[str, Any]]
    comparison: ClusterComparison

    @property
    def failures(self) -> Mapping[Source, str]:
        """Why a source could not be read."""
        return self.comparison.failures

    @property
    def differs(self) -> bool:
        """Whether `cluster check` finds a difference."""
        return self.comparison.differs

    @property
    def differences(self) -> int:
        """How many."""
        return sum(1 for row in self.comparison.rows for _ in row.findings)


class ClusterShow(ClusterReport):
    """Show a cluster and its nodes, with the VNFC of each; changes nothing.

    Show Tacker's open operation on the cluster, where its API is, and of each VM its
    role, whether its node is Ready, the version of its kubelet, its addresses, its
    server and the id of its VNFC, which a request to heal takes.

    It asks the same as `cluster check`, of which it says how many differences there
    are, and runs where that runs.
    """

    examples = (
        f"tacker-k8s-mgmt cluster show {base.EXAMPLE_ID}",
        f"tacker-k8s-mgmt cluster show {base.EXAMPLE_ID} --long",
        f"tacker-k8s-mgmt cluster show {base.EXAMPLE_ID} --json",
    )
    exit_codes = "0 it is shown, 2 something could not be asked"
    verdict = ""

    def get_parser(self, prog_name: str) -> argparse.ArgumentParser:
        parser = super().get_parser(prog_name)
        parser.add_argument(
            "--long", action="store_true", help="all columns in one wide table"
        )
        return parser

    def find(self, parsed_args: argparse.Namespace) -> base.Outcome:
        self._long = parsed_args.long
        return super().find(parsed_args)

    def code(self, report: cluster_report.Comparison) -> int:
        """Return the exit code; differences are no failure here."""
        return base.USAGE if report.failures else base.OK

    def compare(self, survey: "ClusterInspection", vnf_id: str) -> Shown:
        members, answers = survey.look()
        vnfcs = {server: vnfc for vnfc, server in survey.heals.vnfcs.items()}
        vms = [_vm(member, vnfcs) for member in members]
        if balancer := answers.machines and answers.machines.load_balancer:
            vms.append(_machine("load balancer", balancer, vnfcs))
        wanted = survey.params.load_balancer
        return Shown(
            survey.heals.api,
            rows.endpoint(answers, wanted),
            next((vim.name for vim in answers.vims or ()), None),
            vms,
            survey.compare(members, answers),
        )

    def document(self, report: Shown) -> Mapping[str, Any]:
        return {
            "api": report.api,
            "url": report.url,
            "vim": report.vim,
            "differences": report.differences,
            "vms": list(report.vms),
        }

    def show(self, console: Console, report: Shown) -> None:
        """Print a line about the cluster, and tables of its VMs."""
        known = (report.url or "unknown", report.vim or "none", report.api)
        console.say("API {}, VIM {}, Tacker's {} API".format(*known))
        tables = (tuple(_HEADS),) if self._long else _TABLES
        for heads in tables:
            keys = [_HEADS[head] for head in heads]
            console.table(
                heads, [[_shown(vm, key) for key in keys] for vm in report.vms]
            )
        if report.differs:
            count = f"{report.differences} difference(s)"
            console.say(
                f"{count}; `cluster check` names them with their remedies.", "red"
            )


#: What each column shows of a VM's document.
_HEADS = {
    "NAME": "name",
    "ROLE": "role",
    "READY": "ready",
    "VERSION": "version",
    "ADDRESS": "address",
    "SSH ADDRESS": "ssh_address",
    "SERVER": "server_id",
    "VNFC": "vnfc_id",
    "ZONE": "zone",
    "CREATED": "created",
}
#: Two tables fit a terminal of 80 columns, where one would not.
_TABLES = (("NAME", "READY", "VERSION", "ADDRESS"), ("NAME", "VNFC"))
_ZONE = "topology.kubernetes.io/zone"


def _machine(
    name: str, place: Machine | None, vnfcs: Mapping[str, str]
) -> dict[str, Any]:
    """The document of a VM.

    :param vnfcs: ids of VNFCs, by their servers.
    """
    server = place.server_id if place else None
    return {
        "name": name,
        "role": place.role.value if place else None,
        "ready": None,
        "notes": [],
        "version": None,
        "address": place.address if place else None,
        "ssh_address": place.ssh_address if place else None,
        "server_id": server,
        "vnfc_id": vnfcs.get(server or ""),
        "zone": None,
        "created": None,
    }


def _vm(member: Member, vnfcs: Mapping[str, str]) -> dict[str, Any]:
    """The document of a member, with what its Node object has."""
    seen, found = member.seen, _machine(member.name, member.place, vnfcs)
    found["role"] = member.role.value
    if seen:
        notes = {
            "in maintenance": seen.in_maintenance,
            "cordoned": seen.unschedulable and not seen.in_maintenance,
        }
        found |= {
            "ready": seen.ready,
            "notes": [seen.reason] * bool(seen.reason) + [n for n in notes if notes[n]],
            "version": seen.kubelet_version or None,
            "zone": seen.labels.get(_ZONE),
            "created": seen.created or None,
        }
    return found


def _shown(vm: Mapping[str, Any], key: str) -> Text:
    """The cell of a table."""
    if key != "ready":
        return Text(vm[key] or "-")
    if vm["ready"] is None:
        return Text("-")
    words = ["yes" if vm["ready"] else "no", *vm["notes"]]
    style = "" if words == ["yes"] else "yellow" if vm["ready"] else "bold red"
    return Text(", ".join(words), style=style)


_COLUMNS = (
    *("VNF Instance ID", "VNF Name", "API", "State", "VIM", "API URL", "VMs"),
    *("Operation", "Operation State", "Operation ID"),
)


class _Vms(FormattableColumn[Mapping[str, int]]):
    """Numbers of VMs by VDU."""

    def human_readable(self) -> str:
        """Return them in words."""
        return ", ".join(f"{n} {vdu}" for vdu, n in sorted(self._value.items()))

    def machine_readable(self) -> dict[str, int]:
        """Return a plain document."""
        return dict(self._value)


class _State(FormattableColumn[Any]):
    """The state of an operation, and the verbs that Tacker takes for it."""

    def human_readable(self) -> str:
        """Return both."""
        state, verbs = self._value
        return f"{state}: {verbs}" if verbs else state

    def machine_readable(self) -> str:
        """Return the state alone."""
        return str(self._value[0])


def _with_verbs(one: Any) -> _State:
    is_open = one.operation_state == FAILED_TEMP
    verbs = verbs_for(one.api, one.operation) if is_open else ()
    return _State((one.operation_state, " or ".join(verb.value for verb in verbs)))


class ClusterList(Lister):
    """List the clusters that Tacker records, with their open or last operation.

    List the VNF instances of Tacker's v1 and v2 API, of all projects, which are
    clusters or for which a request had the parameters of one: state, VIM, URL of the
    API, how many VMs Tacker lists for each VDU, and the operation that is not over,
    else the last one. Those in FAILED_TEMP come first, with the verbs for them.

    No cluster is asked; `cluster check` does that. It runs where `cluster check` runs.
    """

    examples = (
        "tacker-k8s-mgmt cluster list",
        "tacker-k8s-mgmt cluster list --long",
        "tacker-k8s-mgmt cluster list -f value -c 'VNF Name' -c 'API URL'",
    )
    exit_codes = "0 they are listed, 1 Tacker's database could not be read"
    main_columns = ("VNF Name", "API", "State", "Operation", "Operation State")
    reports_failures = True

    def get_parser(self, prog_name: str) -> argparse.ArgumentParser:
        parser = super().get_parser(prog_name)
        host_records.add_config_file(parser)
        base.add_watch(parser)
        return parser

    def take_action(
        self, parsed_args: argparse.Namespace
    ) -> tuple[Sequence[str], Iterator[Sequence[Any]]]:
        with self.status("Asking …"):
            found = host_records.lookup(parsed_args.config_file).listed(
                parsed_args.config_file
            )
        return _COLUMNS, (
            (
                *(one.vnf_id, base.Name((one.name, one.vnf_id)), one.api, one.state),
                *(one.vim, one.url),
                _Vms(one.vms),
                *(one.operation, _with_verbs(one), one.operation_id),
            )
            for one in sorted(found, key=lambda one: one.operation_state != FAILED_TEMP)
        )
