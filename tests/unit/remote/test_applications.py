# SPDX-License-Identifier: Apache-2.0
"""Applications on a cluster: installed, changed, broken, gone back, removed.

kubectl and Helm are real, behind an SSH server; the API server is the stand-in.
"""

import json

import pytest

from tacker_k8s_mgmt import errors
from tacker_k8s_mgmt.features.applications.content import BACK
from tacker_k8s_mgmt.features.applications.feature import (
    Applications,
    ApplicationsWork,
    compare,
)
from tacker_k8s_mgmt.operations.cluster_check import ClusterInspection
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
    state_of,
    titles,
    wanted,
    with_shop,
    with_wiki,
)
from tests.helpers.kubeapi import wait_for
from tests.helpers.kubectl_server import needs_kubectl
from tests.helpers.requests import VNF, params
from tests.tree import ROOT

pytestmark = needs_kubectl


@pytest.fixture
def cluster(site, session):
    return opened(site, session)


class TestManifests:
    def test_in_order_with_configuration_and_secrets(self, cluster, site):
        bring(cluster, wanted(SHOP))
        found = {name.partition("-")[0] for name in titles(site)}
        assert found >= {
            "configmap/settings",
            "deployment.apps/api",
            "deployment.apps/database",
            "job.batch/schema",
            "secret/keys",
            "service/api",
        }
        kept = record(cluster)
        assert (kept.state, kept.revision, kept.chart) == ("applied", 1, False)
        calls = (site.sshd.home / "calls").read_text()
        assert "s3cret-of-the-shop" not in calls
        secret = get(site, "/api/v1/namespaces/shop/secrets/keys")
        assert secret["data"]["token"] == "czNjcmV0LW9mLXRoZS1zaG9w"

    @with_shop
    def test_what_is_there_is_left_alone(self, cluster, site):
        before = get(site, "/apis/apps/v1/namespaces/shop/deployments/api")
        journal = bring(cluster, wanted(SHOP))
        assert [outcome for _, outcome in outcomes(journal)][1:3] == [
            "nothing to do"
        ] * 2
        assert get(site, "/apis/apps/v1/namespaces/shop/deployments/api") == before
        assert record(cluster).revision == 1

    @with_shop
    def test_changed_configuration_restarts_the_pods_and_no_job(self, cluster, site):
        before = job_uid(site)
        digest = annotation(site)
        bring(cluster, wanted({**SHOP, "config": DEBUGGED}))
        assert annotation(site) != digest
        assert job_uid(site) == before
        assert record(cluster).revision == 2

    @with_shop
    def test_a_changed_job_runs_again(self, cluster, site):
        before = job_uid(site)
        changed = [job("schema", "sh", "-c", "echo more"), deployment("api")]
        cluster.pack(*changed, service("api"))
        bring(cluster, wanted(SHOP))
        assert job_uid(site) != before

    @with_shop
    def test_what_a_new_version_lacks_is_removed(self, cluster, site):
        cluster.pack(deployment("api"), service("api"))
        bring(cluster, wanted({**SHOP, "config": []}))
        assert not {"job.batch/schema", "configmap/settings"} & set(titles(site))

    @with_shop
    def test_removal_leaves_nothing(self, cluster, site):
        bring(cluster, wanted())
        assert site.kube.request("GET", "/api/v1/namespaces/shop")[0] == 404
        assert record(cluster) is None
        wait_for(lambda: not get(site, "/api/v1/pods")["items"])

    @with_shop
    def test_a_namespace_with_something_of_others_stays(self, cluster, site):
        metadata = {"name": "theirs", "namespace": "shop"}
        theirs = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata}
        site.kube.apply({**theirs, "data": {"a": "b"}})
        journal = bring(cluster, wanted())
        assert "job.batch/schema" not in titles(site)
        assert "configmap/theirs" in titles(site)
        assert journal.records

    def test_a_namespace_of_others_is_used_and_stays(self, cluster, site):
        space = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "blue"}}
        site.kube.apply(space)
        bring(cluster, wanted({**SHOP, "namespace": "blue"}))
        labels = get(site, "/api/v1/namespaces/blue")["metadata"]["labels"]
        assert "tacker-k8s-mgmt/owner" not in labels
        bring(cluster, wanted())
        assert titles(site, "blue") == []


