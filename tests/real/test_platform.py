# SPDX-License-Identifier: Apache-2.0
"""The profile starlingx, applications and tenants, through both of Tacker's APIs.

The pod network is flannel, which the mirror has, in place of the profile's. It enforces
no policies, so the tenants are not isolated by packets.
"""

import json
import sys
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from lab import client
from lab import settings as lab_settings
from lab.services.mirror import REGISTRY_ADDRESS
from tests.integration import applications, tenants
from tests.integration.applications import NOTES, notes, want
from tests.integration.cluster import Cluster, eventually
from tests.integration.cluster_checks import check
from tests.integration.v2 import ClusterV2
from tests.real import keystone_webhook, settings, workloads
from tests.real.cluster import consistent, versions
from tests.real.conftest import RealLab, RealLabV2
from tests.real.keystone_webhook import Webhook
from tests.real.platform import (
    BROKEN,
    LIMITS,
    answers,
    forwarded,
    get,
    living,
    pods,
    query,
    released,
    source,
    wiki,
)

pytestmark = pytest.mark.lab

BLUE = {
    "name": "blue",
    "quota": {"pods": 2},
    "limits": {"default": {"cpu": "500m", "memory": "64Mi"}},
    "isolated": False,
}
RED = {"name": "red", "pod_security": "restricted", "isolated": False}
NODE_REGISTRY = "registry.local:5000"
#: By tenants.rst: what the token of one may do in its namespace, and in no other.
ALLOWED = (
    *(("create", "pods"), ("delete", "deployments.apps"), ("create", "jobs.batch")),
    *(("create", "services"), ("get", "secrets"), ("create", "configmaps")),
)
FORBIDDEN = (
    *(("delete", "networkpolicies"), ("create", "resourcequotas")),
    *(("delete", "namespaces"), ("get", "nodes"), ("create", "endpoints")),
)


@pytest.fixture(scope="module", params=["v1", "v2"])
def lab(request: pytest.FixtureRequest, tmp_path_factory: Any) -> RealLab | RealLabV2:
    place = tmp_path_factory.mktemp(f"platform-{request.param}")
    kind = RealLab if request.param == "v1" else RealLabV2
    return kind(place, source=source(request.param, place / "mysite"))


@pytest.fixture(scope="module")
def webhook(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Webhook]:
    with keystone_webhook.running(tmp_path_factory.mktemp("webhook")) as made:
        yield made


@pytest.fixture(scope="module")
def cluster(
    lab: RealLab,
    webhook: Webhook,
    record_testsuite_property: Callable[[str, object], None],
) -> Iterator[Cluster]:
    asked: dict[str, Any] = {"url": webhook.url}
    # kubespray has a CA for the tokens only.
    if lab.api == "v1":
        asked["skip_tls_verify"] = True
    else:
        asked |= {"ca_certificate": webhook.ca.read_text(), "authorization": False}
    options = {"authentication": {"webhook": asked}}
    with lab.instance("platform", drain=settings.DRAIN, cluster=options) as made:
        wanted = made.parameters
        hub = {"prefix": "docker.io", "mirrors": [f"http://{REGISTRY_ADDRESS}"]}
        wanted["cluster"]["registries"].append({**hub, "skip_tls_verify": True})
        wanted |= {"profile": "starlingx", "tenants": [BLUE]}
        wanted["applications"] = [notes(limits=LIMITS)]
        if isinstance(lab, RealLabV2):
            lab.keep_secrets_in_barbican(wanted)
        made.instantiate()
        record_testsuite_property("versions", json.dumps(versions(made)))
        yield made


def give_up(cluster: Cluster) -> None:
    """End the operation that has failed; what was before is in force already."""
    if isinstance(cluster, ClusterV2):
        cluster.handle("rollback", "ROLLED_BACK")
    else:
        cluster.handle("fail", "FAILED")


class TestProfile:
    def test_the_cluster_is_the_platform(self, cluster: Cluster) -> None:
        consistent(cluster, 2)
        for node in cluster.nodes():
            labels = node["metadata"]["labels"]
            is_worker = node["metadata"]["name"].startswith("worker-")
            role = "compute-node" if is_worker else "control-plane"
            assert labels[f"openstack-{role}"] == "enabled"
        (kind,) = get(cluster, "storageclasses")["items"]
        assert kind["metadata"]["name"] == "local-path"
        server = cluster.server("masterNode")
        assert client.on_host(server, "helm", "version", "--short").startswith("v3.")

    def test_nodes_pull_from_its_registry(self, cluster: Cluster) -> None:
        claims = get(cluster, "pvc", "-n", "kube-system")["items"]
        assert [claim["status"]["phase"] for claim in claims] == ["Bound"]
        with forwarded(cluster) as port:
            copy = ("skopeo", "--insecure-policy", "copy", "--quiet")
            plain = ("--src-tls-verify=false", "--dest-tls-verify=false")
            image = f"docker://{workloads.IMAGE}"
            target = f"docker://localhost:{port}/site/web:1"
            client.command([*copy, *plain, image, target])
        image = f"--image={NODE_REGISTRY}/site/web:1"
        cluster.kubectl("create", "deployment", "pulled", image)
        cluster.kubectl(
            *("rollout", "status", "deployment/pulled", "--timeout", "120s")
        )
        cluster.kubectl("delete", "deployment", "pulled")


