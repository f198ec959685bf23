# SPDX-License-Identifier: Apache-2.0
"""What applications need: server-side apply, Jobs, Services behind the API server."""

from typing import Any

from tests.helpers import kubeapi
from tests.helpers.applications import job, service
from tests.real.differential.rows import Row, do, http, kubectl, manifest_list, patch
from tests.real.differential.rows_api import CONFIG_MAPS, config_map
from tests.real.differential.site import Site

_DEFAULT = "namespaces/default"
_JOBS = f"/apis/batch/v1/{_DEFAULT}/jobs"
_SERVICES = f"/api/v1/{_DEFAULT}/services"
_SETS = f"/apis/apps/v1/{_DEFAULT}"
_APPLY = "apply --server-side --force-conflicts --field-manager ours -f -"
_DATA = "kind metadata.labels data"


def _applied(**data: str) -> Any:
    """Of a manager that applies these entries only."""
    body = config_map("applied", **data)
    labels = {f"has-{name}": "1" for name in data}
    return {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        **body,
        "metadata": {"name": "applied", "labels": labels},
    }


def _stateful(kind: str) -> Any:
    labels = {"app": "defaults"}
    pod = {"containers": [{"name": "main", "image": "none"}], "nodeSelector": labels}
    spec = {
        "selector": {"matchLabels": labels},
        "template": {"metadata": {"labels": labels}, "spec": pod},
    }
    return {"metadata": {"name": "defaults"}, "spec": spec, "kind": kind}


_NOT_SCHEDULED = {"nodeSelector": {"none": "has-it"}}


def _job(*command: str) -> Any:
    made = job("schema", *command)
    made["metadata"]["namespace"] = "default"
    made["spec"]["template"]["spec"].update(_NOT_SCHEDULED)
    return made


def _short_lived() -> Any:
    """A Job that is complete at once, and then removes itself."""
    made = _job("true")
    made["metadata"]["name"] = "short-lived"
    made["spec"] |= {"completions": 0, "ttlSecondsAfterFinished": 0}
    return made


def _agent(*tolerations: Any) -> Any:
    made = _stateful("DaemonSet")
    made["metadata"]["name"] = "tolerant"
    made["spec"]["template"]["spec"]["tolerations"] = list(tolerations)
    return made


def _answers(status: int) -> Any:
    path = kubeapi.SNAPSHOTS
    return lambda site: site.wait(lambda: site.request("GET", path).status == status)


def _events(site: Site) -> Any:
    place = f"/api/v1/{_DEFAULT}/events"
    about = "fieldSelector=involvedObject.kind=Job,involvedObject.name=short-lived"
    found = site.get(f"{place}?{about}")["items"]
    ends = [one for one in found if one["reason"] == "Completed"]
    return [(one["type"], one["message"]) for one in ends]


_BEFORE = kubeapi.definition(versions=("v1beta1", "v1"))
_AFTER = kubeapi.definition(conversion=kubeapi.GONE_WEBHOOK)
_OLD = kubeapi.custom("old", "default", "snapshot.storage.k8s.io/v1beta1")
_CRD = _BEFORE["metadata"]["name"]


def _advised() -> Any:
    made = kubeapi.definition("ranks", "example.org", "Rank", ("v1",))
    made["spec"]["versions"][0]["deprecated"] = True
    return made


