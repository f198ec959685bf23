# SPDX-License-Identifier: Apache-2.0
"""Applications on clusters that are not as kind as one hopes.

A removal that was cut off, kinds that cannot be listed, objects of others, Jobs that
remove themselves, releases that Helm has left half done.
"""

import base64
import gzip
import json

import pytest

from tacker_k8s_mgmt import errors
from tacker_k8s_mgmt.features.applications import rollout
from tacker_k8s_mgmt.features.applications.content import REMOVING
from tacker_k8s_mgmt.features.applications.feature import compare
from tacker_k8s_mgmt.features.applications.host import Charts, ChartVolumes
from tacker_k8s_mgmt.operations.cluster_check import ClusterInspection
from tacker_k8s_mgmt.remote.kubernetes.owned_objects import Manifests
from tests.helpers import kubeapi as bed
from tests.helpers.applications import (
    BOOK,
    DEBUGGED,
    HOOK,
    LIMITS,
    SHOP,
    WEB,
    WIKI,
    bring,
    chart,
    deployment,
    failure,
    files,
    get,
    install_helm,
    job,
    job_uid,
    manifest,
    needs_helm,
    opened,
    outcomes,
    record,
    service,
    titles,
    wanted,
    with_shop,
    with_wiki,
)
from tests.helpers.kubectl_server import needs_kubectl
from tests.helpers.requests import VNF

pytestmark = needs_kubectl

HOLD = '{"metadata":{"finalizers":["example.org/slow"]}}'
LET_GO = '{"metadata":{"finalizers":null}}'
SNAPSHOT = "/apis/snapshot.storage.k8s.io/v1/namespaces/{}/volumesnapshots/{}"
REPLICAS = {"image": "a/b", "replicas": 2}


@pytest.fixture
def cluster(site, session):
    return opened(site, session)


def finalizers(site, patch):
    words = ("configmap", "settings", "--type=merge", "-p", patch)
    site.kube.kubectl("-n", "shop", "patch", *words)


@pytest.fixture
def cut_off(cluster, site, monkeypatch):
    """A removal that has ended with its time limit, and left a bit of it."""
    monkeypatch.setattr(rollout, "_LIMIT", 1.5)
    finalizers(site, HOLD)
    with pytest.raises(errors.StepFailed, match=r"example\.org/slow"):
        bring(cluster, wanted())
    monkeypatch.undo()


@with_shop
class TestRemovalCutOff:
    def test_it_is_recorded_and_reported(self, cluster, cut_off):
        assert record(cluster).state == REMOVING
        report = compare(ClusterInspection(wanted(SHOP), VNF, cluster))
        texts = [finding.text for finding in report.applications[0].findings]
        assert "its removal has begun and not ended" in texts
        assert "ConfigMap shop/settings: being deleted" in texts

    def test_asked_for_again_it_is_there_again(self, cluster, site, cut_off):
        finalizers(site, LET_GO)
        bring(cluster, wanted(SHOP))
        assert "deployment.apps/api" in titles(site)
        assert "job.batch/schema" in titles(site)
        assert record(cluster).state == "applied"
        journal = bring(cluster, wanted(SHOP))
        assert outcomes(journal)[2][1] == "nothing to do"

    def test_what_still_ends_is_waited_for(self, cluster, site, cut_off):
        site.sshd.expected_warnings.append("which is currently being deleted")
        limits = {**LIMITS, "configuration": 2}
        text = failure(cluster, {**SHOP, "limits": limits})
        assert "ConfigMap shop/settings (example.org/slow)" in text
        assert "in force again" not in text

    def test_not_wanted_still_it_goes(self, cluster, site, cut_off):
        finalizers(site, LET_GO)
        bring(cluster, wanted())
        assert site.kube.request("GET", "/api/v1/namespaces/shop")[0] == 404
        assert record(cluster) is None

    def test_of_a_record_that_does_not_know(self, cluster, site, cut_off):
        """An earlier release has recorded nothing of a removal's beginning."""
        records = cluster.applications(None).records
        records.write(record(cluster).changed(state="applied", leaving=()))
        finalizers(site, LET_GO)
        bring(cluster, wanted(SHOP))
        assert "deployment.apps/api" in titles(site)


