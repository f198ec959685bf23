"""What the journals of a state directory have, for the commands ``runs``."""

import argparse
import time
import uuid

from tacker_k8s_mgmt import journal
from tacker_k8s_mgmt.cli import common
from tacker_k8s_mgmt.cli.common import NotDone
from tacker_k8s_mgmt.model.timeline import Operation, in_words


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of :func:`chosen`."""
    add_state_path(parser)
    parser.add_argument(
        "vnf",
        nargs="?",
        type=uuid.UUID,
        metavar="VNF_INSTANCE_ID",
        help="default: the one that changed last",
    )


def add_state_path(parser: argparse.ArgumentParser) -> None:
    """Add the option for the state directory."""
    common.add_directory(parser, "state_path", common.STATE_PATH)


def chosen(args: argparse.Namespace) -> str | None:
    """The id of the VNF instance; None if no journal exists."""
    if args.vnf:
        return str(args.vnf)
    return next(iter(journal.instances(args.state_path)), None)


def nothing(state_path: str, vnf_id: str | None = None) -> NotDone:
    """The error when there are no records."""
    whose = f" of the VNF instance {vnf_id}" if vnf_id else ""
    return NotDone(
        f"No operation{whose} is recorded below {state_path}; give --state-path when "
        "[k8s_mgmt] state_path or [DEFAULT] state_path is another one."
    )


def state(operation: Operation) -> str:
    """Where an operation is, or how it ended."""
    if operation.ended is not None:
        return f"{operation.outcome} after {in_words(operation.seconds)}"
    ago = in_words(time.time() - operation.last)
    step = operation.current
    if step is None:
        return f"last sign of life {ago} ago"
    place = f"at step {step.place} {step.name}"
    texts = (place, operation.position, f"last sign of life {ago} ago")
    return ", ".join(filter(None, texts))
