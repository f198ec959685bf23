# SPDX-License-Identifier: Apache-2.0
"""Applications on a cluster of the API stand-in, by the real kubectl and Helm."""

import copy
from typing import Any

import pytest
import yaml

from lab import settings as lab_settings
from tacker_k8s_mgmt import errors
from tacker_k8s_mgmt.config import Limits
from tacker_k8s_mgmt.features.applications.feature import ApplicationsWork
from tacker_k8s_mgmt.features.applications.host import ApplicationHost
from tacker_k8s_mgmt.model.nodes import Node
from tacker_k8s_mgmt.operations.state import ClusterState, OperationContext
from tacker_k8s_mgmt.operations.step import Runner, Step
from tacker_k8s_mgmt.remote.kubernetes.api import ClusterApi
from tacker_k8s_mgmt.remote.ssh.session import Session
from tacker_k8s_mgmt.remote.timing import Clock
from tacker_k8s_mgmt.request.reader import ClusterRequest, RequestReader
from tacker_k8s_mgmt.text import Redactor
from tests.helpers.fakes.journal import FakeJournal
from tests.helpers.fakes.site import FakeSite
from tests.helpers.kubeapi import ADMIN_TOKEN
from tests.helpers.kubectl_server import KubeSite
from tests.helpers.operations import instantiated
from tests.helpers.requests import VNF, additional_params

HELM = lab_settings.from_environment().programs / "helm"
needs_helm = pytest.mark.skipif(not HELM.exists(), reason="no helm in the cache")
# The fixture `state` of tests/unit/remote has them.
with_shop, with_wiki = (
    pytest.mark.parametrize("state", [name], indirect=True) for name in ("shop", "wiki")
)

# The administrator's credentials are those of the stand-in.
_HELM = """
printf '%s\\n' "$*" >>"$HOME/helm-calls"
arguments=()
while (($#)); do
    case $1 in
    --kubeconfig | --kube-apiserver) shift ;;
    *) arguments+=("$1") ;;
    esac
    shift
done
exec {helm} --kube-apiserver={url} --kube-ca-file={ca} --kube-token={token} \
    "${{arguments[@]}}"
"""


def install_helm(site: KubeSite) -> None:
    """Give the SSH server Helm."""
    words = {"helm": HELM, "url": site.kube.url, "ca": site.kube.certificate}
    site.sshd.program("helm", _HELM.format(**words, token=ADMIN_TOKEN))


class ApplicationSite(FakeSite):
    """A site of fakes, with a real client of the stand-in's cluster."""

    def __init__(self) -> None:
        super().__init__()
        self.session: Session | None = None
        self.kube: KubeSite | None = None

    def cluster(self, control_plane: Node) -> Any:
        if self.session is None or self.kube is None:
            return super().cluster(control_plane)
        return ClusterApi(self.session, self.kube.kube.url)

    def pack(self, *objects: Any, path: str = "api.yaml") -> None:
        """Have these objects in one file of the VNF package, and the other as usual."""
        self.package_content = files(**{path: [*objects]})

    def applications(self, control_plane: Node) -> Any:
        assert self.session is not None
        assert self.kube is not None
        return ApplicationHost(self.session, self.kube.kube.url, 0, None)


def opened(kube: KubeSite, session: Session) -> ApplicationSite:
    """A site with a whole cluster, whose API is the stand-in's, and a package."""
    site = instantiated(kind=ApplicationSite)
    assert isinstance(site, ApplicationSite)
    site.session, site.kube = session, kube
    site.package_content = files()
    return site


def bring_first(kube: KubeSite, session: Session, name: str) -> None:
    """Bring one application to a new cluster: ``shop`` or ``wiki``."""
    site = opened(kube, session)
    if name == "wiki":
        install_helm(kube)
        site.package_content = chart(web=WEB, schema=HOOK)
    bring(site, wanted({"shop": SHOP, "wiki": BOOK}[name]))


def bring(site: ApplicationSite, params: ClusterRequest) -> FakeJournal:
    """Bring the applications to what the parameters want."""
    state = state_of(site, params)
    changes = ApplicationsWork(state)
    check = Step("check-applications", "check the applications", changes.check)
    return run(state, (check, *changes.changes()), changes.left)


def state_of(site: ApplicationSite, params: ClusterRequest) -> ClusterState:
    deps = OperationContext(
        params,
        VNF,
        site,  # type: ignore[arg-type]
        Clock(),
        Limits(ready_timeout=60, poll_interval=0.2),
        on_progress=lambda progress: None,
    )
    state = ClusterState(deps)
    state.nodes, state.machines = state.require_inventory(), site.machines()
    return state


def run(state: ClusterState, steps: Any, left: Any) -> FakeJournal:
    journal = FakeJournal()
    redact = Redactor(state.params.secrets())
    Runner("test", journal, state.deps.clock, redact, left).run(steps)
    return journal


def manifest(*objects: Any) -> bytes:
    """A file with these objects."""
    return bytes(yaml.safe_dump_all(objects).encode())


def deployment(name: str, *command: str, image: str = "a/b", **spec: Any) -> Any:
    """A Deployment of one pod."""
    return _workload("apps/v1", "Deployment", name, command, image, spec)


