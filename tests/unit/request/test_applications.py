# SPDX-License-Identifier: Apache-2.0
"""``applications`` of the parameters, and in the VNF instance's metadata."""

import json

import pytest

from tacker_k8s_mgmt.errors import ParamError
from tacker_k8s_mgmt.request import reader
from tacker_k8s_mgmt.tools.cli import request_input
from tests.helpers.samples import REMOVED, SIMPLE, changed, read, refused, request

SECRET = "https://keys.example.org/v1/secrets/0b6e1f64-3c1e-4f7c-9f0a-0d9b1e0b7c11"
DIGEST = "ab" * 32
SHOP = {
    "name": "shop",
    "manifests": [
        {"path": "Files/kubernetes/database.yaml"},
        {"url": "https://example.org/api.yaml", "sha256": DIGEST.upper()},
    ],
    "config": [{"name": "api", "data": [{"key": "api.conf", "value": "debug = no"}]}],
    "secrets": [
        {"name": "db", "data": [{"key": "password", "value": {"secret_ref": SECRET}}]}
    ],
}
CHART = {
    "name": "wiki",
    "namespace": "docs",
    "chart": {"path": "Files/charts/wiki"},
    "values": {
        "existingSecret": "wiki-db",
        "replicaCount": 2,
        "admin": {"password": {"secret_ref": SECRET}},
        "list": [{"token": {"file": "wiki-token"}}],
    },
}


def given(*applications, helm=True, **more):
    return request(changed({"applications": [*applications], "cluster.helm": helm}))


def parsed(*applications, **options):
    return read(given(*applications, **options), lambda ref: f"of {ref.kind}")


def problems(*applications, **options):
    return refused(parsed, *applications, **options)


def test_manifests_with_defaults():
    (shop,) = parsed(SHOP, helm=False).applications
    assert (shop.name, shop.place, shop.volumes) == ("shop", "shop", "keep")
    assert [file.title for file in shop.files()] == [
        "Files/kubernetes/database.yaml",
        "https://example.org/api.yaml",
    ]
    assert shop.manifests[1].sha256 == DIGEST
    assert shop.secrets[0].data[0].value.get_secret_value() == "of secret_ref"
    assert (shop.limits.rollout, shop.probe, shop.expose) == (600, None, ())


def test_references_in_the_values_of_a_chart_are_resolved_and_texts_stay():
    made = parsed(CHART)
    (wiki,) = made.applications
    assert wiki.place == "docs"
    assert wiki.values == {
        "existingSecret": "wiki-db",
        "replicaCount": 2,
        "admin": {"password": "of secret_ref"},
        "list": [{"token": "of file"}],
    }
    assert {"of secret_ref", "of file"} <= set(made.secrets())
    assert "of secret_ref" not in repr(made)
    assert "of secret_ref" not in request_input.masked(made).model_dump_json()


def test_names_of_objects_have_at_most_253_characters():
    label = "a" * 63
    name = ".".join([label, label, label, "a" * 61])
    config = [{"name": name, "data": []}]
    (shop,) = parsed({**SHOP, "config": config}).applications
    assert (len(name), shop.config[0].name) == (253, name)
    config[0]["name"] += "a"
    (problem,) = problems({**SHOP, "config": config})
    assert "config.0.name: must be the name of an object" in problem


@pytest.mark.parametrize("scheme", ["http", "https"])
def test_schemes_of_a_probe(scheme):
    probe = {"service": "web", "port": 80, "scheme": scheme}
    assert parsed({**SHOP, "probe": probe}).applications[0].probe.scheme == scheme


def test_parameters_that_are_kept_are_whole():
    kept = reader.without_secrets(given(CHART, SHOP))
    stored = kept["k8s_cluster_installation_param"]["applications"]
    assert stored == [CHART, SHOP]
    assert not [name for name in reader.not_kept(kept) if "applications" in name]


def test_queries_of_urls_are_masked():
    file = {"url": "https://e.org/a?b=s3cret#s3cret", "sha256": DIGEST}
    chart = {"name": "other", "chart": file}
    made = parsed({**SHOP, "manifests": [file, {"path": "b.yaml"}]}, chart, CHART)
    shown = request_input.masked(made).applications
    assert "s3cret" not in str(shown)
    assert [one.title for app in shown for one in app.files()] == [
        *("https://e.org/a?***", "b.yaml", "https://e.org/a?***", "Files/charts/wiki")
    ]
    assert made.applications[0].manifests[0].url == file["url"]
    kept = request_input.masked(parsed(CHART))
    assert kept.applications[0].model_fields_set == (
        parsed(CHART).applications[0].model_fields_set
    )


