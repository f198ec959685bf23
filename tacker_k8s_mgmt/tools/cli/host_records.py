# SPDX-License-Identifier: Apache-2.0
"""What this host records, for commands: ``tacker.conf``, journals, Tacker's database.

The commands run without Tacker. The journals of a state directory are for ``runs``;
what Tacker records of clusters is for ``cluster``.
"""

import argparse
import contextlib
import logging
import sys
import time
import uuid
import warnings
from collections.abc import Sequence
from importlib.util import find_spec
from typing import Any

from tacker_k8s_mgmt import errors, journal
from tacker_k8s_mgmt.model.timeline import Operation, Timeline, in_words
from tacker_k8s_mgmt.tools.cli.base import NotDone, UsageError


def add_config_file(parser: argparse.ArgumentParser) -> None:
    """Add the option for Tacker's configuration."""
    parser.add_argument(
        "--config-file",
        action="append",
        default=[],
        metavar="FILE",
        help="Tacker's configuration; may be given several times (default: the files "
        "that $TACKER_K8S_MGMT_CONFIG names, else where the conductor looks for it)",
    )


def add_directory(parser: argparse.ArgumentParser, option: str) -> None:
    """Add an option for a directory, in place of the one in ``tacker.conf``.

    :param option: the name in ``[k8s_mgmt]``.
    """
    parser.add_argument(
        f"--{option.replace('_', '-')}",
        metavar="DIR",
        help=f"the conductor's {option} (default: [k8s_mgmt] {option} of tacker.conf)",
    )


def complete(args: argparse.Namespace, *names: str) -> None:
    """Take options that were not given from ``tacker.conf``, or its defaults.

    :param names: theirs in ``[k8s_mgmt]``.
    :raises UsageError: it cannot be read.
    """
    missing = [name for name in names if getattr(args, name) is None]
    if missing:
        values = options(args)
        for name in missing:
            setattr(args, name, getattr(values, name))


def options(args: argparse.Namespace) -> argparse.Namespace:
    """All options of ``[k8s_mgmt]``; those of the command line take precedence.

    :raises UsageError: ``tacker.conf`` cannot be read.
    """
    values = _values(args.config_file)
    given = {name: getattr(args, name, None) for name in values}
    own = {name: value for name, value in given.items() if value is not None}
    return argparse.Namespace(**{**values, **own})


def _values(files: Sequence[str]) -> dict[str, Any]:
    return _configuration(files)[1]


def _configuration(files: Sequence[str]) -> tuple[Sequence[str], dict[str, Any]]:
    """The files of the configuration, and all options of ``[k8s_mgmt]``.

    :raises UsageError: it cannot be read.
    """
    # Imported late: with the options there is nothing to read.
    from oslo_config import cfg

    from tacker_k8s_mgmt import config

    conf = cfg.ConfigOpts()
    config.register(conf)
    # Tacker's own, on which a default is based.
    conf.register_opt(cfg.StrOpt("state_path"))
    try:
        config.read(conf, files)
        values = {
            option.dest: conf[config.GROUP][option.dest] for option in config.OPTIONS
        }
        values["state_path"] = config.state_path(conf)
        return conf.config_file or (), values
    except (cfg.Error, OSError, ValueError) as error:
        line = next(iter(str(error).splitlines()), type(error).__name__).rstrip(".")
        raise UsageError(
            f"Tacker's configuration could not be read: {line}. Be root or the "
            "conductor's user, or name another file with --config-file, or what is "
            "needed of it by options."
        ) from error


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
    add_directory(parser, "state_path")
    add_config_file(parser)


def state_path(args: argparse.Namespace) -> str:
    """The conductor's state directory."""
    complete(args, "state_path")
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
    :param vnf: its id, or its name in its journal. One that was terminated has it only
        if no other has.
    :returns: None for an unknown name.
    :raises UsageError: several have this name.
    """
    with contextlib.suppress(ValueError):
        return str(uuid.UUID(vnf))
    known = journal.instances(path)
    found = [vnf_id for vnf_id in known if timeline(path, vnf_id).vnf_name == vnf]
    if len(found) > 1:
        paths = {vnf_id: journal.path_of(path, vnf_id) for vnf_id in found}
        living = [one for one in found if not journal.is_terminated(paths[one])]
        found = living or found
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
        verbs = f": {' or '.join(operation.verbs)}" if operation.verbs else ""
        return f"{operation.outcome} after {in_words(operation.seconds)}{verbs}"
    alive = operation.sign_of_life(time.time())
    step = operation.current
    if step is None:
        return alive
    place = f"at step {step.place} {step.name}"
    texts = (place, operation.position, alive)
    return ", ".join(filter(None, texts))


def lookup(config_files: Sequence[str]) -> Any:
    """The module that finds clusters in Tacker's database.

    :param config_files: of the command line. They are looked at first: Tacker takes
        seconds to be imported.
    :raises UsageError: Tacker's configuration cannot be read, or there is none.
    :raises TackerError: Tacker is not installed here.
    """
    if find_spec("tacker") is None:
        raise _without_tacker("there is no package tacker")
    if not _configuration(config_files)[0]:
        raise UsageError(
            "There is no tacker.conf where Tacker looks for it; name it with "
            "--config-file, or in TACKER_K8S_MGMT_CONFIG."
        )
    if not sys.warnoptions:
        # Of libraries. ``python -W`` turns them on again.
        warnings.simplefilter("ignore")
    # Of plugins of Tacker's libraries that need what nobody has installed.
    logging.getLogger("stevedore").setLevel(logging.CRITICAL)
    # Imported late: Tacker is large, and the other commands run without it.
    try:
        from tacker_k8s_mgmt.hooks import instances
    except ImportError as error:
        raise _without_tacker(str(error)) from error
    return instances


def _without_tacker(why: str) -> errors.TackerError:
    return errors.TackerError(
        detail=f"Tacker is not installed beside this program: {why}.",
        hint="Use the tacker-k8s-mgmt of the conductor's Python environment.",
    )
