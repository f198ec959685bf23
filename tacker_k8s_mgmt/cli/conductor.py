# SPDX-License-Identifier: Apache-2.0
"""What ``tacker.conf`` says, for commands that run without Tacker."""

import argparse
from collections.abc import Sequence
from typing import Any

from tacker_k8s_mgmt.cli.common import UsageError


def add_config_file(parser: argparse.ArgumentParser) -> None:
    """Add the option for Tacker's configuration."""
    parser.add_argument(
        "--config-file",
        action="append",
        default=[],
        metavar="FILE",
        help="Tacker's configuration; may be given several times (default: where the "
        "conductor looks for it)",
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
    # Imported late: with the options there is nothing to read.
    from oslo_config import cfg

    from tacker_k8s_mgmt import config

    conf = cfg.ConfigOpts()
    config.register(conf)
    # Tacker's own, on which a default is based.
    conf.register_opt(cfg.StrOpt("state_path"))
    words = [word for file in files for word in ("--config-file", file)]
    try:
        conf(args=words, project="tacker", prog="tacker-conductor")
        values = {
            option.dest: conf[config.GROUP][option.dest] for option in config.OPTIONS
        }
        return {**values, "state_path": config.state_path(conf)}
    except (cfg.Error, OSError, ValueError) as error:
        line = next(iter(str(error).splitlines()), type(error).__name__).rstrip(".")
        raise UsageError(
            f"Tacker's configuration could not be read: {line}. Be root or the "
            "conductor's user, or name another file with --config-file, or what is "
            "needed of it by options."
        ) from error