@pytest.mark.parametrize(
    "url",
    [
        *("http://e.org/a", "file:///etc/passwd", "//e.org/a", "-o/tmp/a", "e.org"),
        *("https:///a", "https:e.org/a", "https://:443/a"),
        *("https://u:p@e.org/a", "https://u@e.org/a", "https://@e.org/a"),
        *("https://\u00e9.org/a", "https://e.org/\u00e9", "https://e\u3002org/a"),
        *("https://e.org/a b", 'https://e.org/"a', "https://e.org/'a"),
        *("https://e.org\\@i.org/a", "https://e.org/a\\n", "https://e.org/a\n-o b"),
        *("https://e.org/\x1b[2J", "https://e.org/\x00", "https://e.org:x/a"),
        *("https://[::1/a", "https://e.org:99999/a", "https://e.org/\x7f"),
    ],
)
def test_no_other_url_is_taken(url):
    manifest = {"url": url, "sha256": DIGEST}
    (problem,) = problems({**SHOP, "manifests": [manifest]})
    assert problem.startswith("applications.0.manifests.0.url: must be a")
    assert url not in problem


@pytest.mark.parametrize(
    "url",
    [
        *("https://e.org", "HTTPS://E.org:8443/a.yaml?b=c&d=%20#e", "https://[::1]/a"),
        *("https://e.org/a@b", "https://e.org/{a,b}[1-3]", "https://xn--9ca.org/~a"),
    ],
)
def test_usual_urls_are_taken(url):
    manifest = {"url": url, "sha256": DIGEST}
    (shop,) = parsed({**SHOP, "manifests": [manifest]}).applications
    assert shop.manifests[0].url == url


@pytest.mark.parametrize(
    ("change", "problem"),
    [
        ({"name": "Shop"}, ".0.name: must have 1 to 40 lower-case"),
        ({"name": "a" * 41}, ".0.name: must have 1 to 40"),
        ({"namespace": "kube-system"}, ".0.namespace: must not be a namesp"),
        ({"manifests": []}, ".0: needs either chart or manifests"),
        ({"chart": {"path": "c"}}, ".0: needs either chart or manifests"),
        ({"values": {"a": 1}}, ".0: has values, but no chart"),
        ({"manifests": [{}]}, ".0.manifests.0: needs either path or url"),
        (
            {"manifests": [{"path": "a", "url": "https://e.org/a"}]},
            ".0.manifests.0: needs either path or url",
        ),
        ({"manifests": [{"url": "https://e.org/a"}]}, ".0.manifests.0: needs sha256"),
        (
            {"manifests": [{"url": "http://e.org/a", "sha256": DIGEST}]},
            ".0.manifests.0.url: must be an https:// URL",
        ),
        (
            {"manifests": [{"url": "https://e.org/a", "sha256": "ab"}]},
            ".0.manifests.0.sha256: must be a SHA-256 digest",
        ),
        ({"manifests": [{"path": "../a"}]}, ".0.manifests.0.path: must nam"),
        ({"volumes": "loose"}, ".0.volumes: must be 'keep' or 'delete'"),
        ({"limits": {"rollout": 0}}, ".0.limits.rollout: is not valid"),
        ({"probes": {}}, ".0.probes: is not a known attribute"),
        (
            {"secrets": [{"name": "db", "data": [{"key": "p", "value": "plain"}]}]},
            ".0.secrets.0.data.0.value: must be a reference",
        ),
        (
            {"config": [{"name": "a b", "data": []}]},
            ".0.config.0.name: must be the name of an object",
        ),
        (
            {
                "config": [
                    {"name": "a", "data": [{"key": "k", "value": {"file": "secret"}}]}
                ]
            },
            ".0.config.0.data.0.value: must be text",
        ),
        (
            {"config": [{"name": "a", "data": []}, {"name": "a", "data": []}]},
            ": a of config in namespace shop is given 2 times",
        ),
        ({"requires": [{"label": "no label"}]}, ".0.requires.0.label: must be a label"),
    ],
)
def test_what_is_refused(change, problem):
    assert f"applications{problem}" in "\n".join(problems({**SHOP, **change}))


def test_applications_against_each_other_and_the_cluster():
    found = problems(SHOP, SHOP, CHART, helm=False)
    assert found[0] == "applications: shop is given 2 times"
    assert found[-1] == (
        "applications: charts need Helm on the control planes: cluster.helm"
    )
    exposed = {**SHOP, "expose": [{"name": "api"}]}
    body = changed({"applications": [exposed], "external_lb_param": REMOVED})
    with pytest.raises(ParamError, match="expose needs a load balancer"):
        read(request(body))


@pytest.mark.parametrize("value", [7, "text", [7], {"name": "a"}, [{"config": 7}]])
def test_other_types_are_no_crash(value):
    with pytest.raises(ParamError, match="applications"):
        read(request({**SIMPLE, "applications": value}))


class TestMetadata:
    def test_they_replace_the_list(self):
        made = read(given(SHOP), metadata={"k8s_applications": json.dumps([CHART])})
        assert [one.name for one in made.applications] == ["wiki"]
        made = read(given(SHOP), metadata={"k8s_applications": "[]"})
        assert made.applications == ()

    def test_no_secret_is_in_them(self):
        plain = [{"name": "db", "data": [{"key": "p", "value": "plain"}]}]
        metadata = {"k8s_applications": json.dumps([{**SHOP, "secrets": plain}])}
        made = read(given(SHOP), metadata=metadata)
        assert made.metadata_problems == (
            "k8s_applications.0.secrets.0.data.0.value: must be a reference, "
            '{"secret_ref": "<URL>"} or {"file": "<path>"}',
        )
        assert reader.problems(metadata) == [*made.metadata_problems]
