# SPDX-License-Identifier: Apache-2.0
"""``tacker-k8s-mgmt cluster list``: the clusters that Tacker records."""

import argparse
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from cliff.columns import FormattableColumn

from tacker_k8s_mgmt.cli import conductor, tacker_records
from tacker_k8s_mgmt.cli.base import Lister

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


class ClusterList(Lister):
    """List the clusters that Tacker records, with their last operation.

    List the VNF instances of Tacker's v1 and v2 API, of all projects, which are
    clusters or for which a request had the parameters of one: state, VIM, URL of the
    API, how many VMs Tacker lists for each VDU, and the last operation.

    No cluster is asked; `cluster check` does that. It runs where `cluster check` runs.
    """

    examples = (
        "tacker-k8s-mgmt cluster list",
        "tacker-k8s-mgmt cluster list -f value -c 'VNF Name' -c 'API URL'",
    )
    exit_codes = "0 they are listed, 1 Tacker's database could not be read"
    reports_failures = True

    def get_parser(self, prog_name: str) -> argparse.ArgumentParser:
        """Return the parser of its options."""
        parser = super().get_parser(prog_name)
        conductor.add_config_file(parser)
        return parser

    def take_action(
        self, parsed_args: argparse.Namespace
    ) -> tuple[Sequence[str], Iterator[Sequence[Any]]]:
        """Return a row for each, by name."""
        with self.status("Asking …"):
            found = tacker_records.lookup().listed(parsed_args.config_file)
        return _COLUMNS, (
            (
                *(one.vnf_id, one.name, one.api, one.state, one.vim, one.url),
                _Vms(one.vms),
                *(one.operation, one.operation_state, one.operation_id),
            )
            for one in found
        )
