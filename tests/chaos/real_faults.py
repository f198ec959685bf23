# SPDX-License-Identifier: Apache-2.0
"""What strikes where Kubernetes and kubespray are real, besides :mod:`.faults`."""

import contextlib
from collections.abc import Callable, Mapping

from lab import client
from lab.real.site import Site
from tests.chaos import hosts, work
from tests.chaos.hosts import Fix
from tests.chaos.scene import Scene
from tests.real import site_faults, workloads

_MANIFEST = "/etc/kubernetes/manifests/kube-apiserver.yaml"
_ASIDE = "/etc/kubernetes/kube-apiserver.yaml"


def _kill(host: str, program: str) -> None:
    """Kill a process, which systemd or the kubelet starts again."""
    client.on_host(host, "pkill", "-9", "-x", program)


def _without_api(scene: Scene) -> Fix:
    """The kubelet stops a static pod whose manifest is not there."""
    host = _control_plane(scene)
    client.on_host(host, "mv", _MANIFEST, _ASIDE)
    return hosts.later(host, f"mv {_ASIDE} {_MANIFEST}")


def _full(host: str) -> Fix:
    site_faults.fill(host)

    def empty() -> None:
        if hosts.exists(host):
            site_faults.empty(host)

    return empty


def _with_a_spoiled_file(scene: Scene) -> Fix:
    """What new nodes download is not what it should be, until that was noticed."""
    stack = contextlib.ExitStack()
    stack.enter_context(site_faults.spoiled(Site.load(client.state()).release))
    return stack.close


def _forbid_evictions(scene: Scene) -> Fix:
    """The workload's budget allows none."""
    apply, cluster = ("apply", "-f", "-"), scene.subject.cluster
    cluster.kubectl(*apply, stdin=workloads.budget(workloads.REPLICAS))

    def allow() -> None:
        cluster.kubectl(*apply, stdin=workloads.budget(work.AT_LEAST))

    return allow


def _control_plane(scene: Scene) -> str:
    return scene.subject.cluster.server("masterNode")


#: In place of what they are where Kubernetes is a stand-in, or only here.
STRIKES: Mapping[str, Callable[[Scene], Fix | None]] = {
    "API server away": _without_api,
    # A process has at most 15 characters of its name.
    "API server killed": lambda scene: _kill(_control_plane(scene), "kube-apiserver"),
    "controller manager killed": lambda scene: _kill(
        _control_plane(scene), "kube-controller"
    ),
    "etcd away": lambda scene: hosts.stopped(_control_plane(scene), "etcd"),
    "etcd killed": lambda scene: _kill(_control_plane(scene), "etcd"),
    "control plane full": lambda scene: _full(_control_plane(scene)),
    "kubelet away": lambda scene: hosts.stopped(scene.victim, "kubelet"),
    "kubelet killed": lambda scene: _kill(scene.victim, "kubelet"),
    "containerd away": lambda scene: hosts.stopped(scene.victim, "containerd"),
    "containerd killed": lambda scene: _kill(scene.victim, "containerd"),
    "worker full": lambda scene: _full(scene.victim),
    "worker stays full": lambda scene: _full(scene.victim),
    "budget": _forbid_evictions,
    "playbook fails once": _with_a_spoiled_file,
    "wrong verb": _with_a_spoiled_file,
}
