# SPDX-License-Identifier: Apache-2.0
"""Secrets by reference."""

import json
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tacker_k8s_mgmt.request import reader
from tacker_k8s_mgmt.request import secrets as secret_fields
from tacker_k8s_mgmt.request.reader import ClusterRequest
from tacker_k8s_mgmt.request.secrets import NotKept, Reference
from tests.helpers.param_strategies import MANY, MARKER, bodies, outcome
from tests.helpers.samples import (
    KEY,
    REMOVED,
    camelised,
    changed,
    read,
    refused,
    request,
    updated,
)
from tests.helpers.secret_values import (
    BY_FILE,
    BY_URL,
    NOT_KEPT,
    SECRET_ID,
    SECRET_URL,
    VALUES,
    compared,
    dictionary,
    never,
    value_of,
    with_secret,
    without,
    written,
)


class TestWhereSecretsAre:
    def test_every_attribute_that_pydantic_hides_is_known(self):
        schema = ClusterRequest.model_json_schema()
        assert json.dumps(schema).count('"format": "password"') == sum(
            1
            for definition in [schema, *schema["$defs"].values()]
            for attribute in definition.get("properties", {}).values()
            if '"format": "password"' in json.dumps(attribute)
        )
        hidden = {
            (definition, name)
            for definition, found in schema["$defs"].items()
            for name, attribute in found.get("properties", {}).items()
            if '"format": "password"' in json.dumps(attribute)
        }
        names = {
            (structure, location[-1])
            for location, _ in secret_fields.attributes(ClusterRequest)
            for structure, _ in hidden
            if (structure, location[-1]) in hidden
        }
        assert names == hidden

    def test_they_are_those_of_the_tests(self):
        found = [".".join(at) for at, _ in secret_fields.attributes(ClusterRequest)]
        # Those of applications are references only: test_applications.
        others = [name for name in found if not name.startswith("applications.")]
        assert sorted(others) == sorted(VALUES)

    @pytest.mark.parametrize("name", VALUES)
    def test_what_stands_for_an_unknown_secret_is_right_in_form(self, name):
        forms = {".".join(at): f for at, f in secret_fields.attributes(ClusterRequest)}
        assert read(request(with_secret(name, forms[name].stand_in)))


class TestReferences:
    @pytest.mark.parametrize("given", [BY_URL, BY_FILE], ids=["secret_ref", "file"])
    @pytest.mark.parametrize("name", VALUES)
    def test_one_stands_for_the_secret_it_names(self, name, given):
        secret = value_of(name)
        expected = read(request(with_secret(name, secret)))
        known = {target: secret for target in given.values()}
        made = read(request(with_secret(name, given)), dictionary(known))
        (use,) = made.references
        assert (use.attribute, use.reference.as_given()) == (written(name), given)
        if not (name.endswith("private_key") and "file" in given):
            assert compared(made) == expected
            assert made.secrets() == expected.secrets() or (
                set(made.secrets()) > set(expected.secrets())
            )

    @pytest.mark.parametrize("name", [n for n in VALUES if n.endswith("private_key")])
    def test_the_file_of_a_private_key_is_its_path(self, name):
        by_path = read(request(with_secret(name, BY_FILE["file"])))
        made = read(request(with_secret(name, BY_FILE)), never)
        assert compared(made) == by_path

    @pytest.mark.parametrize("name", VALUES)
    def test_a_file_may_be_relative_to_the_operators_directory(self, name):
        body = request(with_secret(name, {"file": "site-a/./worker"}))
        made = read(body, dictionary({"site-a/worker": value_of(name)}))
        (use,) = made.references
        assert use.reference == Reference("file", "site-a/worker")
        if name.endswith("private_key"):
            (key,) = [a.private_key for a in made.accounts() if a.private_key]
            assert key.path == "./site-a/worker"

    @pytest.mark.parametrize("name", VALUES)
    def test_without_a_resolver_it_is_checked_and_not_followed(self, name):
        made = read(request(with_secret(name, BY_URL)))
        assert [use.reference.as_given() for use in made.references] == [BY_URL]
        assert made.resolved == ()

    def test_names_from_tackers_output_are_understood(self):
        body = changed({"worker_node.password": BY_URL})
        secrets = dictionary({SECRET_URL: "from-barbican"})
        made = read(request(camelised(body)), secrets)
        assert made.workers.password.get_secret_value() == "from-barbican"

    def test_every_one_that_leads_nowhere_is_a_problem_beside_all_others(self):
        body = changed(
            {
                "ansible.password": BY_URL,
                "worker_node.password": BY_FILE,
                "master_node.ssh_cp_name": REMOVED,
                "drain.timeout": "soon",
            }
        )
        found = refused(read, request(body), dictionary({}))
        assert set(found) == {
            "ansible.password: leads nowhere",
            "worker_node.password: leads nowhere",
            "master_node.ssh_cp_name: is missing",
            "drain.timeout: must be a whole number",
        }

    def test_what_it_leads_to_is_checked_like_a_text_and_not_shown(self):
        secrets = dictionary({SECRET_URL: f"{MARKER}\nsecond line"})
        body = changed({"ansible.password": BY_URL})
        (found,) = refused(read, request(body), secrets)
        assert found == "ansible.password: must not contain control characters"

    def test_of_structures_that_are_not_needed_none_has_to_be_there(self):
        body = changed({"ansible.password": BY_URL, "worker_node.password": BY_FILE})
        secrets = dictionary({SECRET_URL: "server's"})
        made = read(request(body), secrets, needed=("ansible",))
        assert made.server_account.password.get_secret_value() == "server's"
        found = refused(read, request(body), dictionary({}), needed=("ansible",))
        assert found == ("ansible.password: leads nowhere",)