class TestVolumes:
    CLAIMS = "/api/v1/namespaces/shop/persistentvolumeclaims"

    @pytest.fixture(autouse=True)
    def volume(self, cluster, site):
        """A StatefulSet, with the claim that its controller would make."""
        database = deployment("database")
        database["kind"] = "StatefulSet"
        template = {"metadata": {"name": "data"}, "spec": {}}
        database["spec"] |= {"serviceName": "database"}
        database["spec"]["volumeClaimTemplates"] = [template]
        cluster.pack(database, path="database.yaml")
        labels = {"app": "database"}
        space = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "shop"}}
        metadata = {"name": "data-database-0", "namespace": "shop", "labels": labels}
        claim = {"kind": "PersistentVolumeClaim", "metadata": metadata, "spec": {}}
        site.kube.apply(space, {"apiVersion": "v1", **claim})

    def names(self, site):
        return [one["metadata"]["name"] for one in site.kube.get(self.CLAIMS)["items"]]

    @pytest.mark.parametrize("volumes", ["keep", "delete"])
    def test_they_stay_or_go_with_the_application(self, cluster, site, volumes):
        bring(cluster, wanted({**SHOP, "volumes": volumes}))
        bring(cluster, wanted())
        left = {"keep": ["data-database-0"], "delete": []}
        assert self.names(site) == left[volumes]

    def test_a_termination_deletes_those_that_are_to_go(self, cluster, site):
        params = wanted({**SHOP, "volumes": "delete"})
        assert Applications().terminates_on_nodes(params)
        assert not Applications().terminates_on_nodes(wanted(SHOP))
        bring(cluster, params)
        state = state_of(cluster, params)
        (step,) = ApplicationsWork(state).terminating()
        step.take()
        assert self.names(site) == []
        state = state_of(cluster, wanted(SHOP))
        assert ApplicationsWork(state).terminating() == ()

    def test_a_termination_goes_on_without_an_answer(self, cluster, site, caplog):
        state = state_of(cluster, wanted({**SHOP, "volumes": "delete"}))
        site.take_api_away()
        (step,) = ApplicationsWork(state).terminating()
        step.take()
        assert "Volumes of applications may stay behind" in caplog.text


def annotation(site):
    api = get(site, "/apis/apps/v1/namespaces/shop/deployments/api")
    return api["spec"]["template"]["metadata"]["annotations"]["tacker-k8s-mgmt/config"]


class TestBroken:
    def test_an_image_that_cannot_be_pulled(self, cluster, site):
        api = deployment("api", image="images.invalid/api:1")
        cluster.pack(api)
        text = failure(cluster, {**SHOP, "limits": {**LIMITS, "rollout": 3}})
        assert (
            "The application shop failed in rollout: (1) Deployment shop/api: " in text
        )
        assert "ImagePullBackOff: Back-off pulling image" in text
        assert "Failed to pull image" in text
        assert "after 3 s" in text
        assert "It is left as it is" in text
        assert record(cluster).state == "failed"
        # The next attempt continues.
        cluster.package_content = files()
        bring(cluster, wanted(SHOP))
        assert record(cluster).state == "applied"

    def test_a_job_that_fails(self, cluster, site):
        broken = job("schema", "sh", "-c", "echo no such table; exit 3")
        cluster.pack(broken, deployment("api"))
        text = failure(cluster, SHOP)
        assert "failed in bootstrap: (1) Job shop/schema: BackoffLimitExceeded" in text
        assert "exit code 3" in text
        assert "last lines of main: no such table" in text
        assert "deployment.apps/api" not in titles(site)
        # It runs again at the next attempt, although it is the same one.
        uid = job_uid(site)
        failure(cluster, SHOP)
        assert job_uid(site) != uid

    @with_shop
    def test_a_failed_change_goes_back(self, cluster, site):
        before = record(cluster)
        broken = deployment("api", "sh", "-c", "echo no port; exit 1")
        extra = deployment("extra")
        cluster.pack(extra, broken, service("api"))
        text = failure(cluster, {**SHOP, "limits": {**LIMITS, "rollout": 3}})
        assert "CrashLoopBackOff" in text
        assert "last lines of main: no port" in text
        assert "What it was before is in force again." in text
        kept = record(cluster)
        assert (kept.state, kept.good) == (BACK, before.good)
        assert "failed in rollout" in kept.detail
        assert "deployment.apps/extra" not in titles(site)
        api = get(site, "/apis/apps/v1/namespaces/shop/deployments/api")
        (container,) = api["spec"]["template"]["spec"]["containers"]
        assert container["image"] == "a/b"
        # What was before is there: nothing is to be done.
        cluster.package_content = files()
        journal = bring(cluster, wanted(SHOP))
        assert outcomes(journal)[2][1] == "nothing to do"

    def test_no_answer_of_the_service(self, cluster, site):
        text = failure(cluster, {**SHOP, "probe": {"service": "api", "port": 81}})
        assert "failed in health: (1) http://api:81/ did not answer as expected" in text
        assert "no service port" in text