def job(name: str, *command: str, image: str = "a/b", retries: int = 0) -> Any:
    """A Job."""
    made = _workload("batch/v1", "Job", name, command, image, {})
    spec = made["spec"]
    del spec["selector"]
    spec["template"]["spec"]["restartPolicy"] = "Never"
    spec["backoffLimit"] = retries
    return made


def _workload(
    version: str, kind: str, name: str, command: Any, image: str, spec: Any
) -> Any:
    labels = {"app": name}
    container: dict[str, Any] = {"name": "main", "image": image}
    if command:
        container["command"] = list(command)
    pod = {"containers": [container], **copy.deepcopy(spec)}
    return {
        "apiVersion": version,
        "kind": kind,
        "metadata": {"name": name},
        "spec": {
            "selector": {"matchLabels": labels},
            "template": {"metadata": {"labels": labels}, "spec": pod},
        },
    }


def service(name: str, port: int = 80, **spec: Any) -> Any:
    """A Service in front of the pods of a workload of that name."""
    return {
        "apiVersion": "v1",
        "kind": "Service",
        "metadata": {"name": name},
        "spec": {"selector": {"app": name}, "ports": [{"port": port}], **spec},
    }


def chart(**templates: str) -> dict[str, bytes]:
    """The files of a chart, by their paths in the package."""
    head = "apiVersion: v2\nname: wiki\nversion: 1.0.0\n"
    files = {"Chart.yaml": head, "values.yaml": "{}\n"}
    files |= {f"templates/{name}.yaml": text for name, text in templates.items()}
    return {f"charts/wiki/{path}": text.encode() for path, text in files.items()}


LIMITS = {"configuration": 60, "bootstrap": 20, "rollout": 20, "health": 5}
SHOP = {
    "name": "shop",
    "manifests": [{"path": "database.yaml"}, {"path": "api.yaml"}],
    "config": [{"name": "settings", "data": [{"key": "debug", "value": "no"}]}],
    "secrets": [
        {"name": "keys", "data": [{"key": "token", "value": {"file": "shop"}}]}
    ],
    "limits": LIMITS,
    "probe": {"service": "api", "port": 80},
}
WIKI = {
    "name": "wiki",
    "namespace": "docs",
    "chart": {"path": "charts/wiki"},
    "limits": LIMITS,
}
# With values that its chart renders.
BOOK = {**WIKI, "values": {"image": "a/b"}}
DEBUGGED = [{"name": "settings", "data": [{"key": "debug", "value": "yes"}]}]
WEB = """
apiVersion: apps/v1
kind: Deployment
metadata: {name: web}
spec:
  replicas: {{ .Values.replicas | default 1 }}
  selector: {matchLabels: {app: web}}
  template:
    metadata: {labels: {app: web}}
    spec:
      containers:
      - {name: web, image: {{ required "image is needed" .Values.image }} }
"""
HOOK = """
apiVersion: batch/v1
kind: Job
metadata:
  name: schema
  annotations: {"helm.sh/hook": "pre-install,pre-upgrade"}
spec:
  backoffLimit: 0
  template:
    spec:
      restartPolicy: Never
      containers:
      - name: main
        image: a/b
        command: [sh, -c, {{ .Values.schema | default "echo done" | quote }}]
"""


def files(**changes: list[Any]) -> dict[str, bytes]:
    """Database first, then the Job for the schema, the API and its Service."""
    content = {
        "database.yaml": [deployment("database"), service("database", 3306)],
        "api.yaml": [
            job("schema", "sh", "-c", "echo made"),
            deployment("api"),
            service("api"),
        ],
        **changes,
    }
    return {path: manifest(*objects) for path, objects in content.items()}


def wanted(*apps: Any, **more: Any) -> ClusterRequest:
    changes = {"applications": [*apps], "cluster": {"helm": True}, **more}
    parsed = RequestReader(lambda _: "s3cret-of-the-shop").read(
        additional_params(**changes)
    )
    assert parsed is not None
    return parsed


def failure(cluster: ApplicationSite, *apps: Any, **more: Any) -> str:
    with pytest.raises(errors.StepFailed) as caught:
        bring(cluster, wanted(*apps, **more))
    return str(caught.value)


def record(cluster: Any, name: str = "shop") -> Any:
    return cluster.applications(None).records.read().get(name)


def get(site: KubeSite, path: str) -> Any:
    return site.kube.get(path)


def job_uid(site: KubeSite) -> str:
    """Of the shop's Job: another one is another run."""
    made = get(site, "/apis/batch/v1/namespaces/shop/jobs/schema")
    return str(made["metadata"]["uid"])


def titles(site: KubeSite, namespace: str = "shop") -> list[str]:
    kinds = ("deployments.apps,jobs,services,configmaps,secrets,pods",)
    options = ("-n", namespace, "-o", "name")
    done = site.kube.kubectl("get", *kinds, *options)
    return sorted(done.stdout.split())


def outcomes(journal: FakeJournal) -> list[tuple[str, str]]:
    return [
        (one["step"], one["outcome"])
        for one in journal.records
        if one["event"] == "step-end"
    ]