#: Kinds that a definition brings: served, no longer convertible, advised against.
CUSTOM = (
    kubectl("custom: define", "apply -f -", stdin=manifest_list(_BEFORE)),
    do("custom: served", _answers(200)),
    kubectl(
        "custom: api-resources", "api-resources --api-group snapshot.storage.k8s.io"
    ),
    kubectl("custom: make one", "apply -f -", stdin=manifest_list(_OLD)),
    http(
        "custom: in the other version",
        "GET",
        f"{kubeapi.SNAPSHOTS}?limit=5",
        None,
        "kind apiVersion items.*.apiVersion items.*.metadata.name",
    ),
    kubectl("custom: its converter is gone", "apply -f -", stdin=manifest_list(_AFTER)),
    do("custom: it cannot be listed", _answers(500)),
    kubectl("custom: others can", "get configmaps -n kube-node-lease"),
    kubectl("custom: advise against", "apply -f -", stdin=manifest_list(_advised())),
    do(
        "custom: advised against",
        lambda site: site.wait(
            lambda: site.request("GET", "/apis/example.org/v1/ranks").status == 200
        ),
    ),
    kubectl("custom: the warning", "get ranks.example.org"),
    kubectl("custom: delete", "delete crd ranks.example.org"),
    kubectl(
        "custom: convertible again",
        f"patch crd {_CRD} --type=merge -p "
        '\'{{"spec":{{"conversion":{{"strategy":"None","webhook":null}}}}}}\'',
    ),
    do("custom: it can be listed", _answers(200)),
    kubectl("custom: delete it", f"delete crd {_CRD}"),
)

ROWS: tuple[Row, ...] = (
    kubectl("job: short-lived", _APPLY, stdin=manifest_list(_short_lived())),
    do(
        "job: removes itself",
        lambda site: site.wait(
            lambda: site.request("GET", f"{_JOBS}/short-lived").status == 404
        ),
    ),
    Row("job: the event of its end", _events),
    http(
        "service: without node ports",
        "POST",
        f"{_SERVICES}?dryRun=All",
        service("bare", type="LoadBalancer", allocateLoadBalancerNodePorts=False),
        "spec.allocateLoadBalancerNodePorts spec.ports.*.nodePort",
    ),
    http(
        "daemonsets: number of the template",
        "POST",
        f"{_SETS}/daemonsets?dryRun=All",
        _agent({"operator": "Exists"}),
        "metadata.annotations",
    ),
    *CUSTOM,
    kubectl("apply: new", _APPLY, stdin=manifest_list(_applied(a="1", b="2"))),
    http("apply: what is there", "GET", f"{CONFIG_MAPS}/applied", None, _DATA),
    patch(
        "apply: by others",
        f"{CONFIG_MAPS}/applied?fieldManager=theirs",
        "apply",
        _applied(c="3"),
        _DATA,
    ),
    kubectl("apply: less", _APPLY, stdin=manifest_list(_applied(b="4"))),
    http("apply: what is left", "GET", f"{CONFIG_MAPS}/applied", None, _DATA),
    kubectl(
        "apply: in no namespace",
        f"{_APPLY} --dry-run=server --namespace none",
        stdin=manifest_list(_applied(a="1")),
    ),
    kubectl("job: apply", _APPLY, stdin=manifest_list(_job("true"))),
    http(
        "job: its defaults",
        "GET",
        f"{_JOBS}/schema",
        None,
        "spec.parallelism spec.completions spec.backoffLimit "
        "spec.template.metadata.labels.job-name",
    ),
    patch(
        "job: its pods cannot be changed",
        f"{_JOBS}/schema?fieldManager=ours&force=true",
        "apply",
        _job("false"),
        "code reason details.kind details.name",
    ),
    kubectl("job: delete", "delete job schema --cascade=foreground"),
    *(
        http(
            f"{plural}: how they are updated",
            "POST",
            f"{_SETS}/{plural}?dryRun=All",
            _stateful(kind),
            "spec.updateStrategy",
        )
        for plural, kind in (
            ("statefulsets", "StatefulSet"),
            ("daemonsets", "DaemonSet"),
        )
    ),
    http("proxy: no Service", "GET", f"{_SERVICES}/http:none:80/proxy/"),
    http("proxy: make one", "POST", _SERVICES, service("proxied"), "kind"),
    http("proxy: no such port", "GET", f"{_SERVICES}/http:proxied:81/proxy/"),
    http("proxy: no endpoints", "GET", f"{_SERVICES}/http:proxied:80/proxy/"),
    kubectl("proxy: delete it", "delete service proxied"),
)