@with_shop
@pytest.mark.parametrize("what", ["service/api", "configmap/settings"])
def test_what_was_deleted_by_hand_comes_back(cluster, site, what):
    site.kube.kubectl("-n", "shop", "delete", what)
    uid = job_uid(site)
    bring(cluster, wanted(SHOP))
    assert what in titles(site)
    assert job_uid(site) == uid, "a complete Job has run again"


def test_volumes_of_a_removal_that_was_cut_off_are_deleted(cluster, site, monkeypatch):
    database = deployment("database")
    database["kind"] = "StatefulSet"
    template = {"metadata": {"name": "data"}, "spec": {}}
    database["spec"] |= {"serviceName": "x", "volumeClaimTemplates": [template]}
    cluster.pack(database, path="database.yaml")
    bring(cluster, wanted({**SHOP, "volumes": "delete"}))
    metadata = {"name": "data-0", "namespace": "shop", "labels": {"app": "database"}}
    claim = {"apiVersion": "v1", "kind": "PersistentVolumeClaim", "metadata": metadata}
    site.kube.apply({**claim, "spec": {}})
    real = Manifests.delete

    def cut(self, objects, timeout):
        real(self, objects, timeout)
        raise errors.ConnectionLost(host="m1", command="kubectl", reason="lost")

    monkeypatch.setattr(Manifests, "delete", cut)
    with pytest.raises(errors.StepFailed):
        bring(cluster, wanted())
    monkeypatch.undo()
    bring(cluster, wanted())
    assert site.kube.request("GET", "/api/v1/namespaces/shop")[0] == 404


class TestNamespace:
    @with_shop
    def test_an_object_of_a_custom_kind_of_others_keeps_it(self, cluster, site):
        bed.define(site.kube)
        site.kube.apply(bed.custom("backup", "shop"))
        journal = bring(cluster, wanted())
        assert site.kube.request("GET", SNAPSHOT.format("shop", "backup"))[0] == 200
        assert "deployment.apps/api" not in titles(site)
        assert record(cluster) is None
        assert journal.records

    @with_shop
    def test_what_only_another_object_in_it_owns_does_not(self, cluster, site):
        bed.define(site.kube)
        owner = get(site, "/apis/apps/v1/namespaces/shop/deployments/api")["metadata"]
        reference = {"apiVersion": "apps/v1", "kind": "Deployment", "name": "api"}
        owned = [{**reference, "uid": owner["uid"]}]
        site.kube.apply(bed.custom("part", "shop", ownerReferences=owned))
        bring(cluster, wanted())
        assert site.kube.request("GET", "/api/v1/namespaces/shop")[0] == 404

    @with_shop
    def test_one_whose_owner_is_in_no_namespace_keeps_it(self, cluster, site):
        bed.define(site.kube)
        node = get(site, "/api/v1/nodes/w1")["metadata"]
        reference = {"apiVersion": "v1", "kind": "Node", "name": "w1"}
        owned = [{**reference, "uid": node["uid"]}]
        site.kube.apply(bed.custom("of-w1", "shop", ownerReferences=owned))
        bring(cluster, wanted())
        assert site.kube.request("GET", SNAPSHOT.format("shop", "of-w1"))[0] == 200

    def test_a_kind_that_cannot_be_listed_keeps_it_and_nothing_else(
        self, cluster, site, caplog
    ):
        bring(cluster, wanted(SHOP))
        bed.break_snapshots(site.kube)
        bring(cluster, wanted({**SHOP, "config": DEBUGGED}))
        assert record(cluster).state == "applied"
        bring(cluster, wanted())
        assert titles(site) == []
        assert record(cluster) is None
        assert site.kube.request("GET", "/api/v1/namespaces/shop")[0] == 200
        assert "the namespace shop, which may have objects of volumesnap" in caplog.text
        assert 'service "gone" not found' in caplog.text

    def test_going_back_with_a_kind_that_cannot_be_listed(self, cluster, site):
        bring(cluster, wanted(SHOP))
        bed.break_snapshots(site.kube)
        broken = deployment("api", "sh", "-c", "exit 1")
        cluster.pack(broken, service("api"))
        text = failure(cluster, {**SHOP, "limits": {**LIMITS, "rollout": 3}})
        assert "What it was before is in force again." in text

    def test_objects_of_its_own_that_cannot_be_read_are_not_forgotten(
        self, cluster, site
    ):
        bed.define(site.kube, versions=("v1beta1", "v1"))
        own = bed.custom("own", "shop")
        cluster.pack(own, deployment("database"), path="database.yaml")
        bring(cluster, wanted(SHOP))
        site.kube.apply(bed.definition(conversion=bed.GONE_WEBHOOK))
        bed.wait_for(lambda: site.kube.request("GET", bed.SNAPSHOTS)[0] == 500)
        journal = bring(cluster, wanted(SHOP))
        assert outcomes(journal)[2][1] == "nothing to do"
        with pytest.raises(errors.StepFailed, match="conversion webhook"):
            bring(cluster, wanted())
        assert record(cluster).state == REMOVING


