# SPDX-License-Identifier: Apache-2.0
"""``tacker-k8s-mgmt cluster``: access to a cluster, for a person and for Tacker.

``cluster access``
    writes the cluster's VIM for requests of CNFs.
``cluster kubeconfig``
    gives a person access: the file with which kubectl reaches a cluster, and whether it
    does.
"""

import argparse
import getpass
import http.client
import json
import os
import re
from pathlib import Path

import yaml

from tacker_k8s_mgmt.model import vim
from tacker_k8s_mgmt.model.vim import PersonAccess
from tacker_k8s_mgmt.remote import https
from tacker_k8s_mgmt.remote.timing import reason
from tacker_k8s_mgmt.tools.cli import base, cluster_report, host_records
from tacker_k8s_mgmt.tools.cli.base import Command, NotDone, UsageError
from tacker_k8s_mgmt.tools.cli.request_input import STANDARD_STREAM

_LIMIT = 30  # seconds for an answer of the API server
#: Without and with Helm (Tacker, ``sol_refactored``).
_VIM_TYPES = ("ETSINFV.KUBERNETES.V_1", "ETSINFV.HELM.V_3")


def kubeconfig_text(cluster: str, person: str, url: str, access: PersonAccess) -> str:
    """The file.

    :param cluster: what it is called there.
    :param url: of the API, as a person reaches it.
    """
    context = f"{person}@{cluster}"
    config = vim.kubeconfig(url, access, cluster, person, context)
    return yaml.safe_dump(config, sort_keys=False)


def verify(url: str, access: PersonAccess) -> None:
    """Check that the API server at this URL is the cluster's, and takes the token.

    :raises NotDone: it is not, or cannot be reached from here.
    """
    headers = {"Authorization": f"Bearer {access.token.get_secret_value()}"}
    try:
        # Any authenticated user may see which APIs there are, and nobody else.
        status, _ = https.ask(
            f"{url}/api", headers, ca_certificate=access.ca_certificate
        )
    except (OSError, http.client.HTTPException) as error:
        raise NotDone(f"The API at {url} cannot be used: {reason(error)}") from error
    if status != http.client.OK:
        raise NotDone(f"The API at {url} does not take the new token: status {status}")


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
        f"tacker-k8s-mgmt cluster kubeconfig {base.EXAMPLE_ID}",
        f"tacker-k8s-mgmt cluster kubeconfig {base.EXAMPLE_ID} --user alice \\\n"
        "      --cluster-role cluster-admin --expires 1h -o alice.conf",
    )
    exit_codes = (
        "0 it was written, 1 something could not be asked or the API is not reached, "
        "2 wrong input, or the file exists"
    )
    reports_failures = True

    def get_parser(self, prog_name: str) -> argparse.ArgumentParser:
        parser = super().get_parser(prog_name)
        parser.add_argument("vnf", metavar="VNF", help="id or name of the VNF instance")
        base.add_private_output(parser, "VNF.kubeconfig", "; - is standard output")
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
        host_records.add_config_file(parser)
        return parser

    def take_action(self, parsed_args: argparse.Namespace) -> None:
        args = parsed_args
        path = args.output or Path(f"{Path(args.vnf).name}.kubeconfig")
        is_printed = str(path) == STANDARD_STREAM
        if not is_printed:
            base.check_output(path, force=args.force)
        args.user = args.user or _own_name()
        with (
            self.status("Asking …"),
            host_records.lookup(args.config_file).open_cluster(
                args.vnf, args.config_file
            ) as instance,
        ):
            view, wanted = instance.view, (args.user, args.cluster_role, args.expires)
            url, access = cluster_report.ask(
                instance, lambda plane: view.cluster(plane).person_access(*wanted)
            )
            verify(url, access)
        name = instance.name or instance.vnf_id
        text = kubeconfig_text(name, args.user, url, access)
        if is_printed:
            base.show(text, end="")
            return
        base.write_new(path, text, force=args.force)
        base.show(f"{path}: {url} as {access.account}, until {access.expires}")


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
    """:raises argparse.ArgumentTypeError: it is not a time, or too short."""
    found = re.fullmatch(r"(\d{1,6})([mhd])", text)
    seconds = int(found[1]) * _UNITS[found[2]] if found else 0
    if seconds < _SHORTEST:
        raise argparse.ArgumentTypeError(
            f"{text} is no time of 10m or more, such as 30m, 8h or 2d"
        )
    return seconds