class TestRefused:
    def test_every_problem_in_one_error_before_anything_changes(self, cluster, site):
        cluster.pack(deployment("api", nodeSelector={"role": "compute"}))
        site.kube.kubectl("label", "node", "w1", "openstack-control-plane=enabled")
        other = {
            "name": "other",
            "manifests": [{"path": "gone.yaml"}],
            "requires": [{"label": "openstack-control-plane=enabled", "nodes": 2}],
        }
        third = {**other, "name": "third", "manifests": [{"path": "database.yaml"}]}
        text = failure(cluster, SHOP, other, third)
        assert "application other: gone.yaml in the VNF package: No such file" in text
        assert (
            "application shop: Deployment shop/api can run on no node, for none has "
            "the labels role=compute"
        ) in text
        assert "it requires 2 nodes with the label openstack-control-plane" in text
        assert record(cluster) is None
        assert site.kube.request("GET", "/api/v1/namespaces/shop")[0] == 404

    @pytest.mark.parametrize(
        ("content", "problem"),
        [
            (b"a: [", "database.yaml: is no YAML (line "),
            (b"", "database.yaml has no object"),
            (b"\xff", "database.yaml is no text in UTF-8"),
            (b"- 1", "database.yaml: its document 1 is no object of Kubernetes"),
            (
                b"kind: A\nmetadata: {name: b}",
                "database.yaml: its document 1 has no apiVersion, kind or metadata.nam",
            ),
            (
                manifest(deployment("a"), deployment("a")),
                "Deployment shop/a is given twice",
            ),
        ],
    )
    def test_files_that_cannot_be_used(self, cluster, content, problem):
        cluster.package_content = {**files(), "database.yaml": content}
        assert f"application shop: {problem}" in failure(cluster, SHOP)

    @with_shop
    def test_objects_of_others(self, cluster, site):
        text = failure(cluster, SHOP, {**bare(), "name": "two", "namespace": "shop"})
        assert (
            "Deployment shop/database is in the cluster already and belongs to " in text
        )

    def test_images_of_a_registry_that_the_cluster_has_not(self, cluster):
        cluster_options = {"offline": {"registry_host": "images.example.org/k8s"}}
        with pytest.raises(errors.StepFailed, match="has images from images"):
            bring(cluster, params(applications=[bare()], cluster=cluster_options))

    def test_a_label_that_an_unchanged_application_newly_requires(self, cluster):
        bring(cluster, wanted(bare()))
        label = {"label": "openstack-compute-node=enabled"}
        text = failure(cluster, {**bare(), "requires": [label]})
        assert "application bare: it requires 1 nodes with the label openstack-" in text

    @with_shop
    def test_another_namespace_or_kind(self, cluster):
        text = failure(cluster, {**SHOP, "namespace": "other"})
        assert "it is in the namespace shop, which cannot be changed" in text


def bare():
    return {"name": "bare", "manifests": [{"path": "database.yaml"}]}


class TestExposed:
    def test_on_the_load_balancer_and_away(self, cluster, site):
        api = service("api", type="NodePort")
        cluster.pack(deployment("api"), api)
        exposed = {**SHOP, "expose": [{"name": "api", "ports": [{"port": 80}]}]}
        bring(cluster, wanted(exposed))
        (one,) = cluster.exposed
        assert one.name.startswith("app-shop.shop.api.tcp.")
        bring(cluster, wanted(SHOP))
        assert not cluster.exposed
        bring(cluster, wanted(exposed))
        bring(cluster, wanted())
        assert not cluster.exposed


