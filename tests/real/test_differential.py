# SPDX-License-Identifier: Apache-2.0
"""The laboratory's Kubernetes API answers what a real one answers.

``KUBERNETES_BIN`` is a search path, as ``PATH`` is, for ``etcd``, ``kube-apiserver``,
``kube-controller-manager``, ``kube-scheduler`` and ``kubectl``; ``doc/source/lab.rst``
says where they come from and with which versions this was seen.
"""

import functools
import json
import os
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.real.differential import (
    rows_accounts,
    rows_api,
    rows_applications,
    rows_faults,
    rows_nodes,
    rows_objects,
    rows_tenants,
    rows_workloads,
)
from tests.real.differential.accepted import ACCEPTED
from tests.real.differential.compare import differences, run
from tests.real.differential.emulator import Emulator
from tests.real.differential.kubelets import NAMES, SILENT, Kubelets
from tests.real.differential.real import ControlPlane, make_certificates
from tests.real.differential.site import Site

PROGRAMS = (
    *("etcd", "kube-apiserver", "kube-controller-manager", "kube-scheduler"),
    "kubectl",
)
BINARIES = {
    name: Path(path)
    for name in PROGRAMS
    if (path := shutil.which(name, path=os.environ.get("KUBERNETES_BIN", "")))
}
PARTS = (
    rows_api,
    rows_objects,
    rows_applications,
    rows_accounts,
    rows_tenants,
    rows_nodes,
    rows_workloads,
    rows_faults,
)
ROWS = [row for part in PARTS for row in part.ROWS]
missing = [name for name in PROGRAMS if name not in BINARIES]
pytestmark = pytest.mark.skipif(
    bool(missing), reason=f"not found on KUBERNETES_BIN: {', '.join(missing)}"
)


def _version() -> str:
    """What the binaries are, with a leading ``v``."""
    command = [str(BINARIES["kubectl"]), "version", "--client", "-o", "json"]
    done = subprocess.run(command, check=True, capture_output=True)
    return str(json.loads(done.stdout)["clientVersion"]["gitVersion"])


def _site(name: str, url: str, directory: Path) -> Site:
    home = directory / name
    home.mkdir()
    return Site(name, BINARIES["kubectl"], url, directory / "ca.crt", home)


def _kubelets(site: Site, directory: Path) -> Kubelets:
    client = directory / "admin.pem"
    parts = ("admin.crt", "admin.key")
    client.write_text("".join((directory / part).read_text() for part in parts))
    return Kubelets(site, client, runs_pods=site.name == "real")


def _all_ready(site: Site) -> bool:
    nodes = site.get("/api/v1/nodes")["items"]
    untainted = [n for n in nodes if len(n["spec"].get("taints", [])) < 2]
    accounts = site.get("/api/v1/namespaces/default/serviceaccounts")["items"]
    return len(nodes) == len(untainted) == len(NAMES) and bool(accounts)


@pytest.fixture(scope="module")
def seen(
    tmp_path_factory: pytest.TempPathFactory,
) -> Iterator[list[dict[str, Any]]]:
    """What each site showed: the real one, then the emulator."""
    directory = tmp_path_factory.mktemp("differential")
    make_certificates(directory)
    plane, emulator = ControlPlane(BINARIES, directory), Emulator(directory, _version())
    kubelets: list[Kubelets] = []
    try:
        plane.start()
        emulator.start()
        real = _site("real", plane.url, directory)
        other = _site("emulator", emulator.url, directory)
        real.actions |= {
            "stop": lambda: plane.stop("kube-apiserver"),
            "start": plane.start_api_server,
            "lose etcd": lambda: plane.stop("etcd"),
        }
        other.actions |= {
            "stop": emulator.stop,
            "start": emulator.restart,
            "lose etcd": emulator.lose_etcd,
        }
        for site in (real, other):
            kubelets.append(_kubelets(site, directory))
            kubelets[-1].start()
            site.wait(functools.partial(_all_ready, site))
            rows_faults.prepare(site)
            kubelets[-1].silent.add(SILENT)
        yield run((real, other), ROWS)
    finally:
        emulator.stop()
        plane.stop_all()
        for kubelet in kubelets:
            kubelet.stop()


def test_the_emulator_answers_as_a_real_server(seen: list[dict[str, Any]]) -> None:
    found = differences(*seen)
    new = [one for one in found if not any(one.is_meant(a) for a in ACCEPTED)]
    assert not new, f"{len(new)} differences:\n" + "\n".join(map(str, new))


def test_what_is_accepted_does_differ(seen: list[dict[str, Any]]) -> None:
    found = differences(*seen)
    lasting = [a for a in ACCEPTED if not a.is_of_time]
    past = [a for a in lasting if not any(one.is_meant(a) for one in found)]
    assert not past, "no longer different, take it out of the table"


def test_names_of_rows_are_unique() -> None:
    names = [row.name for row in ROWS]
    assert sorted(set(names)) == sorted(names)
