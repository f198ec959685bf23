# SPDX-License-Identifier: Apache-2.0
"""Objects of an owner by the real kubectl."""

import logging

import pytest

from tacker_k8s_mgmt import errors
from tacker_k8s_mgmt.model.manifests import OWNER, title
from tacker_k8s_mgmt.remote.kubernetes import owned_objects
from tacker_k8s_mgmt.remote.kubernetes.kubectl import KubeClient
from tacker_k8s_mgmt.remote.kubernetes.owned_objects import MANAGED_BY, Manifests
from tests.helpers.kubeapi import deployment, wait_for
from tests.helpers.kubectl_server import needs_kubectl, with_metadata

pytestmark = needs_kubectl

APP = "app.shop"
NAMESPACE = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "shop"}}
API = with_metadata(deployment("api", 1), namespace="shop")


def configmap(name="settings", namespace="shop", **data):
    metadata = {"name": name, "namespace": namespace}
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": data}


def incomplete(run, missing="nothing"):
    """kubectl, with an aggregated API server that does not answer."""

    def partly(*args, **options):
        if args[0] == "api-resources":
            text = (
                "error: unable to retrieve the complete list of server APIs: "
                "metrics.k8s.io/v1beta1: the server is currently unable to handle"
            )
            raise errors.CommandFailed(
                host="m1", command="kubectl", rc=1, tail=text, output=text
            )
        if args[-1].startswith(missing):
            raise errors.CommandFailed(
                host="m1", command="kubectl", rc=1, tail="no answer", output=""
            )
        return run(*args, **options)

    return partly


@pytest.fixture
def client(session):
    return KubeClient(session)


@pytest.fixture
def objects(client):
    return Manifests(client)


def found(site, path):
    return site.kube.request("GET", path)[0] == 200


class TestApply:
    def test_labels_manager_and_order(self, objects, site):
        objects.apply([configmap(key="value"), NAMESPACE], owner=APP, timeout=60)
        made = site.kube.get("/api/v1/namespaces/shop/configmaps/settings")
        assert made["data"] == {"key": "value"}
        labels = {MANAGED_BY: "tacker-k8s-mgmt", OWNER: APP}
        assert made["metadata"]["labels"] == labels
        (call, _) = site.calls("apply")
        assert "--server-side" in call
        assert "--field-manager tacker-k8s-mgmt" in call

    def test_no_content_in_the_command_line(self, objects, site):
        objects.apply([NAMESPACE, configmap(a="a-value")], owner=APP, timeout=60)
        assert "a-value" not in (site.sshd.home / "calls").read_text()

    def test_it_can_be_repeated(self, objects, site):
        for value in ("first", "second"):
            objects.apply([NAMESPACE, configmap(a=value)], owner=APP, timeout=60)
        made = site.kube.get("/api/v1/namespaces/shop/configmaps/settings")
        assert made["data"] == {"a": "second"}

    def test_the_objects_given_are_not_changed(self, objects, site):
        given = configmap(namespace="default")
        objects.apply([given], owner=APP, timeout=60)
        assert given == configmap(namespace="default")

    def test_a_refusal_names_the_objects(self, objects, site):
        with pytest.raises(errors.CommandFailed) as failure:
            objects.apply([configmap(namespace="none")], owner=APP, timeout=60)
        text = str(failure.value)
        assert "`kubectl apply --server-side of ConfigMap none/settings`" in text
        assert 'namespaces "none" not found' in text

    def test_a_definition_that_is_not_established(self, objects, site):
        definition = {
            "apiVersion": "apiextensions.k8s.io/v1",
            "kind": "CustomResourceDefinition",
            "metadata": {"name": "shops.example.org"},
            "spec": {"group": "example.org", "names": {"kind": "Shop"}},
        }
        with pytest.raises(errors.ClusterError, match="established in time: shops"):
            objects.apply([definition], owner=APP, timeout=1.5)


