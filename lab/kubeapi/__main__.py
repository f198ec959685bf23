# SPDX-License-Identifier: Apache-2.0
"""``python3 -m kubeapi``: one stand-in cluster until it is stopped."""

import argparse
import signal
import sys
import threading
from pathlib import Path

from . import __doc__ as purpose
from .etcd import Files
from .server import start, stop
from .settings import Listener, Replication, Settings


def _arguments() -> argparse.Namespace:
    defaults = Settings()
    parser = argparse.ArgumentParser(
        prog="kubeapi",
        description=purpose,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--host", default="127.0.0.1")
    parser.add_argument("--port", type=int, default=6443)
    parser.add_argument("--cert", default="", help="PEM file; plain HTTP without one")
    parser.add_argument("--key", default="", help="PEM file")
    parser.add_argument("--ca", default="", help="PEM file of the clients' CA")
    parser.add_argument(
        "--token-file", type=Path, help="admin bearer tokens, one on each line"
    )
    parser.add_argument("--state", type=Path, help="JSON file to keep the cluster in")
    parser.add_argument(
        "--etcd-servers", default="", help="URLs: keep it there, as one of several"
    )
    parser.add_argument("--etcd-cafile", default="")
    parser.add_argument("--etcd-certfile", default="")
    parser.add_argument("--etcd-keyfile", default="")
    parser.add_argument(
        "--advertise-url", default="", help="where the other servers reach this one"
    )
    parser.add_argument("--proxy-client-cert-file", default="")
    parser.add_argument("--proxy-client-key-file", default="")
    parser.add_argument("--hollow-nodes", default="", help="names, with commas between")
    parser.add_argument("--version", default=defaults.version)
    parser.add_argument("--service-network", default=defaults.service_network)
    parser.add_argument("--pod-network", default=defaults.pod_network)
    parser.add_argument(
        "--node-grace", type=float, default=defaults.node_grace, metavar="SECONDS"
    )
    parser.add_argument(
        "--refusal", default="", help="file with a status that all requests get"
    )
    parser.add_argument("-v", "--verbose", action="store_true", help="log requests")
    return parser.parse_args()


def _replication(options: argparse.Namespace) -> Replication | None:
    if not options.etcd_servers:
        return None
    return Replication(
        url=options.advertise_url,
        endpoints=tuple(options.etcd_servers.split(",")),
        etcd=Files(options.etcd_cafile, options.etcd_certfile, options.etcd_keyfile),
        proxy=(options.proxy_client_cert_file, options.proxy_client_key_file),
    )


def main() -> int:
    options = _arguments()
    tokens = options.token_file.read_text().split() if options.token_file else []
    listener = Listener(
        host=options.host,
        port=options.port,
        certificate=options.cert,
        key=options.key,
        ca=options.ca,
        admin_tokens=frozenset(tokens),
        verbose=options.verbose,
        refusal=options.refusal,
    )
    settings = Settings(
        version=options.version,
        service_network=options.service_network,
        pod_network=options.pod_network,
        node_grace=options.node_grace,
    )
    told_to_stop = threading.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: told_to_stop.set())
    hollow = [name for name in options.hollow_nodes.split(",") if name]
    server = start(listener, settings, options.state, hollow, _replication(options))
    print(f"serving on {options.host} port {server.port}", flush=True)
    told_to_stop.wait()
    stop(server)
    return 0


if __name__ == "__main__":
    sys.exit(main())
