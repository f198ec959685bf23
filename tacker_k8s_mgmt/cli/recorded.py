# SPDX-License-Identifier: Apache-2.0
"""What the journals of a state directory have, for the commands ``runs``."""

import argparse
import contextlib
import time
import uuid

from tacker_k8s_mgmt import journal
from tacker_k8s_mgmt.cli import conductor
from tacker_k8s_mgmt.cli.common import NotDone, UsageError
from tacker_k8s_mgmt.model.timeline import Operation, Timeline, in_words


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of :func:`chosen`."""
    add_state_path(parser)
    parser.add_argument(
        "vnf",
        nargs="?",
        metavar="VNF",
        help="id or name of the VNF instance (default: the one that changed last)",
    )


def add_state_path(parser: argparse.ArgumentParser) -> None:
    """Add the options for the state directory; see :func:`state_path`."""
    conductor.add_directory(parser, "state_path")
    conductor.add_config_file(parser)


def state_path(args: argparse.Namespace) -> str:
    """The conductor's state directory."""
    conductor.complete(args, "state_path")
    return str(args.state_path)


def chosen(args: argparse.Namespace) -> str | None:
    """The id of the VNF instance that was given, or changed last.

    :returns: None if no journal is of it.
    :raises UsageError: several have this name.
    """
    path = state_path(args)
    if args.vnf:
        return identified(path, args.vnf)
    return next(iter(journal.instances(path)), None)


def identified(path: str, vnf: str) -> str | None:
    """The id of a VNF instance.

    :param path: the conductor's state directory.
    :param vnf: its id, or its name in its journal.
    :returns: None for an unknown name.
    :raises UsageError: several have this name.
    """
    with contextlib.suppress(ValueError):
        return str(uuid.UUID(vnf))
    known = journal.instances(path)
    found = [vnf_id for vnf_id in known if timeline(path, vnf_id).vnf_name == vnf]
    if len(found) > 1:
        raise UsageError(
            f"several VNF instances have the name {vnf}: {', '.join(found)}"
        )
    return next(iter(found), None)


def timeline(state_path: str, vnf_id: str) -> Timeline:
    """All that was recorded of a VNF instance."""
    return Timeline(journal.read(journal.path_of(state_path, vnf_id))[0])


def nothing(state_path: str, vnf: str | None = None) -> NotDone:
    """The error when there are no records."""
    whose = f" of the VNF instance {vnf}" if vnf else ""
    return NotDone(
        f"No operation{whose} is recorded below {state_path}; give --state-path or "
        "--config-file if the conductor has another state_path."
    )


def state(operation: Operation) -> str:
    """Where an operation is, or how it ended."""
    if operation.ended is not None:
        return f"{operation.outcome} after {in_words(operation.seconds)}"
    alive = operation.sign_of_life(time.time())
    step = operation.current
    if step is None:
        return alive
    place = f"at step {step.place} {step.name}"
    texts = (place, operation.position, alive)
    return ", ".join(filter(None, texts))