class ClusterAccess(Command):
    """Write the VIM of a cluster, for CNFs through either of Tacker's APIs.

    Write the attribute vimConnectionInfo for requests that instantiate CNFs on the
    cluster through Tacker's v2 API, which keeps no VIMs: address and CA certificate of
    the cluster, and the token of the driver's account, which may do everything there.
    With --vim-file it is the file for `openstack vim register`, for the v1 API.

    The driver puts the VIM of a cluster into its VNF instance and, in the v1 API,
    registers it; this is for another VNF instance or another Tacker. A tenant's CNFs
    need no more than `tenant access` writes. Run it where `cluster check` runs.
    """

    examples = (
        f"tacker-k8s-mgmt cluster access {base.EXAMPLE_ID}",
        f"tacker-k8s-mgmt cluster access {base.EXAMPLE_ID} -o vim.json --helm",
        f"tacker-k8s-mgmt cluster access {base.EXAMPLE_ID} --vim-file -o vim.yaml",
    )
    exit_codes = (
        "0 it was written, 1 something could not be asked, 2 wrong input, or the file "
        "exists"
    )
    reports_failures = True

    def get_parser(self, prog_name: str) -> argparse.ArgumentParser:
        parser = super().get_parser(prog_name)
        parser.add_argument("vnf", metavar="VNF", help="id or name of the VNF instance")
        base.add_private_output(parser, "VNF.json, with --vim-file VNF.yaml")
        form = parser.add_mutually_exclusive_group()
        form.add_argument(
            "--helm", action="store_true", help="for CNFs from Helm charts (v2)"
        )
        form.add_argument(
            "--vim-file",
            action="store_true",
            help="write the file for `openstack vim register --config-file`",
        )
        host_records.add_config_file(parser)
        return parser

    def take_action(self, parsed_args: argparse.Namespace) -> None:
        args = parsed_args
        ending = "yaml" if args.vim_file else "json"
        path = args.output or Path(f"{Path(args.vnf).name}.{ending}")
        base.check_output(path, force=args.force)
        with (
            self.status("Asking …"),
            host_records.lookup(args.config_file).open_cluster(
                args.vnf, args.config_file
            ) as instance,
        ):
            view = instance.view
            url, access = cluster_report.ask(
                instance, lambda plane: view.cluster(plane).admin_access()
            )
        name = instance.name or instance.vnf_id
        if args.vim_file:
            text = vim_file(url, access)
        else:
            text = connection_info(name, url, access, helm=args.helm)
        base.write_new(path, text, force=args.force)
        base.show(f"{path}: {url}")


def connection_info(
    name: str, url: str, access: vim.ClusterAccess, *, helm: bool
) -> str:
    """``vimConnectionInfo`` of a request of the v2 API (SOL003, clause 4.4.1.6).

    :param name: key of the entry.
    """
    entry = {
        "vimType": _VIM_TYPES[helm],
        "interfaceInfo": {"endpoint": url, "ssl_ca_cert": access.ca_certificate},
        "accessInfo": {"bearer_token": access.token.get_secret_value()},
    }
    return json.dumps({"vimConnectionInfo": {name: entry}}, indent=2) + "\n"


def vim_file(url: str, access: vim.ClusterAccess) -> str:
    """The file of ``openstack vim register`` (Tacker, ``vim_config``)."""
    document = {
        "auth_url": url,
        "bearer_token": access.token.get_secret_value(),
        "ssl_ca_cert": access.ca_certificate,
        "project_name": "default",
        "type": "kubernetes",
    }
    return str(yaml.safe_dump(document, sort_keys=False))