class TestKeystone:
    def test_members_of_the_project_are_users_and_others_not(
        self, lab: RealLab, cluster: Cluster
    ) -> None:
        token = str(keystone_webhook.user().get_token())
        told = tenants.with_token(cluster, token, "auth", "whoami", "-o", "json")
        user = json.loads(told.stdout)["status"]["userInfo"]
        assert user["username"] == lab_settings.USER
        # In v2 only Kubernetes' own roles count, and this user has none.
        expected = lab.api == "v1"
        assert tenants.can(cluster, token, "list", "pods", "notes") is expected
        assert not tenants.can(cluster, token, "create", "pods", "notes")
        assert not tenants.can(cluster, token, "list", "secrets", "notes")
        told = tenants.with_token(cluster, f"{token[:-8]}AAAAAAAA", "get", "pods")
        assert "Unauthorized" in told.stderr


class TestApplications:
    def test_the_sample_is_bootstrapped_with_the_cluster(
        self, cluster: Cluster
    ) -> None:
        assert applications.workloads(cluster, "notes") == NOTES
        assert query(cluster, "SHOW TABLES") == "note"
        eventually(lambda: answers(cluster))
        query(cluster, "INSERT INTO note VALUES (1, 'kept')")

    def test_it_is_reconfigured(self, cluster: Cluster) -> None:
        before = {pod["metadata"]["uid"] for pod in pods(cluster, "notes-api")}
        changed = notes(limits=LIMITS)
        changed["config"][0]["data"].append({"key": "debug", "value": "yes"})
        want(cluster, changed, wiki())
        after = pods(cluster, "notes-api")
        assert not before & {pod["metadata"]["uid"] for pod in after}
        shown = get(cluster, "configmap", "notes", "-n", "notes")
        assert shown["data"]["debug"] == "yes"
        assert query(cluster, "SELECT text FROM note") == "kept"
        assert answers(cluster)
        assert released(cluster) == "web-0.1.0"
        assert check(cluster).returncode == 0

    def test_a_bad_image_goes_back(self, cluster: Cluster) -> None:
        bad = wiki(image=f"{REGISTRY_ADDRESS}/lab/web:none")
        text = want(cluster, notes(limits=LIMITS), bad, expect="FAILED_TEMP")
        assert "wiki" in text
        assert "ImagePullBackOff" in text or "ErrImagePull" in text
        assert "What it was before is in force again." in text
        give_up(cluster)
        (pod,) = eventually(lambda: living(cluster, "wiki"))
        assert pod["spec"]["containers"][0]["image"] == workloads.IMAGE
        assert answers(cluster)

    def test_a_job_that_fails_says_why(self, cluster: Cluster) -> None:
        broken = notes(limits=LIMITS)
        broken["manifests"][1]["path"] = f"Files/{BROKEN}"
        text = want(cluster, broken, wiki(), expect="FAILED_TEMP")
        assert "notes-schema" in text
        assert "You have an error in your SQL syntax" in text
        give_up(cluster)
        assert query(cluster, "SELECT text FROM note") == "kept"
        eventually(lambda: answers(cluster))

    def test_a_label_that_no_node_has_is_refused_first(self, cluster: Cluster) -> None:
        label = {"label": "openstack-storage=enabled", "nodes": 1}
        wrong = notes(limits=LIMITS, requires=[label])
        text = want(cluster, wrong, wiki(), expect="FAILED_TEMP")
        assert "it requires 1 nodes with the label openstack-storage=enabled" in text
        give_up(cluster)

    def test_a_chart_is_upgraded_and_a_failed_upgrade_goes_back(
        self, cluster: Cluster
    ) -> None:
        want(cluster, notes(limits=LIMITS), wiki("-0.2.0"))
        assert released(cluster) == "web-0.2.0"
        bad = wiki("", image=f"{REGISTRY_ADDRESS}/lab/web:none")
        want(cluster, notes(limits=LIMITS), bad, expect="FAILED_TEMP")
        give_up(cluster)
        assert released(cluster) == "web-0.2.0"
        eventually(lambda: living(cluster, "wiki"))

    def test_removal_leaves_nothing(self, cluster: Cluster) -> None:
        want(cluster, notes(limits=LIMITS, volumes="delete"))
        assert "wiki" not in tenants.namespaces(cluster)
        want(cluster)
        assert "notes" not in tenants.namespaces(cluster)
        assert not applications.is_exposed(cluster)
        volumes = get(cluster, "pv")["items"]
        claimed = {one["spec"]["claimRef"]["namespace"] for one in volumes}
        assert claimed == {"kube-system"}


