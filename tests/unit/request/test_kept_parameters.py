# SPDX-License-Identifier: Apache-2.0
"""Parameters that are kept without their secrets, and the requests that follow."""

import copy
import json

import pytest
from hypothesis import given

from tacker_k8s_mgmt.errors import ParamError
from tacker_k8s_mgmt.request import reader
from tests.helpers.full_request import rich
from tests.helpers.param_strategies import MANY, MARKER, bodies, outcome
from tests.helpers.samples import (
    KEY,
    camelised,
    changed,
    read,
    refused,
    request,
    updated,
)
from tests.helpers.secret_values import (
    BY_URL,
    NOT_KEPT,
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


def whole(release):
    """Everything that one request can hold, secrets in every place."""
    registry = {
        "connection_type": 1,
        "server": "r",
        "username": "u",
        "password": "p-s3",
    }
    return changed(
        {
            **rich(release),
            "bastion": {"ip_address": "10.0.0.1", "username": "j", "password": "b-s3"},
            "proxy": {"http_proxy": "http://u:s3cret@proxy", "https_proxy": "http://p"},
            "worker_node.private_key": KEY,
            "worker_node.private_key_passphrase": "phrase-s3",
            "master_node.private_key": "/etc/tacker/k8s-mgmt/keys/cp",
            "private_registry_connection_info": [registry],
            "kubespray_vars": {"retry_stagger": 60, "a_password": "var-s3"},
        }
    )


RELEASES = [(2, 27), (2, 32)]


class TestKeptParameters:
    @pytest.mark.parametrize("name", VALUES)
    def test_a_literal_secret_is_taken_out_and_nothing_else(self, name):
        body = with_secret(name, value_of(name))
        kept = without(body)
        for place in (kept, body):
            for part in written(name).split(".")[:-1]:
                place = place[int(part) if part.isdigit() else part]
            assert place.pop(name.rpartition(".")[2])
        assert without(body) == kept

    @pytest.mark.parametrize("name", VALUES)
    def test_references_stay(self, name):
        kept = without(with_secret(name, BY_URL))
        for part in written(name).split("."):
            kept = kept[int(part) if part.isdigit() else part]
        assert kept == BY_URL

    @pytest.mark.parametrize(
        ("name", "value"),
        [
            ("ansible.private_key", "/etc/tacker/k8s-mgmt/keys/a"),
            ("proxy.http_proxy", "http://proxy.example.org:3128"),
            ("cluster.offline.files_repo", "https://files.example.org"),
            ("ansible.password", ""),
        ],
    )
    def test_what_is_no_secret_stays(self, name, value):
        kept = without(changed({name: value}))
        for part in name.split("."):
            kept = kept[part]
        assert kept == value

    def test_names_are_brought_into_the_specifications_spelling(self):
        body = changed({})
        assert without(camelised(body)) == without(body)

    def test_nothing_is_kept_of_other_requests(self):
        assert reader.without_secrets({"other": "x"}) == {}

    def test_the_request_itself_is_not_changed(self):
        body = request(whole((2, 27)))
        before = copy.deepcopy(body)
        reader.without_secrets(body)
        read(body)
        updated(reader.without_secrets(body), body)
        assert body == before

    def test_it_is_json(self):
        kept = reader.without_secrets(request(whole((2, 27))))
        assert json.loads(json.dumps(kept)) == kept
        assert "s3" not in json.dumps(kept)

    def test_keeping_it_again_changes_nothing(self):
        kept = reader.without_secrets(request(whole((2, 27))))
        assert reader.without_secrets(kept) == kept

    def test_a_request_may_not_say_so_itself(self):
        body = changed({"ansible.password": NOT_KEPT})
        (found,) = refused(read, request(body))
        assert found.startswith("ansible.password: was given as text")


class TestLaterRequests:
    @pytest.mark.parametrize("release", RELEASES)
    def test_one_that_repeats_everything_is_as_before(self, release):
        body = request(whole(release))
        made = updated(reader.without_secrets(body), body)
        assert compared(made) == compared(read(body))
        assert made.changed_logins == frozenset()

    @pytest.mark.parametrize("release", RELEASES)
    def test_one_that_repeats_the_secrets_alone_is_as_before(self, release):
        body = request(whole(release))
        kept = reader.without_secrets(body)
        (attribute,) = kept
        repeated = {attribute: secrets_alone(kept[attribute], body[attribute])}
        assert compared(updated(kept, repeated)) == compared(read(body))

    @pytest.mark.parametrize("release", RELEASES)
    def test_every_missing_secret_is_named_with_the_ways_out(self, release):
        body = request(whole(release))
        found = refused(
            updated, reader.without_secrets(body), request({"drain": {"timeout": 9}})
        )
        assert len(found) == len(set(found))
        expected = {".".join(at) for at in not_kept(without(whole(release)))}
        assert {problem.partition(": ")[0] for problem in found} == expected
        for problem in found:
            assert "repeat" in problem
            assert '{"secret_ref": "<URL>"} or {"file": "<path>"}' in problem
        assert set(reader.not_kept(reader.without_secrets(body))) == expected

    def test_and_also_without_parameters_in_the_request(self):
        kept = reader.without_secrets(request(changed({})))
        found = refused(updated, kept, None)
        assert len(found) == 4

    @pytest.mark.parametrize("name", VALUES)
    def test_one_that_was_a_reference_needs_nothing(self, name):
        body, secret = with_secret(name, BY_URL), value_of(name)
        kept = reader.without_secrets(request(body))
        again = secrets_alone(without(body), body)
        made = updated(kept, request(again), dictionary({SECRET_URL: secret}))
        expected = read(request(with_secret(name, secret)))
        assert compared(made) == compared(expected)

    def test_a_reference_takes_the_place_of_a_literal_secret(self):
        body = changed({})
        kept = reader.without_secrets(request(body))
        again = secrets_alone(without(body), body)
        again["worker_node"]["password"] = BY_URL
        secrets = dictionary({SECRET_URL: "new-s3cret"})
        made = updated(kept, request(again), secrets)
        assert made.workers.password.get_secret_value() == "new-s3cret"

    def test_a_replaced_reference_is_not_asked_for(self):
        stored = request(changed({"worker_node.password": BY_URL}))
        made = updated(stored, request({"worker_node": {"password": "literal"}}), never)
        assert made.workers.password.get_secret_value() == "literal"
        assert made.changed_logins == {"worker_node"}

    def test_a_key_takes_the_place_of_a_password_that_was_not_kept(self):
        body = changed({})
        kept = reader.without_secrets(request(body))
        again = secrets_alone(without(body), body)
        again["worker_node"] = {"private_key": "/etc/tacker/k8s-mgmt/keys/w"}
        made = updated(kept, request(again))
        assert made.workers.password is None

    def test_a_list_is_repeated_whole(self):
        body = with_secret("cluster.registries.*.password", "s3cret")
        kept = reader.without_secrets(request(body))
        again = secrets_alone(without(changed({})), changed({}))
        (found,) = refused(updated, kept, request(again))
        assert "repeat all of cluster.registries in this request" in found
        again["cluster"] = {"registries": []}
        assert updated(kept, request(again)).cluster.registries == ()

    def test_one_secret_of_an_unchangeable_structure_may_be_repeated(self):
        body = with_secret("cluster.openstack.password", "s3cret")
        kept = reader.without_secrets(request(body))
        again = secrets_alone(without(body), body)
        assert again["cluster"] == {"openstack": {"password": "s3cret"}}
        assert updated(kept, request(again)).cluster.openstack.password
        again["cluster"]["openstack"]["region"] = "two"
        (found,) = refused(updated, kept, request(again))
        assert found.startswith("cluster.openstack: cannot be changed")

    def test_part_of_a_nested_structure_leaves_the_rest(self):
        offline = {"files_repo": "https://u:p@files", "registry_host": "images"}
        body = changed({"cluster.offline": offline})
        kept = reader.without_secrets(request(body))
        again = secrets_alone(without(body), body)
        assert again["cluster"]["offline"] == {"files_repo": "https://u:p@files"}
        made = updated(kept, request(again))
        assert made.cluster.offline == read(request(body)).cluster.offline

    def test_terminate_wants_the_servers_login_only(self):
        kept = reader.without_secrets(request(changed({})))
        needed = ("ansible", "bastion")
        (found,) = refused(updated, kept, None, needed=needed)
        assert found.startswith("ansible.password: was given as text")
        change = request({"ansible": {"password": "again"}})
        made = updated(kept, change, needed=needed)
        assert made.server_account.password.get_secret_value() == "again"


class TestCompleted:
    """Kept parameters with the secrets of the requests that gave them."""

    @pytest.mark.parametrize("release", RELEASES)
    def test_the_request_that_they_are_of_gives_all(self, release):
        body = request(whole(release))
        made = reader.RequestReader().with_former_secrets(
            reader.without_secrets(body), [{}, body]
        )
        assert compared(made) == compared(read(body))

    def test_the_latest_request_counts(self):
        body = request(changed({}))
        later = request({"worker_node": {"password": "later"}})
        latest = request({"worker_node": {"password": "latest"}})
        kept = reader.without_secrets(body)
        made = reader.RequestReader().with_former_secrets(kept, [latest, later, body])
        assert made.workers.password.get_secret_value() == "latest"
        assert made.control_plane.password == read(body).control_plane.password

    def test_nothing_but_secrets_is_taken_from_them(self):
        body = request(changed({"worker_node.password": BY_URL}))
        old = request(changed({"drain": {"timeout": 9}, "worker_node.username": "old"}))
        secrets = dictionary({SECRET_URL: "kept-s3cret"})
        made = reader.RequestReader(secrets).with_former_secrets(
            reader.without_secrets(body), [old]
        )
        assert made.workers.password.get_secret_value() == "kept-s3cret"
        assert made.workers.username == read(body, secrets).workers.username
        assert made.drain == read(body, secrets).drain

    def test_a_list_that_was_shorter_gives_what_it_has(self):
        registry = {"prefix": "r", "server": "r", "username": "u", "password": "p-s3"}
        body = changed({})
        body["cluster"] = {"registries": [{**registry, "prefix": "q"}, registry]}
        short = changed({})
        short["cluster"] = {"registries": [registry]}
        kept = reader.without_secrets(request(body))
        (found,) = refused(
            reader.RequestReader().with_former_secrets, kept, [request(short)]
        )
        assert "cluster.registries.1.password" in found

    def test_missing_values_are_named(self):
        found = refused(
            reader.RequestReader().with_former_secrets,
            reader.without_secrets(request(changed({}))),
            [],
        )
        assert len(found) == 4

    def test_of_no_cluster_there_is_nothing(self):
        with pytest.raises(ParamError):
            reader.RequestReader().with_former_secrets({}, [])


def secrets_alone(kept, given):
    """Of what was given, that which was not kept; lists and variables whole."""
    if kept == NOT_KEPT:
        return given
    if isinstance(kept, dict):
        inner = {name: secrets_alone(kept[name], given[name]) for name in kept}
        return {
            name: value for name, value in inner.items() if value is not None
        } or None
    if isinstance(kept, list):
        return given if any(True for _ in not_kept(kept)) else None
    return None


def not_kept(kept, place=()):
    """Where something was taken out."""
    if kept == NOT_KEPT:
        yield place
    elif isinstance(kept, dict):
        for name, inner in kept.items():
            yield from not_kept(inner, (*place, name))
    elif isinstance(kept, list):
        for number, inner in enumerate(kept):
            yield from not_kept(inner, (*place, str(number)))


@MANY
@given(bodies())
def test_whatever_a_request_holds_no_secret_is_kept(body):
    assert MARKER not in repr(without(body))


@MANY
@given(bodies())
def test_whatever_it_holds_repeating_it_gives_the_same(body):
    made, _ = outcome(read, request(body))
    if made:
        again = updated(reader.without_secrets(request(body)), request(body))
        assert compared(again) == compared(made)
