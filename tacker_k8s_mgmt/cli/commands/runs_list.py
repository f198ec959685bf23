"""``tacker-k8s-mgmt runs list``: VNF instances with their last operation."""

import argparse
from collections.abc import Iterator, Sequence

from tacker_k8s_mgmt import journal
from tacker_k8s_mgmt.cli import recorded
from tacker_k8s_mgmt.cli.base import Lister
from tacker_k8s_mgmt.model.timeline import Timeline, clock

_COLUMNS = ("VNF Instance ID", "Started", "Hook", "State")


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
        known = journal.instances(parsed_args.state_path)
        if not known:
            raise recorded.nothing(parsed_args.state_path)
        return _COLUMNS, _rows(parsed_args.state_path, known)


def _rows(state_path: str, known: Sequence[str]) -> Iterator[Sequence[str]]:
    for vnf_id in known:
        records, _ = journal.read(journal.path_of(state_path, vnf_id))
        last = Timeline(records).last
        if last is not None:
            yield vnf_id, clock(last.started), last.hook, recorded.state(last)