def test_warnings_are_no_problems(cluster, site, caplog):
    site.sshd.expected_warnings.append("example.org/v1 Rank is deprecated")
    made = bed.definition("ranks", "example.org", "Rank", scope="Cluster")
    made["spec"]["versions"][0]["deprecated"] = True
    site.kube.apply(made)
    place = "/apis/example.org/v1/ranks"
    bed.wait_for(lambda: site.kube.request("GET", place)[0] == 200)
    rank = bed.custom("high", "", "example.org/v1", "Rank")
    del rank["metadata"]["namespace"]
    cluster.pack(rank, deployment("database"), path="database.yaml")
    bring(cluster, wanted(SHOP))
    assert "Warning: example.org/v1 Rank is deprecated" in caplog.text


class TestJobsThatRemoveThemselves:
    def job(self, *command):
        made = job("schema", "sh", "-c", *command)
        made["spec"]["ttlSecondsAfterFinished"] = 0
        return made

    def test_complete(self, cluster, site):
        cluster.pack(self.job("echo made"), deployment("api"), service("api"))
        bring(cluster, wanted(SHOP))
        assert record(cluster).state == "applied"
        assert "job.batch/schema" not in titles(site)
        journal = bring(cluster, wanted(SHOP))
        assert outcomes(journal)[2][1] == "nothing to do"

    def test_failed(self, cluster, site):
        cluster.pack(self.job("exit 1"), deployment("api"))
        text = failure(cluster, SHOP)
        assert "Job shop/schema: BackoffLimitExceeded: Job has reached" in text

    def test_an_earlier_one_does_not_count(self, cluster, site):
        cluster.pack(self.job("echo made"), deployment("api"), service("api"))
        bring(cluster, wanted(SHOP))
        cluster.pack(self.job("exit 1"), deployment("api"), service("api"))
        text = failure(cluster, SHOP)
        assert "Job shop/schema: BackoffLimitExceeded" in text

    def test_one_that_somebody_deletes_is_not_complete(
        self, cluster, site, monkeypatch
    ):
        waiting = self.job("true")
        pod = waiting["spec"]["template"]["spec"]
        pod["containers"][0]["image"] = "images.invalid/schema:1"
        cluster.pack(waiting, deployment("api"))
        real = Manifests.apply

        def apply(self, objects, **options):
            real(self, objects, **options)
            if any(one["kind"] == "Job" for one in objects):
                site.kube.kubectl("-n", "shop", "delete", "job", "schema")

        monkeypatch.setattr(Manifests, "apply", apply)
        text = failure(cluster, {**SHOP, "limits": {**LIMITS, "bootstrap": 2}})
        assert "Job shop/schema: it is not there, and no event tells how it" in text


