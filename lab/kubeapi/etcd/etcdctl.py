# SPDX-License-Identifier: Apache-2.0
"""``etcdctl`` for the stand-in: members, health, status, as the real one prints them.

Options and variables (``ETCDCTL_ENDPOINTS``, ``_CACERT``, ``_CERT``, ``_KEY``) are the
real one's, and as the real one it refuses one thing that is said in both ways.
"""

import argparse
import json
import os
import sys
import time
from collections.abc import Sequence
from typing import Any

from .errors import EtcdError
from .node import VERSION
from .wire import Client, Files

_ENVIRONMENT = ("endpoints", "cacert", "cert", "key")
_SETTINGS = (*_ENVIRONMENT, "command_timeout", "dial_timeout", "write_out")
_MEMBERS = ("ID", "STATUS", "NAME", "PEER ADDRS", "CLIENT ADDRS", "IS LEARNER")
_STATUS = (
    *("ENDPOINT", "ID", "VERSION", "DB SIZE", "IS LEADER", "IS LEARNER", "RAFT TERM"),
    *("RAFT INDEX", "RAFT APPLIED INDEX", "ERRORS"),
)


def _arguments(argv: Sequence[str] | None) -> argparse.Namespace:
    common = argparse.ArgumentParser(add_help=False, allow_abbrev=False)
    for name in ("--endpoints", "--cacert", "--cert", "--key", "--command-timeout"):
        common.add_argument(name, default=argparse.SUPPRESS)
    common.add_argument("--dial-timeout", default=argparse.SUPPRESS)
    forms = ("simple", "json", "table")
    common.add_argument("-w", "--write-out", choices=forms, default=argparse.SUPPRESS)
    parser = argparse.ArgumentParser(
        prog="etcdctl", description=__doc__, parents=[common], allow_abbrev=False
    )
    commands = parser.add_subparsers(dest="command", required=True)
    commands.add_parser("version")
    member = commands.add_parser("member").add_subparsers(dest="verb", required=True)
    member.add_parser("list", parents=[common])
    add = member.add_parser("add", parents=[common])
    add.add_argument("name")
    add.add_argument("--peer-urls", required=True)
    member.add_parser("remove", parents=[common]).add_argument("id")
    endpoint = commands.add_parser("endpoint", parents=[common])
    endpoint.add_argument("--cluster", action="store_true", default=False)
    verbs = endpoint.add_subparsers(dest="verb", required=True)
    for verb in ("health", "status"):
        asked = verbs.add_parser(verb, parents=[common])
        asked.add_argument("--cluster", action="store_true", default=argparse.SUPPRESS)
    return parser.parse_args(argv)


