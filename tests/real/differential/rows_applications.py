# SPDX-License-Identifier: Apache-2.0
"""What applications need: server-side apply, Jobs, Services behind the API server."""

from typing import Any

from tests.helpers.applications import job, service
from tests.real.differential.rows import Row, http, kubectl, manifest_list, patch
from tests.real.differential.rows_api import CONFIG_MAPS, config_map

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


ROWS: tuple[Row, ...] = (
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
