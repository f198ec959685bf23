# SPDX-License-Identifier: Apache-2.0
"""Semantic checks of applications, before one of them changes anything."""

from collections.abc import Iterable, Iterator, Sequence

from tacker_k8s_mgmt.model import manifests
from tacker_k8s_mgmt.model.applications import owner_of
from tacker_k8s_mgmt.model.manifests import OWNER, title
from tacker_k8s_mgmt.model.node_marks import NodeMarks
from tacker_k8s_mgmt.operations.application_sources import Wanted, namespace_of
from tacker_k8s_mgmt.remote.kubernetes.application_host import ApplicationHost
from tacker_k8s_mgmt.request.applications import Application
from tacker_k8s_mgmt.request.reader import InstallParams


def problems(
    wanted: Sequence[Wanted],
    host: ApplicationHost,
    nodes: Sequence[NodeMarks],
    params: InstallParams,
) -> Iterator[str]:
    """What keeps the applications from working, a sentence each.

    :param nodes: with their labels as they are to be.
    """
    allowed = _registries(params)
    for one in wanted:
        for text in (*_places(one, nodes), *_images(one, allowed), *_api(one, host)):
            yield f"application {one.app.name}: {text}"


def lacking_labels(
    apps: Iterable[Application], nodes: Sequence[NodeMarks]
) -> Iterator[str]:
    """The labels that applications require, and too few nodes have.

    :param nodes: with their labels as they are to be.
    """
    for app in apps:
        for needed in app.requires:
            key, _, value = needed.label.partition("=")
            having = sum(node.labels.get(key) == value for node in nodes)
            if having < needed.nodes:
                yield (
                    f"application {app.name}: it requires {needed.nodes} nodes with "
                    f"the label {needed.label}, and {having} have it"
                )


def _places(wanted: Wanted, nodes: Sequence[NodeMarks]) -> Iterator[str]:
    for workload in manifests.bound(wanted.objects):
        if not any(map(workload.accepts, nodes)):
            selector = ", ".join(
                f"{k}={v}" for k, v in workload.placement.selector.items()
            )
            needs = f"the labels {selector}" if selector else "its node affinity"
            yield f"{workload} can run on no node, for none has {needs}"


def _registries(params: InstallParams) -> frozenset[str]:
    """Hosts from which nodes can pull; empty where nothing is known about that.

    Without a registry that replaces those of the Internet, nodes may reach any.
    """
    cluster = params.cluster
    if not cluster.offline.registry_host:
        return frozenset()
    hosts = {cluster.offline.registry_host.partition("/")[0]}
    hosts |= {registry.prefix.partition("/")[0] for registry in cluster.registries}
    hosts |= {one.server.partition("/")[0] for one in params.private_registries}
    return frozenset(hosts)


def _images(wanted: Wanted, allowed: frozenset[str]) -> Iterator[str]:
    for image, user in manifests.images(wanted.objects).items():
        if allowed and manifests.registry_of(image) not in allowed:
            yield (
                f"{user} needs the image {image}, but the cluster has images from "
                f"{', '.join(sorted(allowed))} only"
            )


def _api(wanted: Wanted, host: ApplicationHost) -> Iterator[str]:
    """What the API server has against its objects."""
    owner, objects = owner_of(wanted.app.name), wanted.content.objects
    # A Job that is there is replaced, not changed.
    jobs = manifests.of_kinds(objects, manifests.JOB)
    present = host.objects.present(jobs)
    for job in present:
        if (job["metadata"].get("labels") or {}).get(OWNER) != owner:
            yield f"{title(job)} is in the cluster already, and is not its own"
    space = namespace_of(wanted.app)
    missing = [] if host.objects.present([space]) else [space]
    others = manifests.without(objects, present)
    # Helm itself refuses objects that are not of its release.
    if others:
        yield from host.objects.check([*missing, *others], owner=owner)
    for one in wanted.objects:
        if manifests.identity(one) == manifests.identity(space):
            yield f"it has {title(one)} itself, which is made for it"