class EtcdCtl:
    """One call.

    :param options: as the command line gave them.
    """

    def __init__(self, options: argparse.Namespace) -> None:
        values = vars(options)
        settings = {name: values.get(name, "") for name in _SETTINGS}
        for name in _ENVIRONMENT:
            variable = f"ETCDCTL_{name.upper()}"
            if variable not in os.environ:
                continue
            if settings[name]:
                raise EtcdError(
                    f'conflicting environment variable "{variable}" is shadowed by '
                    "corresponding command-line flag"
                )
            settings[name] = os.environ[variable]
        self._files = Files(settings["cacert"], settings["cert"], settings["key"])
        self._endpoints = (settings["endpoints"] or "127.0.0.1:2379").split(",")
        self._limit = float((settings["command_timeout"] or "5s").removesuffix("s"))
        self._json = settings["write_out"] == "json"
        self._table = settings["write_out"] == "table"
        self._client = Client(self._endpoints, self._files, self._limit)

    def run(self, options: argparse.Namespace) -> int:
        """Do it; the exit code.

        :raises EtcdError: the cluster refuses.
        """
        match options.command, getattr(options, "verb", ""):
            case "version", _:
                print(f"etcdctl version: {VERSION}\nAPI version: 3.5")
            case "member", "list":
                self._list()
            case "member", "add":
                self._add(options.name, options.peer_urls)
            case "member", "remove":
                self._remove(options.id)
            case _, "health":
                return self._health(self._asked(options.cluster))
            case _, "status":
                return self._status(self._asked(options.cluster))
        return 0

    def _asked(self, whole_cluster: bool) -> list[str]:
        if not whole_cluster:
            return self._endpoints
        members = self._client.ask("/v3/members")
        return [member["client_url"] for member in members if member["client_url"]]

    def _list(self) -> None:
        members = self._client.ask("/v3/members")
        if self._json:
            status = self._client.ask("/v3/status")
            header = {name: status[name] for name in ("member_id", "raft_term")}
            self._print({"header": header, "members": [_member(m) for m in members]})
            return
        rows = []
        for member in members:
            state = "started" if member["client_url"] else "unstarted"
            urls = (member["peer_url"], member["client_url"])
            rows.append((f"{member['id']:x}", state, member["name"], *urls, "false"))
        self._tell(_MEMBERS, rows)

    def _add(self, name: str, peer_url: str) -> None:
        members = self._client.ask("/v3/member-add", {"peer_url": peer_url})["members"]
        new = next(member for member in members if member["peer_url"] == peer_url)
        pairs = [f"{member['name'] or name}={member['peer_url']}" for member in members]
        print(f"Member {new['id']:x} added to cluster\n")
        print(f'ETCD_NAME="{name}"\nETCD_INITIAL_CLUSTER="{",".join(pairs)}"')
        print('ETCD_INITIAL_CLUSTER_STATE="existing"')

    def _remove(self, member: str) -> None:
        self._client.ask("/v3/member-remove", {"id": int(member, 16)})
        print(f"Member {member} removed from cluster")

    def _health(self, endpoints: Sequence[str]) -> int:
        healths = []
        for url in endpoints:
            began, problem = time.monotonic(), ""
            client = Client([url], self._files, self._limit)
            try:
                client.ask("/v3/health")
            except EtcdError as error:
                problem = str(error)
            took = f"{(time.monotonic() - began) * 1000:.3f}ms"
            health = {"endpoint": url, "health": not problem, "took": took}
            healths.append({**health, **({"error": problem} if problem else {})})
        if self._json:
            self._print(healths)
        for health in () if self._json else healths:
            if health["health"]:
                what = "is healthy: successfully committed proposal"
                print(f"{health['endpoint']} {what}: took = {health['took']}")
            else:
                what = f"is unhealthy: failed to commit proposal: {health['error']}"
                print(f"{health['endpoint']} {what}", file=sys.stderr)
        if all(health["health"] for health in healths):
            return 0
        print("Error: unhealthy cluster", file=sys.stderr)
        return 1

    def _status(self, endpoints: Sequence[str]) -> int:
        statuses: list[dict[str, Any]] = []
        for url in endpoints:
            try:
                status = self._client.ask_one(url, "/v3/status")
            except (OSError, EtcdError) as error:
                what = f"Failed to get the status of endpoint {url} ({error})"
                print(what, file=sys.stderr)
            else:
                statuses.append({"Endpoint": url, "Status": _status(status)})
        if self._json:
            self._print(statuses)
        else:
            self._tell(
                _STATUS, [_row(one["Endpoint"], one["Status"]) for one in statuses]
            )
        return 0 if len(statuses) == len(endpoints) else 1

    def _tell(self, names: Sequence[str], rows: Sequence[tuple[str, ...]]) -> None:
        """Print a line for each, or a table."""
        if not self._table:
            for row in rows:
                print(", ".join(row))
            return
        widths = [max(map(len, column)) for column in zip(names, *rows, strict=True)]
        rule = f"+{'+'.join('-' * (width + 2) for width in widths)}+"
        print(rule)
        for number, row in enumerate((tuple(names), *rows)):
            cells = map(str.ljust, row, widths)
            print(f"| {' | '.join(cells)} |")
            if number in (0, len(rows)):
                print(rule)

    @staticmethod
    def _print(answer: Any) -> None:
        print(json.dumps(answer, separators=(",", ":")))


def _member(member: dict[str, Any]) -> dict[str, Any]:
    known = {"ID": member["id"], "peerURLs": [member["peer_url"]]}
    if not member["client_url"]:
        return known
    return {**known, "name": member["name"], "clientURLs": [member["client_url"]]}


def _row(endpoint: str, state: dict[str, Any]) -> tuple[str, ...]:
    number, index = state["header"]["member_id"], str(state["raftIndex"])
    leads = str(state.get("leader") == number).lower()
    columns = (f"{number:x}", VERSION, f"{state['dbSize']} B", leads, "false")
    problems = ", ".join(state.get("errors", []))
    return (endpoint, *columns, str(state["raftTerm"]), index, index, problems)


def _status(status: dict[str, Any]) -> dict[str, Any]:
    term, leader = status["raft_term"], status["leader"]
    header = {
        "member_id": status["member_id"],
        "revision": status["revision"],
        "raft_term": term,
    }
    return {
        "header": header,
        "version": status["version"],
        "dbSize": status["size"],
        **({"leader": leader} if leader else {"errors": ["etcdserver: no leader"]}),
        "raftIndex": status["revision"],
        "raftTerm": term,
    }


def main(argv: Sequence[str] | None = None) -> int:
    options = _arguments(argv)
    try:
        return EtcdCtl(options).run(options)
    except EtcdError as error:
        print(f"Error: {error}", file=sys.stderr)
        return 1


if __name__ == "__main__":
    sys.exit(main())