class TestDaemonSets:
    def agent(self, **spec):
        made = deployment("agent", tolerations=[{"operator": "Exists"}], **spec)
        made["kind"] = "DaemonSet"
        return made

    def content(self, *objects):
        return files(**{"database.yaml": [*objects, service("database", 3306)]})

    def test_a_silent_node_is_not_waited_for(self, cluster, site):
        site.silence("w2")
        cluster.package_content = self.content(self.agent())
        bring(cluster, wanted(SHOP))
        status = get(site, "/apis/apps/v1/namespaces/shop/daemonsets/agent")["status"]
        desired, available = "desiredNumberScheduled", "numberAvailable"
        assert status[desired] - status[available] == 1

    def test_a_node_that_is_ready_is(self, cluster, site):
        site.silence("w2")
        site.kube.kubectl("label", "node", "w1", "w2", "image=none")
        broken = self.agent()
        pod = broken["spec"]["template"]["spec"]
        pod["containers"][0]["image"] = "images.invalid/agent:1"
        cluster.package_content = self.content(broken)
        limits = {**LIMITS, "rollout": 4}
        text = failure(cluster, {**SHOP, "limits": limits})
        assert "DaemonSet shop/agent: Waiting for daemon set" in text


class TestServicesWithoutNodePorts:
    EXPOSE = {"expose": [{"name": "api", "ports": [{"port": 80}]}]}
    SPARED = {"type": "LoadBalancer", "allocateLoadBalancerNodePorts": False}
    TEXT = "Service api: port 80/tcp has no node port, because allocate"

    def api(self, cluster, *others, **spec):
        cluster.pack(deployment("api"), service("api", **spec), *others)

    def test_are_refused_before_anything_is_touched(self, cluster, site):
        self.api(cluster, **self.SPARED)
        text = failure(cluster, {**SHOP, **self.EXPOSE})
        assert self.TEXT in text
        assert "None of them was touched" in text
        assert site.kube.request("GET", "/api/v1/namespaces/shop")[0] == 404
        assert not cluster.exposed

    @needs_helm
    def test_of_a_chart_too(self, cluster, site):
        install_helm(site)
        text = manifest(service("api", **self.SPARED)).decode()
        cluster.package_content = chart(web=f"{text}---\n{WEB}")
        text = failure(cluster, {**BOOK, **self.EXPOSE})
        assert self.TEXT in text
        assert "None of them was touched" in text

    def test_but_keep_those_that_they_have(self, cluster, site):
        self.api(cluster, type="LoadBalancer")
        bring(cluster, wanted({**SHOP, **self.EXPOSE}))
        (before,) = cluster.exposed
        self.api(cluster, **self.SPARED)
        bring(cluster, wanted({**SHOP, **self.EXPOSE}))
        (after,) = cluster.exposed
        assert after == before

    def test_no_service_of_kubernetes_counts(self, cluster, site):
        """Knative has a kind of that name."""
        made = bed.definition("services", "serving.knative.dev", "Service")
        site.kube.apply(made)
        place = "/apis/serving.knative.dev/v1/services"
        bed.wait_for(lambda: site.kube.request("GET", place)[0] == 200)
        other = bed.custom("api", "shop", "serving.knative.dev/v1", "Service")
        self.api(cluster, other, type="LoadBalancer")
        bring(cluster, wanted({**SHOP, **self.EXPOSE}))
        assert len(cluster.exposed) == 1


