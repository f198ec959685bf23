# SPDX-License-Identifier: Apache-2.0
"""Settings of nodes on fakes: as requests want them, and as nodes have them."""

from collections.abc import Collection, Mapping
from dataclasses import replace
from typing import Any, cast

from tacker_k8s_mgmt.features.node_settings.marks import NodeMetadata
from tacker_k8s_mgmt.features.table import FEATURES
from tacker_k8s_mgmt.operations.cluster_check import ClusterInspection
from tacker_k8s_mgmt.operations.modify import Modify
from tacker_k8s_mgmt.remote.readonly_site import ReadOnlySite
from tacker_k8s_mgmt.status.facts import HealCommands
from tests.helpers.fakes.journal import FakeJournal
from tests.helpers.fakes.site import FakeSite
from tests.helpers.operations import run
from tests.helpers.requests import VNF, params

DISK = {"k8s_nodes:worker:label:disk": "ssd"}
OUT = {"k8s_nodes:vnfc:five:maintenance": "true"}
ALL = {
    **DISK,
    **OUT,
    "k8s_nodes:control_plane:annotation:note": "hands off",
    "k8s_nodes:vnfc:fiftyfive:taint:gpu:NoSchedule": "a",
}


def wants(site: FakeSite, metadata: Mapping[str, str], **servers: str) -> None:
    """Have a request want these settings.

    :param servers: the server of each VNFC, besides those that are known.
    """
    known = {"five": "server-5", "fiftyfive": "server-55", "plane": "server-4"}
    # A request names what it removes, too.
    site.metadata, site.vnfc_servers = dict(metadata), {**known, **servers}
    site.patch = {**metadata, **OUT}


def modify(
    site: FakeSite,
    metadata: Mapping[str, str] | None = None,
    wanted: Any = None,
    **arguments: Any,
) -> FakeJournal:
    if metadata is not None:
        wants(site, metadata)
    return run(Modify, site, wanted, patch=["k8s_nodes"], **arguments)


def marks(site: FakeSite, name: str) -> NodeMetadata:
    cordoned = name in site.cordoned
    return replace(site.marks.get(name, NodeMetadata(name)), unschedulable=cordoned)


def labels(site: FakeSite, name: str) -> Mapping[str, str]:
    return marks(site, name).labels


def routes(site: FakeSite) -> Collection[str]:
    return {name for name, _ in site.routes}


def heals(site: FakeSite) -> HealCommands:
    return HealCommands(VNF, vnfcs=site.vnfc_servers)


def report(site: FakeSite) -> list[tuple[str, str]]:
    """What ``cluster check`` finds."""
    view = cast(ReadOnlySite, site)
    done = ClusterInspection(
        params(), VNF, view, site.metadata, heals(site), features=FEATURES
    ).take()
    return [(row.name, found.text) for row in done.rows for found in row.findings]