MALFORMED = {
    "empty": ({}, "must be text or a reference"),
    "two": ({**BY_URL, **BY_FILE}, "must be text or a reference"),
    "other": ({"vault": MARKER}, "must be text or a reference"),
    "number": ({"file": 5}, "must be a reference with text"),
    "nested": ({"secret_ref": {"file": MARKER}}, "must be a reference with text"),
    "directory": ({"file": "./"}, "file must name a file"),
    "upwards": ({"file": f"/etc/../{MARKER}"}, "file must not contain '..'"),
    "out": ({"file": f"../{MARKER}"}, "file must not contain '..'"),
    "control": ({"file": f"/{MARKER}\n/b"}, "file must not contain control"),
    "blank": ({"file": " "}, "file must not be empty"),
    "kept": ({"not_kept": "yes"}, "must be text or a reference"),
    **{
        f"url {number}": ({"secret_ref": url}, "secret_ref must be the URL of a secret")
        for number, url in enumerate(
            [
                MARKER,
                SECRET_ID,
                f"ftp://host/v1/secrets/{SECRET_ID}",
                f"https:///v1/secrets/{SECRET_ID}",
                f"https://host/v1/containers/{SECRET_ID}",
                f"https://host/v1/secrets/{MARKER}",
                f"https://user:{MARKER}@host/v1/secrets/{SECRET_ID}",
                f"https://host/v1/secrets/{SECRET_ID}?x={MARKER}",
                f"https://host/v1/secrets/{SECRET_ID}#{MARKER}",
                f"https://[/v1/secrets/{SECRET_ID}",
                f"https://host/v1/secrets/{SECRET_ID}/payload",
            ]
        )
    },
}


class TestMalformedReferences:
    @pytest.mark.parametrize("case", MALFORMED)
    @pytest.mark.parametrize(
        "name",
        ["ansible.password", "proxy.http_proxy", "cluster.registries.*.password"],
    )
    def test_one_problem_names_attribute_and_form(self, case, name):
        value, expected = MALFORMED[case]
        (found,) = refused(read, request(with_secret(name, value)), never)
        assert found.startswith(f"{written(name)}: {expected}")
        assert MARKER not in found

    def test_where_no_secret_is_wanted_there_is_no_reference(self):
        (found,) = refused(read, request(changed({"ansible.username": BY_URL})), never)
        assert found == "ansible.username: must be text"

    def test_a_url_may_end_with_a_slash_and_have_a_prefix(self):
        url = f"https://cloud.example.org/key-manager/v1/secrets/{SECRET_ID}/"
        made = read(request(changed({"ansible.password": {"secret_ref": url}})))
        assert made.references[0].reference.secret_id == SECRET_ID


