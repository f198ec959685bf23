# SPDX-License-Identifier: Apache-2.0
"""``tacker-k8s-mgmt runs list``: VNF instances with their last operation."""

import argparse
from collections.abc import Iterator, Sequence
from typing import Any

from tacker_k8s_mgmt import journal
from tacker_k8s_mgmt.cli import common, recorded
from tacker_k8s_mgmt.cli.base import Lister, Time

_COLUMNS = (
    "VNF Instance ID",
    "VNF Name",
    "Operation ID",
    "Hook",
    "Started",
    "Outcome",
    "State",
)
_PEOPLE = "table"


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
    ) -> tuple[Sequence[str], Iterator[Sequence[Any]]]:
        """Return a row for each, the one that changed last first."""
        path = recorded.state_path(parsed_args)
        known = journal.instances(path)
        if not known:
            why = recorded.nothing(path)
            if parsed_args.formatter == _PEOPLE:
                raise why
            # A program gets its document, without a row.
            common.complain(str(why))
            self._code = common.PROBLEMS
        return _COLUMNS, _rows(path, known)


def _rows(state_path: str, known: Sequence[str]) -> Iterator[Sequence[Any]]:
    for vnf_id in known:
        timeline = recorded.timeline(state_path, vnf_id)
        if last := timeline.last:
            yield (
                *(vnf_id, timeline.vnf_name, last.occurrence, last.hook),
                *(
                    Time(last.started),
                    last.outcome or "unfinished",
                    recorded.state(last),
                ),
            )