@needs_helm
class TestReleases:
    @pytest.fixture(autouse=True)
    def helm(self, cluster, site):
        install_helm(site)
        cluster.package_content = chart(web=WEB, schema=HOOK)

    def leave(self, site, state):
        """Write what a Helm that was killed has left: the state of its last revision.

        Helm's own storage (``pkg/storage/driver/secrets.go``).
        """
        path = "/api/v1/namespaces/docs/secrets"
        found = [
            one for one in get(site, path)["items"] if one["type"].startswith("helm.sh")
        ]
        last = max(found, key=lambda one: int(one["metadata"]["labels"]["version"]))
        text = base64.b64decode(base64.b64decode(last["data"]["release"]))
        release = json.loads(gzip.decompress(text))
        release["info"]["status"] = state
        text = gzip.compress(json.dumps(release).encode())
        last["data"]["release"] = base64.b64encode(base64.b64encode(text)).decode()
        last["metadata"]["labels"]["status"] = state
        name, metadata = last["metadata"]["name"], last["metadata"]
        for field in ("resourceVersion", "managedFields", "uid"):
            metadata.pop(field, None)
        site.kube.kubectl("-n", "docs", "delete", "secret", name)
        site.kube.kubectl("create", "-f", "-", stdin=json.dumps(last))

    @with_wiki
    @pytest.mark.parametrize(
        ("revisions", "left"),
        [
            *((1, left) for left in ("uninstalling", "uninstalled", "failed")),
            (1, "pending-install"),
            (2, "uninstalling"),
            (2, "pending-upgrade"),
            (2, "pending-rollback"),
        ],
    )
    def test_what_helm_has_left(self, cluster, site, revisions, left):
        if revisions == 2:
            values = {"image": "a/b", "replicas": 3}
            bring(cluster, wanted({**WIKI, "values": values}))
        self.leave(site, left)
        bring(cluster, wanted({**WIKI, "values": REPLICAS}))
        web = get(site, "/apis/apps/v1/namespaces/docs/deployments/web")
        assert web["spec"]["replicas"] == 2
        assert record(cluster, "wiki").state == "applied"
        if left != "uninstalled":  # Helm has deleted the objects before it says so
            self.leave(site, left)
        bring(cluster, wanted())
        assert site.kube.request("GET", "/api/v1/namespaces/docs")[0] == 404

    @with_wiki
    @pytest.mark.parametrize("left", ["uninstalling", "pending-install"])
    def test_unchanged_it_is_not_taken_to_be_there(self, cluster, site, left):
        self.leave(site, left)
        bring(cluster, wanted(BOOK))
        assert record(cluster, "wiki").good.revision == 1
        assert cluster.applications(None).charts.state("wiki", "docs") == "deployed"

    @with_wiki
    def test_without_the_former_revision_there_is_no_way_back(self, cluster, site):
        self.leave(site, "uninstalling")
        values = {"image": "images.invalid/web:2"}
        limits = {**LIMITS, "rollout": 3}
        text = failure(cluster, {**WIKI, "values": values, "limits": limits})
        assert "It is left as it is" in text
        assert "in force again" not in text
        assert record(cluster, "wiki").state == "failed"

    @with_wiki
    def test_many_ways_back(self, cluster, site):
        """Helm keeps five revisions; each failure makes two."""
        values = {"image": "a/b", "schema": "exit 1"}
        for _ in range(3):
            text = failure(cluster, {**WIKI, "values": values})
            assert "What it was before is in force again." in text

    @with_wiki
    @pytest.mark.parametrize("ends", [True, False])
    def test_a_removal_cut_off_after_helm(self, cluster, site, monkeypatch, ends):
        real = Charts.uninstall

        def cut(self, *place, **options):
            real(self, *place, **options)
            raise errors.CommandTimeout(host="m1", command="helm uninstall", seconds=1)

        monkeypatch.setattr(Charts, "uninstall", cut)
        with pytest.raises(errors.StepFailed):
            bring(cluster, wanted())
        monkeypatch.undo()
        # The hook, which is of no release any more, is not forgotten.
        assert "job.batch/schema" in titles(site, "docs")
        if ends:
            bring(cluster, wanted())
            assert site.kube.request("GET", "/api/v1/namespaces/docs")[0] == 404
        bring(cluster, wanted(BOOK))
        assert "deployment.apps/web" in titles(site, "docs")
        assert record(cluster, "wiki").state == "applied"

    def test_what_the_chart_keeps_keeps_the_namespace(self, cluster, site):
        bed.define(site.kube)
        keep = {"annotations": {"helm.sh/resource-policy": "keep"}}
        kept = bed.custom("backup", "docs", **keep)
        hook = {"helm.sh/hook": "post-install", **keep["annotations"]}
        notes = {"name": "notes", "namespace": "docs", "annotations": hook}
        other = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": notes}
        content = manifest(kept, other).decode()
        cluster.package_content = chart(web=f"{content}---\n{WEB}")
        bring(cluster, wanted(BOOK))
        bring(cluster, wanted())
        assert site.kube.request("GET", SNAPSHOT.format("docs", "backup"))[0] == 200
        assert "configmap/notes" in titles(site, "docs")

    DATA = """
{{- if ne (toString .Values.data) "false" }}
---
apiVersion: v1
kind: List
items:
- apiVersion: v1
  kind: PersistentVolumeClaim
  metadata: {name: data}
  spec: {accessModes: [ReadWriteOnce], resources: {requests: {storage: 1Gi}}}
{{- end }}
---
apiVersion: v1
kind: PersistentVolumeClaim
metadata: {name: more, labels: {version: "1.10"}}
spec: {accessModes: [ReadWriteOnce], resources: {requests: {storage: 1Gi}}}
---
"""

    def claims(self, site):
        path = "/api/v1/namespaces/docs/persistentvolumeclaims"
        found = [one["metadata"] for one in get(site, path)["items"]]
        return {one["name"]: one["uid"] for one in found}

    def with_data(self, cluster, volumes="keep", **values):
        cluster.package_content = chart(web=self.DATA + WEB)
        app = {**WIKI, "volumes": volumes, "values": {"image": "a/b", **values}}
        bring(cluster, wanted(app))
        return app

    @pytest.mark.parametrize("volumes", ["keep", "delete"])
    def test_volumes_of_a_chart_stay_or_go_with_it(self, cluster, site, volumes):
        app = self.with_data(cluster, volumes)
        before = self.claims(site)
        assert set(before) == {"data", "more"}
        bring(cluster, wanted())
        assert self.claims(site) == (before if volumes == "keep" else {})
        assert "deployment.apps/web" not in titles(site, "docs")
        assert record(cluster, "wiki") is None
        bring(cluster, wanted(app))
        assert set(self.claims(site)) == {"data", "more"}
        if volumes == "keep":
            assert self.claims(site) == before

    @pytest.mark.parametrize("left", ["uninstalling", "pending-install"])
    def test_the_end_of_what_helm_has_left_keeps_volumes(self, cluster, site, left):
        app = self.with_data(cluster)
        before = self.claims(site)
        self.leave(site, left)
        bring(cluster, wanted(app))
        assert self.claims(site) == before
        self.leave(site, left)
        bring(cluster, wanted())
        assert self.claims(site) == before

    @pytest.mark.parametrize("volumes", ["keep", "delete"])
    def test_volumes_that_a_chart_has_not_any_more(self, cluster, site, volumes):
        app = self.with_data(cluster, volumes)
        before = self.claims(site)
        bring(cluster, wanted({**app, "values": {"image": "a/b", "data": False}}))
        left = set(before) if volumes == "keep" else {"more"}
        assert self.claims(site) == {name: before[name] for name in left}

    def test_going_back_keeps_volumes(self, cluster, site):
        app = self.with_data(cluster, data=False)
        assert set(self.claims(site)) == {"more"}
        values = {"image": "images.invalid/web:2"}
        limits = {**LIMITS, "rollout": 3}
        text = failure(cluster, {**app, "values": values, "limits": limits})
        assert "What it was before is in force again." in text
        assert set(self.claims(site)) == {"data", "more"}

    def test_helm_that_would_delete_volumes_is_not_called(
        self, cluster, site, monkeypatch
    ):
        self.with_data(cluster)
        before = self.claims(site)
        monkeypatch.setattr(ChartVolumes, "keep_at_end", lambda *_: None)
        with pytest.raises(errors.StepFailed, match="Helm would delete volumes"):
            bring(cluster, wanted())
        assert self.claims(site) == before
        assert "deployment.apps/web" in titles(site, "docs")
        monkeypatch.undo()
        bring(cluster, wanted())
        assert self.claims(site) == before

    @pytest.mark.parametrize("where", ["cluster", "chart"])
    def test_kinds_of_the_cluster_and_of_the_chart(self, cluster, site, where):
        needs = """
{{- $kind := "snapshot.storage.k8s.io/v1/VolumeSnapshot" }}
{{- if not (.Capabilities.APIVersions.Has $kind) }}
{{- fail "install the snapshot CRDs first" }}
{{- end }}
"""
        content = chart(web=needs + WEB)
        cluster.package_content = content
        assert "install the snapshot CRDs first" in failure(cluster, BOOK)
        if where == "cluster":
            bed.define(site.kube)
        else:
            crds = json.dumps(bed.definition()).encode()
            cluster.package_content = {**content, "charts/wiki/crds/s.yaml": crds}
        bring(cluster, wanted(BOOK))

    LOOKS = """
{{- $s := lookup "v1" "Secret" .Release.Namespace "made-before" }}
apiVersion: v1
kind: ConfigMap
metadata: {name: conf}
data:
  a: {{ required "made-before must exist" (get ($s.data | default dict) "a") | quote }}
---
"""

    def test_what_a_chart_looks_up(self, cluster, site):
        cluster.package_content = chart(web=self.LOOKS + WEB)
        assert "made-before must exist" in failure(cluster, BOOK)
        own = [{"name": "made-before", "data": [{"key": "a", "value": {"file": "a"}}]}]
        bring(cluster, wanted({**BOOK, "secrets": own}))
        assert record(cluster, "wiki").state == "applied"

    def test_a_release_knows_whether_it_is_upgraded(self, cluster, site):
        text = "{{- if .Release.IsUpgrade }}{{ fail `never upgraded` }}{{ end }}\n"
        cluster.package_content = chart(web=text + WEB)
        bring(cluster, wanted(BOOK))
        text = failure(cluster, {**WIKI, "values": REPLICAS})
        assert "never upgraded" in text
        assert "None of them was touched" in text

    def test_a_job_of_a_chart_that_removes_itself(self, cluster, site):
        seed = job("seed", "sh", "-c", "echo made")
        seed["spec"]["ttlSecondsAfterFinished"] = 0
        text = manifest(seed).decode()
        cluster.package_content = chart(web=f"{text}---\n{WEB}")
        bring(cluster, wanted(BOOK))
        assert record(cluster, "wiki").state == "applied"
        assert "job.batch/seed" not in titles(site, "docs")

    def test_helm_gets_the_limit_for_each_of_its_waits(
        self, cluster, site, monkeypatch
    ):
        hooks = "\n---\n".join(
            HOOK.replace("name: schema", f"name: step{n}") for n in range(4)
        )
        cluster.package_content = chart(web=WEB, hooks=hooks)
        limits = {}
        real = Charts._run

        def run(self, command, limit, values=None):
            limits[command[0]] = max(limit, limits.get(command[0], 0))
            return real(self, command, limit, values)

        monkeypatch.setattr(Charts, "_run", run)
        bring(cluster, wanted(BOOK))
        # Three waits for each of four hooks, and one for the release.
        assert limits["upgrade"] == 13 * LIMITS["bootstrap"] + 60