class TestVariables:
    """Of kubespray_vars nobody knows which are secrets."""

    def vars(self, **variables):
        return request(changed({"kubespray_vars": variables}))

    def test_references_stand_anywhere_in_them(self):
        given = self.vars(
            some_variable=BY_URL,
            registries=[{"user": "u", "password": BY_FILE}, "plain"],
        )
        secrets = dictionary({SECRET_URL: "one-s3cret", BY_FILE["file"]: "two-s3cret"})
        made = read(given, secrets)
        assert made.kubespray_vars == {
            "some_variable": "one-s3cret",
            "registries": [{"user": "u", "password": "two-s3cret"}, "plain"],
        }
        assert {"one-s3cret", "two-s3cret"} <= set(made.secrets())
        attributes = [use.attribute for use in made.references]
        assert attributes == [
            "kubespray_vars.some_variable",
            "kubespray_vars.registries.0.password",
        ]

    @pytest.mark.parametrize(
        "variables",
        [
            {"registry_auth": BY_FILE},
            {"my_secrets": {"one": [BY_FILE]}},
            {"apiToken": BY_FILE},
        ],
    )
    def test_a_file_is_one_below_the_name_of_a_secret(self, variables):
        secrets = dictionary({BY_FILE["file"]: "one-s3cret"})
        made = read(self.vars(**variables), secrets)
        assert [use.reference.target for use in made.references] == [BY_FILE["file"]]
        assert "one-s3cret" in made.secrets()

    @pytest.mark.parametrize("text", [BY_FILE["file"], "relative", " ", "https://x/y"])
    @pytest.mark.parametrize("shape", ["plain", "nested", "listed"])
    def test_elsewhere_it_is_a_variable_of_that_form(self, text, shape):
        own = {"file": text}
        value = {"plain": own, "nested": {"a": {"b": own}}, "listed": [own]}[shape]
        given = self.vars(audit_source=value)
        made = read(given, never)
        assert made.kubespray_vars == {"audit_source": value}
        assert made.references == ()
        kept = without(changed({"kubespray_vars": made.kubespray_vars}))
        assert kept["kubespray_vars"] == {"audit_source": value}

    def test_even_then_a_login_in_it_is_not_kept(self):
        given = self.vars(audit_source={"file": f"https://u:{MARKER}@host/x"})
        assert read(given, never).references == ()
        assert MARKER not in json.dumps(reader.without_secrets(given))

    def test_unresolved_they_stay_as_they_are(self):
        made = read(self.vars(some_variable=BY_URL))
        assert made.kubespray_vars == {"some_variable": BY_URL}

    @pytest.mark.parametrize(
        "variable",
        [{"file": True}, {"file": "relative", "enabled": True}, {"secret_refs": "x"}],
    )
    def test_other_structures_are_variables(self, variable):
        made = read(self.vars(some_download=variable), never)
        assert made.kubespray_vars == {"some_download": variable}

    def test_one_that_is_written_wrongly_is_a_problem(self):
        given = self.vars(a={"secret_ref": "x"}, tokens=[{"file": "../other"}])
        first, second = refused(read, given, never)
        assert first.startswith("kubespray_vars.a: secret_ref must be the URL")
        assert second.startswith("kubespray_vars.tokens.0: file must not contain '..'")

    def test_no_depth_breaks_it(self):
        deep = json.loads("[" * 900 + "]" * 900)
        (found,) = refused(read, self.vars(a=deep))
        assert found.endswith("is nested too deeply")

    @pytest.mark.parametrize(
        ("given", "kept"),
        [
            ({"retry_stagger": 60}, {"retry_stagger": 60}),
            ({"registry_password": "x"}, {"registry_password": NOT_KEPT}),
            ({"kube_token_auth": True}, {"kube_token_auth": True}),
            (
                {"my_secrets": ["x", {"y": 1}]},
                {"my_secrets": [NOT_KEPT, {"y": NOT_KEPT}]},
            ),
            (
                {"auths": [{"key": "x", "n": "y"}]},
                {"auths": [{"key": NOT_KEPT, "n": "y"}]},
            ),
            ({"files": "https://u:p@host"}, {"files": NOT_KEPT}),
            ({"pem": KEY}, {"pem": NOT_KEPT}),
            (
                {"a_token": BY_URL, "other": BY_FILE},
                {"a_token": BY_URL, "other": BY_FILE},
            ),
            ({"a_token": BY_FILE}, {"a_token": BY_FILE}),
            ({"a_token": ""}, {"a_token": ""}),
        ],
    )
    def test_what_looks_like_a_secret_is_not_kept(self, given, kept):
        assert without(changed({"kubespray_vars": given}))["kubespray_vars"] == kept

    def test_one_that_is_not_kept_is_given_again_whole(self):
        stored = reader.without_secrets(
            self.vars(auth=[{"user": "u", "password": "old"}], retry_stagger=60)
        )
        again = {"auth": [{"user": "u", "password": "new"}]}
        literal = {"kubespray_vars": again, **changed({})}
        made = updated(stored, request(literal))
        assert made.kubespray_vars == {**again, "retry_stagger": 60}
        del literal["kubespray_vars"]
        (found,) = refused(updated, stored, request(literal))
        assert found.startswith("kubespray_vars.auth.0.password: was given as text")
        assert "repeat all of kubespray_vars.auth in this request" in found


@MANY
@given(bodies(), st.data())
def test_malformed_or_unresolved_references_show_no_secret(body, data):
    targets = st.sampled_from([BY_URL, BY_FILE, *(v for v, _ in MALFORMED.values())])
    for name in data.draw(st.lists(st.sampled_from(sorted(VALUES)), max_size=3)):
        structure, _, attribute = name.rpartition(".")
        if isinstance(body.get(structure), dict):
            body[structure][attribute] = data.draw(targets)
    secrets = dictionary({SECRET_URL: f"{MARKER}resolved"})
    made, found = outcome(read, request(body), secrets)
    assert made or found
    assert MARKER not in f"{made!r} {made} {found}"


def test_references_are_values():
    reference = Reference("file", "/a")
    assert replace(reference) == reference
    assert hash(NotKept()) == hash(NotKept())
