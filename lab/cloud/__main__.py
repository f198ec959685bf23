# SPDX-License-Identifier: Apache-2.0
"""``python3 -m lab.cloud``: the cloud's verbs, run inside the lab's namespaces.

Heat's plugins call ``create``, ``delete``, ``detach``, ``rewire``, ``net-create`` and
``net-delete``; the lab's start calls ``prepare``; people call the rest, through
``python3 -m lab host``.
"""

import argparse
import json
import os
import sys
from pathlib import Path
from typing import Any

from lab.cloud import CloudError, addresses, cli, networks
from lab.cloud.hosts import Hosts, find
from lab.cloud.state import Refusals, State


def show(hosts: Hosts, *, as_json: bool) -> None:
    """Print every host with its id, addresses and state."""
    states = hosts.states()
    rows: list[dict[str, Any]] = [
        {
            "name": host.name,
            "id": host.id,
            "addresses": list(host.addresses),
            "state": states[host.id],
        }
        for host in hosts.all()
    ]
    if as_json:
        print(json.dumps(rows, indent=1))
        return
    cells: list[list[str]] = [["NAME", "ID", "ADDRESSES", "STATE"]]
    cells += [
        [row["name"], row["id"], " ".join(row["addresses"]), row["state"]]
        for row in rows
    ]
    widths = [max(map(len, column)) for column in zip(*cells, strict=True)]
    for line in cells:
        padded = (c.ljust(w) for c, w in zip(line, widths, strict=True))
        print("  ".join(padded).rstrip())


def _run(args: argparse.Namespace) -> None:
    hosts = Hosts(args.state)
    match args.verb:
        case "prepare" | "kubespray":
            _prepare(hosts, args)
        case "create":
            hosts.create(_document())
        case "delete":
            hosts.delete(args.id)
        case "detach":
            hosts.detach(args.id)
        case "rewire":
            hosts.rewire(_document())
        case "net-create":
            networks.create_bridge(networks.bridge_name(_document()["id"]))
        case "net-delete":
            networks.delete_bridge(networks.bridge_name(args.id))
        case "list":
            show(hosts, as_json=args.json)
        case "cut" | "restore" | "kill" | "refuse" | "admit":
            _harm(hosts, args)
        case "delete-server" | "add-address":
            _change_records(hosts, args)
        case "exec":
            host = find(hosts.all(), args.host)
            argv = hosts.enter(host, cli.command_of(args.argv))
            os.execvp(argv[0], argv)  # noqa: S606  becomes the command


def _prepare(hosts: Hosts, args: argparse.Namespace) -> None:
    # Heat runs this program some ten times for each cluster: what takes a third of its
    # time to import is left to those that need it.
    from lab.cloud import ansible_server, preparation
    from lab.cloud.settings import Settings

    if args.verb == "prepare":
        preparation.prepare(args.state, args.mask)
    else:
        ansible_server.prepare(hosts, Settings.load(args.state), args.release)


def _harm(hosts: Hosts, args: argparse.Namespace) -> None:
    match args.verb:
        case "refuse":
            Refusals(args.state).add(args.host)
        case "admit":
            Refusals(args.state).remove(args.host)
        case "kill":
            hosts.kill(find(hosts.all(), args.host))
        case verb:
            hosts.connect(find(hosts.all(), args.host), up=verb == "restore")


def _change_records(hosts: Hosts, args: argparse.Namespace) -> None:
    """What Nova and Neutron do when they are asked themselves, not by Heat."""
    host = find(hosts.all(), args.host)
    if args.verb == "delete-server":
        hosts.delete(host.id)
    with State(args.state).edit() as records:
        if args.verb == "delete-server":
            addresses.forget_server(records, host.id)
        else:
            addresses.add_address(records, host.id, args.address)


def _document() -> dict[str, Any]:
    document: dict[str, Any] = json.load(sys.stdin)
    return document


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python3 -m lab.cloud")
    parser.add_argument(
        "--state",
        type=Path,
        default=os.environ.get("LAB_CLOUD_STATE"),
        help="the cloud's state directory (default: $LAB_CLOUD_STATE)",
    )
    verbs = parser.add_subparsers(dest="verb", required=True)
    prepared = verbs.add_parser("prepare", help="make what hosts need")
    prepared.add_argument(
        "--mask",
        type=Path,
        action="append",
        default=[],
        help="directory of the machine that hosts must not see, besides $LAB_STATE",
    )
    verbs.add_parser("create", help="start the host whose document is on stdin")
    verbs.add_parser("delete", help="remove a host").add_argument("id")
    verbs.add_parser("detach", help="take a host's ports away").add_argument("id")
    verbs.add_parser("rewire", help="change the ports of the host on stdin")
    verbs.add_parser("net-create", help="make the network whose document is on stdin")
    verbs.add_parser("net-delete", help="remove a network").add_argument("id")
    cli.add_verbs(verbs)
    return parser


def main() -> int:
    """Run one verb."""
    parser = _parser()
    args = parser.parse_args()
    if not args.state:
        parser.error("--state or $LAB_CLOUD_STATE is needed")
    try:
        _run(args)
    except CloudError as error:
        print(error, file=sys.stderr)
        return error.code
    return 0


if __name__ == "__main__":
    sys.exit(main())
