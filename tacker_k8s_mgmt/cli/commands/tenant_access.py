# SPDX-License-Identifier: Apache-2.0
"""``tacker-k8s-mgmt tenant access``: the login of a tenant, for requests of CNFs."""

import argparse
import json
from pathlib import Path

from tacker_k8s_mgmt.cli import common, conductor, control_plane, tacker_records
from tacker_k8s_mgmt.cli.base import Command
from tacker_k8s_mgmt.cli.common import NotDone, UsageError
from tacker_k8s_mgmt.lifecycle.steps import tenants

_VIM_TYPES = ("ETSINFV.KUBERNETES.V_1", "ETSINFV.HELM.V_3")


class TenantAccess(Command):
    """Write the vimConnectionInfo with a tenant's login, for Tacker's v2 API.

    Write the attribute vimConnectionInfo for requests that instantiate CNFs of a
    tenant through Tacker's v2 API, which keeps no VIMs: address and CA certificate of
    the cluster, and the token of the tenant's account. In the v1 API the tenant's VIM
    is registered in Tacker, and nothing else is needed.

    The token does not expire; it ends with the tenant. Run it where `cluster check`
    runs.
    """

    examples = (
        f"tacker-k8s-mgmt tenant access {common.EXAMPLE_ID} blue",
        f"tacker-k8s-mgmt tenant access {common.EXAMPLE_ID} blue -o blue.json --helm",
    )
    exit_codes = (
        "0 it was written, 1 something could not be asked, 2 wrong input, or the file "
        "exists"
    )
    reports_failures = True

    def get_parser(self, prog_name: str) -> argparse.ArgumentParser:
        """Return the parser of its options."""
        parser = super().get_parser(prog_name)
        parser.add_argument("vnf", metavar="VNF", help="id or name of the VNF instance")
        parser.add_argument("tenant", metavar="TENANT", help="name of the tenant")
        parser.add_argument(
            "-o",
            "--output",
            type=Path,
            metavar="FILE",
            help="readable by its owner only (default: TENANT.json)",
        )
        parser.add_argument(
            "--force", action="store_true", help="replace an existing FILE"
        )
        parser.add_argument(
            "--helm", action="store_true", help="for CNFs from Helm charts"
        )
        conductor.add_config_file(parser)
        return parser

    def take_action(self, parsed_args: argparse.Namespace) -> None:
        """Ask for the token, and write the file."""
        args = parsed_args
        path = args.output or Path(f"{args.tenant}.json")
        common.check_output(path, force=args.force)
        with (
            self.status("Asking …"),
            tacker_records.lookup().opened(args.vnf, args.config_file) as instance,
        ):
            names = [tenant.name for tenant in instance.params.tenants]
            if args.tenant not in names:
                known = ", ".join(names) or "none"
                raise UsageError(f"it has no tenant {args.tenant}; it has {known}")
            view = instance.view
            url, access = control_plane.ask(
                instance, lambda node: tenants.access(view.manifests(node), args.tenant)
            )
        if access is None:
            raise NotDone(
                f"Tenant {args.tenant} has no token in the cluster; modify the VNF "
                "instance again with k8s_tenants in its metadata."
            )
        entry = {
            "vimType": _VIM_TYPES[args.helm],
            "interfaceInfo": {"endpoint": url, "ssl_ca_cert": access.ca_certificate},
            "accessInfo": {"bearer_token": access.token.get_secret_value()},
        }
        document = {"vimConnectionInfo": {args.tenant: entry}}
        text = json.dumps(document, indent=2) + "\n"
        common.write_new(path, text, force=args.force)
        common.show(f"{path}: {url}, namespace {args.tenant}")
