# SPDX-License-Identifier: Apache-2.0
"""``tacker-k8s-mgmt cluster kubeconfig``: access to a cluster for a person."""

import argparse
import getpass
import os
import re
from pathlib import Path

from tacker_k8s_mgmt.cli import (
    common,
    conductor,
    control_plane,
    kubeconfig,
    tacker_records,
)
from tacker_k8s_mgmt.cli.base import Command
from tacker_k8s_mgmt.cli.common import UsageError
from tacker_k8s_mgmt.cli.documents import STDIN as STDOUT

_PERSON = re.compile(r"[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?")
_ROLE = re.compile(r"[a-z0-9]([a-z0-9.-]{0,150}[a-z0-9])?")
_UNITS = {"m": 60, "h": 3600, "d": 24 * 3600}
#: Kubernetes issues no token for less.
_SHORTEST = 600  # seconds


class ClusterKubeconfig(Command):
    """Write a kubeconfig for a person, with a token that expires.

    Write the file with which kubectl reaches the cluster, through the load balancer if
    there is one. The person gets a service account in the namespace
    tacker-k8s-mgmt-users, bound to one cluster role, and a token for it that expires;
    the driver's own account is not used. The role view shows everything in all
    namespaces but Secrets, and no nodes.

    The API server is asked once, with its certificate verified, before the file is
    written. Run it where `cluster check` runs.
    """

    examples = (
        f"tacker-k8s-mgmt cluster kubeconfig {common.EXAMPLE_ID}",
        f"tacker-k8s-mgmt cluster kubeconfig {common.EXAMPLE_ID} --user alice \\\n"
        "      --cluster-role cluster-admin --expires 1h -o alice.conf",
    )
    exit_codes = (
        "0 it was written, 1 something could not be asked or the API is not reached, "
        "2 wrong input, or the file exists"
    )
    reports_failures = True

    def get_parser(self, prog_name: str) -> argparse.ArgumentParser:
        """Return the parser of its options."""
        parser = super().get_parser(prog_name)
        parser.add_argument("vnf", metavar="VNF", help="id or name of the VNF instance")
        parser.add_argument(
            "-o",
            "--output",
            type=Path,
            metavar="FILE",
            help="readable by its owner only (default: VNF.kubeconfig); - is standard "
            "output",
        )
        parser.add_argument(
            "--force", action="store_true", help="replace an existing FILE"
        )
        parser.add_argument(
            "--user",
            type=_person,
            metavar="NAME",
            help="the person, for the account's name (default: the one who runs this, "
            "also through sudo)",
        )
        parser.add_argument(
            "--cluster-role",
            type=_role,
            default="view",
            metavar="ROLE",
            help="what the person may do (default: %(default)s)",
        )
        parser.add_argument(
            "--expires",
            type=_seconds,
            default="8h",
            metavar="TIME",
            help="how long the token is good, such as 30m, 8h or 2d (default: "
            "%(default)s); the API server may choose less",
        )
        conductor.add_config_file(parser)
        return parser

    def take_action(self, parsed_args: argparse.Namespace) -> None:
        """Have the token issued, and write the file."""
        args = parsed_args
        path = args.output or Path(f"{Path(args.vnf).name}.kubeconfig")
        is_printed = str(path) == STDOUT
        if not is_printed:
            common.check_output(path, force=args.force)
        args.user = args.user or _own_name()
        with (
            self.status("Asking …"),
            tacker_records.lookup().opened(args.vnf, args.config_file) as instance,
        ):
            view, wanted = instance.view, (args.user, args.cluster_role, args.expires)
            url, access = control_plane.ask(
                instance, lambda plane: view.cluster(plane).person_access(*wanted)
            )
            kubeconfig.verify(url, access)
        name = instance.name or instance.vnf_id
        text = kubeconfig.text(name, args.user, url, access)
        if is_printed:
            common.show(text, end="")
            return
        common.write_new(path, text, force=args.force)
        common.show(f"{path}: {url} as {access.account}, until {access.expires}")


def _own_name() -> str:
    """The name of the person at the terminal.

    :raises UsageError: there is none that an account can have.
    """
    try:
        return _person(os.environ.get("SUDO_USER") or getpass.getuser())
    except (KeyError, OSError):
        # A container may run with a user id that has no name.
        raise UsageError(
            f"the user id {os.getuid()} has no name here; give --user"
        ) from None
    except argparse.ArgumentTypeError as error:
        raise UsageError(str(error)) from None


def _person(text: str) -> str:
    """:raises argparse.ArgumentTypeError: no account can be called so."""
    if not _PERSON.fullmatch(text):
        raise argparse.ArgumentTypeError(
            f"{text} is no name of small letters, digits and hyphens; give --user"
        )
    return text


def _role(text: str) -> str:
    """:raises argparse.ArgumentTypeError: no account can be called so."""
    if not _ROLE.fullmatch(text):
        raise argparse.ArgumentTypeError(
            f"{text} is no name of small letters, digits, hyphens and dots"
        )
    return text


def _seconds(text: str) -> int:
    """:raises argparse.ArgumentTypeError: it is no time, or too short."""
    found = re.fullmatch(r"(\d{1,6})([mhd])", text)
    seconds = int(found[1]) * _UNITS[found[2]] if found else 0
    if seconds < _SHORTEST:
        raise argparse.ArgumentTypeError(
            f"{text} is no time of 10m or more, such as 30m, 8h or 2d"
        )
    return seconds
