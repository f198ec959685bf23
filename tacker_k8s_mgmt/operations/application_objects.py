# SPDX-License-Identifier: Apache-2.0
"""What the cluster has of an application; its record says only what to look for."""

from oslo_log import log as logging

from tacker_k8s_mgmt import errors
from tacker_k8s_mgmt.model import manifests
from tacker_k8s_mgmt.model.applications import Record
from tacker_k8s_mgmt.model.manifests import JOB, Object, identity, is_going, title
from tacker_k8s_mgmt.remote.kubernetes.application_host import ApplicationHost

LOG = logging.getLogger(__name__)

_DEPLOYED = "deployed"


def released(host: ApplicationHost, name: str, namespace: str) -> list[Object]:
    """The objects of a chart's release, with its hooks; none if there is no release.

    :raises ClusterError: what Helm has of it cannot be understood.
    """
    try:
        objects = manifests.parse(host.charts.manifest(name, namespace))
    except manifests.Unusable as error:
        raise errors.ClusterError(
            detail=f"The manifest of the release {namespace}/{name} {error}.",
            hint="See it with `helm get manifest` and `helm get hooks`.",
        ) from None
    wide = host.objects.cluster_wide()
    return list(manifests.placed(objects, namespace, wide))


def recorded(host: ApplicationHost, record: Record) -> list[Object]:
    """The objects that were last applied completely, without hooks of a chart."""
    objects = list(record.good.objects) if record.good else []
    if record.chart:
        found = released(host, record.name, record.namespace)
        objects += [one for one in found if not manifests.is_hook(one)]
    return objects


def lacking(host: ApplicationHost, record: Record) -> tuple[str, ...]:
    """What the cluster lacks of an application that its record says is there.

    A Job is not looked for: its time to live removes it. What cannot be read, because
    the API server fails at a kind, is taken to be there.
    """
    if record.chart:
        state = host.charts.state(record.name, record.namespace)
        if state != _DEPLOYED:
            return (f"its release, which is {state or 'not there'}",)
    try:
        wanted = [one for one in recorded(host, record) if one["kind"] != JOB]
        present = host.objects.present(wanted)
    except (errors.CommandFailed, errors.ClusterError) as error:
        text = "Application %s: its objects cannot be compared: %s"
        LOG.warning(text, record.name, error)
        return ()
    there = {identity(one) for one in present if not is_going(one)}
    return tuple(title(one) for one in wanted if identity(one) not in there)