class TestCheck:
    def test_nothing_is_wrong_and_nothing_changes(self, objects, site):
        assert objects.check([NAMESPACE, configmap()], owner=APP) == ()
        assert not found(site, "/api/v1/namespaces/shop")

    def test_what_the_api_server_refuses(self, objects, site):
        wrong = {**configmap(namespace="default"), "kind": "ConfigMop"}
        problems = objects.check([wrong, configmap(namespace="none")], owner="")
        assert any("ConfigMop" in problem for problem in problems)

    def test_a_namespace_that_is_missing(self, objects, site):
        (problem,) = objects.check([configmap(namespace="none")], owner=APP)
        assert 'namespaces "none" not found' in problem

    @pytest.mark.parametrize("other", ["tenant.a", ""])
    def test_objects_of_another_owner(self, objects, site, other):
        site.kube.apply(
            owned_objects.owned_by(other, configmap(namespace="default"))
            if other
            else configmap(namespace="default")
        )
        (problem,) = objects.check([configmap(namespace="default")], owner=APP)
        assert problem == (
            "ConfigMap default/settings is in the cluster already and belongs to "
            f"{other or 'none of its applications and tenants'}"
        )

    def test_its_own_objects_are_no_problem(self, objects, site):
        objects.apply([configmap(namespace="default")], owner=APP, timeout=60)
        assert objects.check([configmap(namespace="default")], owner=APP) == ()


class TestOwned:
    def test_of_every_kind_and_namespace(self, objects, site):
        objects.apply([NAMESPACE, configmap(), API], owner=APP, timeout=60)
        objects.apply([configmap("other")], owner="app.other", timeout=60)
        assert sorted(map(title, objects.owned(APP).objects)) == [
            "ConfigMap shop/settings",
            "Deployment shop/api",
            "Namespace shop",
        ]
        assert objects.owned("app.none").objects == ()

    def test_without_the_groups_of_servers_that_do_not_answer(
        self, client, objects, site, monkeypatch, caplog
    ):
        objects.apply([NAMESPACE, API], owner=APP, timeout=60)
        monkeypatch.setattr(client, "run", incomplete(client.run, "/apis/batch"))
        with caplog.at_level(logging.WARNING):
            titles = sorted(map(title, objects.owned(APP).objects))
        assert titles == ["Deployment shop/api", "Namespace shop"]
        assert "Objects of the API /apis/batch/v1 are not seen" in caplog.text


class TestDelete:
    def test_they_and_theirs_are_gone(self, objects, site):
        objects.apply([NAMESPACE, API], owner=APP, timeout=60)
        wait_for(site.all_run)
        objects.delete(objects.owned(APP).objects, timeout=60)
        assert not found(site, "/api/v1/namespaces/shop")
        assert not site.kube.get("/api/v1/pods")["items"]

    def test_what_is_not_there_is_no_error(self, objects, site):
        objects.delete([configmap(namespace="default")], timeout=30)
        objects.delete([], timeout=30)

    def test_what_is_left_is_named_with_its_finalizers(self, objects, site):
        kept = configmap(namespace="default")
        kept["metadata"]["finalizers"] = ["example.org/hold"]
        objects.apply([kept], owner=APP, timeout=60)
        with pytest.raises(
            errors.ClusterError, match=r"ConfigMap default/settings \(example.org/hold"
        ):
            objects.delete([kept], timeout=1.5)


def test_get_of_a_kind_by_selector(objects, site):
    objects.apply([NAMESPACE, configmap(a="b")], owner=APP, timeout=60)
    (one,) = objects.get("configmaps", selector=f"{OWNER}={APP}")
    assert one["data"] == {"a": "b"}
    assert objects.get("configmaps", "default", f"{OWNER}={APP}") == ()


def test_present_with_one_object_and_with_several(objects, site):
    assert objects.present([configmap(namespace="default")]) == ()
    both = [configmap("a", "default", x="1"), configmap("b", "default", x="2")]
    objects.apply(both, owner=APP, timeout=60)
    assert [one["data"]["x"] for one in objects.present(both)] == ["1", "2"]
    assert [one["data"]["x"] for one in objects.present(both[:1])] == ["1"]
    assert objects.present([]) == ()


def test_what_is_in_no_namespace(client, objects, site, monkeypatch):
    expected = {("", "Namespace"), ("rbac.authorization.k8s.io", "ClusterRole")}
    found = objects.cluster_wide()
    assert expected <= found
    assert not {("", "ConfigMap"), ("apps", "Deployment")} & found
    monkeypatch.setattr(client, "run", incomplete(client.run))
    assert objects.cluster_wide() == found


def test_many_objects_are_counted_and_a_few_named():
    few = [configmap(f"c{number}") for number in range(5)]
    assert owned_objects.titles(few).count("ConfigMap shop/c") == 5
    assert owned_objects.titles([*few, configmap("c5")]) == "6 objects"
