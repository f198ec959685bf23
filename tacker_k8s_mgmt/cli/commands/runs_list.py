# SPDX-License-Identifier: Apache-2.0
"""``tacker-k8s-mgmt runs list``: VNF instances with their last operation."""

import argparse
from collections.abc import Iterator, Sequence

from tacker_k8s_mgmt import journal
from tacker_k8s_mgmt.cli import recorded
from tacker_k8s_mgmt.cli.base import Lister
from tacker_k8s_mgmt.model.timeline import clock

_COLUMNS = (
    "VNF Instance ID",
    "VNF Name",
    "Operation ID",
    "Hook",
    "Started",
    "State",
)


class RunsList(Lister):
    """List VNF instances with their last operation."""

    examples = ("tacker-k8s-mgmt runs list",)
    exit_codes = "0 all is well, 1 nothing is recorded"

    def get_parser(self, prog_name: str) -> argparse.ArgumentParser:
        """Return the parser of its options."""
        parser = super().get_parser(prog_name)
        recorded.add_state_path(parser)
        return parser

    def take_action(
        self, parsed_args: argparse.Namespace
    ) -> tuple[Sequence[str], Iterator[Sequence[str]]]:
        """Return a row for each, the one that changed last first."""
        path = recorded.state_path(parsed_args)
        known = journal.instances(path)
        if not known:
            raise recorded.nothing(path)
        return _COLUMNS, _rows(path, known)


def _rows(state_path: str, known: Sequence[str]) -> Iterator[Sequence[str]]:
    for vnf_id in known:
        timeline = recorded.timeline(state_path, vnf_id)
        if last := timeline.last:
            named = timeline.vnf_name, last.occurrence
            yield vnf_id, *named, last.hook, clock(last.started), recorded.state(last)