@needs_helm
class TestCharts:
    @pytest.fixture(autouse=True)
    def helm(self, cluster, site):
        install_helm(site)
        cluster.package_content = chart(web=WEB, schema=HOOK)

    @with_wiki
    def test_installed_reconfigured_and_removed(self, cluster, site):
        kept = record(cluster, "wiki")
        about = (kept.state, kept.chart, kept.good.version)
        assert about == ("applied", True, "wiki 1.0.0")
        assert {"deployment.apps/web", "job.batch/schema"} <= set(titles(site, "docs"))
        bring(cluster, wanted({**WIKI, "values": {"image": "a/b", "replicas": 2}}))
        web = get(site, "/apis/apps/v1/namespaces/docs/deployments/web")
        assert web["spec"]["replicas"] == 2
        assert record(cluster, "wiki").good.revision == 2
        bring(cluster, wanted())
        assert site.kube.request("GET", "/api/v1/namespaces/docs")[0] == 404
        assert record(cluster, "wiki") is None

    def test_secret_values_are_on_no_command_line(self, cluster, site):
        values = {"image": "a/b", "password": {"file": "wiki"}}
        bring(cluster, wanted({**WIKI, "values": values}))
        assert "s3cret-of-the-shop" not in (site.sshd.home / "helm-calls").read_text()

    def test_values_that_do_not_render(self, cluster):
        text = failure(cluster, WIKI)
        assert "application wiki: Helm cannot render the chart: " in text
        assert "image is needed" in text
        assert record(cluster, "wiki") is None

    def test_a_failed_hook_and_the_next_attempt(self, cluster, site):
        values = {"image": "a/b", "schema": "echo no database; exit 4"}
        text = failure(cluster, {**WIKI, "values": values})
        assert "The application wiki failed in bootstrap: (1) Helm: " in text
        assert "last lines of main: no database" in text
        assert record(cluster, "wiki").state == "failed"
        bring(cluster, wanted(BOOK))
        assert record(cluster, "wiki").state == "applied"

    @with_wiki
    def test_a_failed_upgrade_goes_back(self, cluster, site):
        values = {"image": "images.invalid/web:2"}
        limits = {**LIMITS, "rollout": 3}
        text = failure(cluster, {**WIKI, "values": values, "limits": limits})
        assert "The application wiki failed in rollout: (1) Deployment docs/web" in text
        assert "ImagePullBackOff" in text
        assert "What it was before is in force again." in text
        web = get(site, "/apis/apps/v1/namespaces/docs/deployments/web")
        (container,) = web["spec"]["template"]["spec"]["containers"]
        assert container["image"] == "a/b"
        assert record(cluster, "wiki").state == BACK
        journal = bring(cluster, wanted(BOOK))
        assert outcomes(journal)[2][1] == "nothing to do"

    def test_what_is_no_chart(self, cluster):
        cluster.package_content = {"charts/wiki/values.yaml": b"{}"}
        assert "charts/wiki: has no Chart.yaml" in failure(cluster, WIKI)
        cluster.package_content = {"charts/wiki": b"no archive"}
        assert "charts/wiki: is no archive of a chart" in failure(cluster, WIKI)


class TestSeen:
    def test_the_sample_is_well_and_what_is_missing_is_shown(self, cluster, site):
        place = ROOT / "samples" / "applications"
        cluster.package_content = {
            f"Files/notes/{path.name}": path.read_bytes()
            for path in (place / "notes").iterdir()
        }
        apps = json.loads((place / "applications.json").read_text())
        modify = json.loads((place / "modify.json").read_text())
        assert json.loads(modify["metadata"]["k8s_applications"]) == apps
        params = wanted(*apps)
        bring(cluster, params)
        report = compare(ClusterInspection(params, VNF, cluster))
        assert (report.failures, report.differs) == ({}, False)
        (one,) = report.applications
        assert {item.title for item in one.objects} >= {
            "StatefulSet notes/notes-db",
            "Job notes/notes-schema",
            "Service notes/notes-api",
        }
        site.kube.kubectl("-n", "notes", "delete", "service", "notes-api")
        report = compare(ClusterInspection(params, VNF, cluster))
        (finding,) = [text.text for text in report.applications[0].findings]
        assert finding == "Service notes/notes-api: missing"

    def test_one_that_is_not_there_and_one_that_is_not_wanted(self, cluster):
        bring(cluster, wanted(bare()))
        report = compare(ClusterInspection(wanted(SHOP), VNF, cluster))
        found = {
            one.name: [finding.text for finding in one.findings]
            for one in report.applications
        }
        assert found == {
            "shop": ["not on the cluster, although it is wanted"],
            "bare": ["on the cluster, although it is not wanted"],
        }


class TestPlan:
    """What a plan says of applications, and what they then become."""

    def effects(self, cluster, *apps):
        state = state_of(cluster, wanted(*apps))
        work = ApplicationsWork(state)
        work.inspect()
        found = [
            one
            for step in work.changes()
            if step.probe is None or not step.probe()
            for one in step.effects()
        ]
        return [(one.what, one.former, one.wanted) for one in found]

    def test_new_changed_and_removed(self, cluster, site):
        new = self.effects(cluster, SHOP)
        assert new[0] == ("application shop", None, "manifests")
        before = titles(site)
        bring(cluster, wanted(SHOP))
        assert self.effects(cluster, SHOP) == []
        planned = {what.partition(": ")[2].lower() for what, *_ in new[1:]}
        assert any(name.startswith("deployment") for name in planned)
        assert {one for _, former, one in new} == {"manifests", "new"}
        changed = self.effects(cluster, {**SHOP, "config": DEBUGGED})
        assert changed[0] == ("application shop", "manifests, applied", "manifests")
        assert ("there", "changed") in {(a, b) for _, a, b in changed[1:]}
        assert self.effects(cluster) == [
            ("application shop", "manifests, applied", None)
        ]
        bring(cluster, wanted())
        assert titles(site) == before