class TestTenants:
    @pytest.fixture(scope="class")
    def vim(self, lab: RealLab, cluster: Cluster) -> dict[str, Any]:
        """Blue's login, as a request of the v2 API has it."""
        path = lab.scratch / "blue.json"
        config = str(client.state() / "etc" / "tacker.conf")
        words = ["tenant", "access", cluster.id, "blue", "-o", str(path)]
        client.command(
            *(
                [
                    sys.executable,
                    "-m",
                    "tacker_k8s_mgmt.tools.cli",
                    *words,
                    "--config-file",
                    config,
                ],
            )
        )
        (info,) = json.loads(path.read_text())["vimConnectionInfo"].values()
        return dict(info)

    @pytest.fixture(scope="class")
    def token(self, vim: dict[str, Any]) -> str:
        return str(vim["accessInfo"]["bearer_token"])

    def test_a_tenant_may_do_nothing_in_anothers_namespace(
        self, lab: RealLab, cluster: Cluster, token: str
    ) -> None:
        project = {"keystone_project": keystone_webhook.user().get_project_id()}
        cluster.modify({"k8s_tenants": json.dumps([{**BLUE, **project}, RED])})
        assert {"blue", "red"} <= tenants.namespaces(cluster)
        if lab.api == "v1":
            assert tenants.vims(lab, cluster) == {"blue", "red"}
        for verb, kind in ALLOWED:
            assert tenants.can(cluster, token, verb, kind, "blue")
            for other in ("red", "notes", "default", "kube-system"):
                assert not tenants.can(cluster, token, verb, kind, other)
        for verb, kind in FORBIDDEN:
            assert not tenants.can(cluster, token, verb, kind, "blue")
        member = str(keystone_webhook.user().get_token())
        for verb, kind in ALLOWED:
            assert tenants.can(cluster, member, verb, kind, "blue")
            assert not tenants.can(cluster, member, verb, kind, "red")
        more = ("create", "role", "more", "--verb=create", "--resource=networkpolicies")
        said = tenants.with_token(cluster, token, *more, "-n", "blue")
        assert "attempting to grant RBAC permissions not currently held" in said.stderr
        assert check(cluster).returncode == 0
        said = tenants.with_token(cluster, token, "get", "pods", "-n", "red")
        assert "Forbidden" in said.stderr

    def test_a_cnf_of_a_tenant_runs_in_its_namespace_only_and_in_its_quota(
        self, lab: RealLab, cluster: Cluster, vim: dict[str, Any]
    ) -> None:
        manifest = workloads.web("web", workloads.CNF_PORT, replicas=2)
        with cnf_of_blue(lab, cluster, vim, manifest) as cnf:
            cnf.namespace = "red"
            cnf.refused()
            assert pods(cluster, "web", "red") == []
        with cnf_of_blue(lab, cluster, vim, manifest) as cnf:
            cnf.namespace = "blue"
            cnf.instantiate(level="two")
            eventually(lambda: len(living(cluster, "blue")) == 2)
            scale = ("scale", "deployment", "web", "-n", "blue", "--replicas", "3")
            cluster.kubectl(*scale)
            eventually(lambda: "exceeded quota" in conditions(cluster))
            assert len(pods(cluster, "web", "blue")) == 2
            error = cluster.modify(
                {"k8s_tenants": json.dumps([RED])}, expect="FAILED_TEMP"
            )
            assert "tenant blue cannot leave" in error
            give_up(cluster)
            cnf.terminate()
        eventually(lambda: not pods(cluster, "web", "blue"))

    def test_pods_have_to_keep_to_the_tenants_standard(self, cluster: Cluster) -> None:
        pod = {
            "apiVersion": "v1",
            "kind": "Pod",
            "metadata": {"name": "root", "namespace": "red"},
            "spec": {"containers": [{"name": "web", "image": workloads.IMAGE}]},
        }
        with pytest.raises(RuntimeError, match="violates PodSecurity"):
            cluster.kubectl("apply", "-f", "-", stdin=json.dumps(pod))

    def test_removal_leaves_nothing(self, lab: RealLab, cluster: Cluster) -> None:
        cluster.modify({"k8s_tenants": "[]"})
        assert not {"blue", "red"} & tenants.namespaces(cluster)
        for name in ("blue", "red"):
            assert tenants.owned(cluster, name) == ""
        if lab.api == "v1":
            assert tenants.vims(lab, cluster) == set()


def conditions(cluster: Cluster) -> str:
    """What the Deployment of the tenant's CNF says of itself."""
    return json.dumps(get(cluster, "deployment", "web", "-n", "blue")["status"])


def cnf_of_blue(
    lab: RealLab, cluster: Cluster, vim: dict[str, Any], manifest: str
) -> Any:
    """A CNF on the tenant's VIM."""
    if isinstance(lab, RealLabV2):
        return lab.cnf_on(vim, manifest)
    return lab.cnf(f"{cluster.vim_name}_blue", manifest)


def test_terminate_leaves_nothing(cluster: Cluster) -> None:
    if isinstance(cluster, ClusterV2):
        # What the requests above have set stays the operator's.
        cluster.theirs = {"k8s_applications": [], "k8s_tenants": "[]"}
    cluster.terminate()
    cluster.assert_nothing_left()
