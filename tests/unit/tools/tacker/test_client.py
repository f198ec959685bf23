# SPDX-License-Identifier: Apache-2.0
"""Answers that Tacker should not give, and instances that are looked for."""

import json
import socket

import pytest

from tacker_k8s_mgmt.errors import CloudError, TackerError
from tacker_k8s_mgmt.tools.cloud import client as cloud_client
from tacker_k8s_mgmt.tools.tacker import client, records, verbs
from tacker_k8s_mgmt.tools.tacker.client import Refused, Request, Silent, Tacker
from tests.helpers.fakes.tacker_api import problem
from tests.helpers.hostile import DEEP

NOBODY = "167066e7-099e-4694-8021-2a700452d4b3"
PATH = records.V2.instances


@pytest.fixture
def asked(openstack):
    """The client, at the fake."""
    return Tacker(cloud_client.connect())


def answers(tacker, path, *raw):
    tacker.instead["GET", path] = list(raw)


def ok(content, **headers):
    return 200, headers, content


@pytest.mark.parametrize(
    ("content", "why"),
    [
        (b"", "no JSON"),
        (b"{", "no JSON"),
        (b"\xff\xfe\x00", "no JSON"),
        (b"NaN", "no JSON"),
        (b"[" * 1000 + b"]" * 1000, "nested too deeply"),
        (DEEP.encode() if isinstance(DEEP, str) else DEEP, "no JSON"),
        (b"9" * 5000, "digits"),
        (b"[" + b"0," * 1_000_001 + b"0]", "more than 1000000 values"),
        (b"7", "no object"),
        (b"[]", "no object"),
    ],
    ids=range(10),
)
def test_what_is_no_document(asked, tacker, content, why):
    answers(tacker, PATH, ok(content))
    with pytest.raises(TackerError, match=why):
        asked.document(PATH, "2.0.0")


@pytest.mark.parametrize("content", [b"{}", b"7", b"null", b'"a"'])
def test_what_is_no_list(asked, tacker, content):
    answers(tacker, PATH, ok(content))
    with pytest.raises(TackerError, match="is no list"):
        list(asked.rows(PATH, "2.0.0"))


def test_an_answer_has_a_largest_size(asked, tacker, monkeypatch):
    monkeypatch.setattr(client, "LARGEST", 2**20)
    answers(tacker, PATH, ok(b" " * (2**20 + 1)))
    with pytest.raises(TackerError, match="more than 1 MiB"):
        asked.document(PATH, "2.0.0")


def test_an_answer_has_a_longest_time(asked, tacker, monkeypatch):
    monkeypatch.setattr(client, "LIMIT", -1.0)
    answers(tacker, PATH, ok(b"{}"))
    with pytest.raises(Silent, match="takes more than"):
        asked.document(PATH, "2.0.0")


def test_an_answer_that_breaks_off(asked, tacker):
    answers(tacker, PATH, ok(b"{}", **{"Content-Length": "5", "Connection": "close"}))
    with pytest.raises(Silent, match="Tacker does not answer"):
        asked.document(PATH, "2.0.0")


def test_no_server_at_all(asked, openstack):
    asked._address = "http://127.0.0.1:1"
    with pytest.raises(Silent, match="Tacker does not answer"):
        asked.document(PATH, "2.0.0")


def test_a_server_that_never_answers(asked, monkeypatch):
    monkeypatch.setattr(cloud_client, "LIMIT", 0.2)
    with socket.create_server(("127.0.0.1", 0)) as server:
        asked._address = f"http://127.0.0.1:{server.getsockname()[1]}"
        with pytest.raises(Silent, match=r"Tacker does not answer: .*timed out"):
            asked.document(PATH, "2.0.0")


def test_a_cloud_without_tacker(openstack):
    openstack.absent.add("nfv-orchestration")
    with pytest.raises(CloudError, match="catalogue has no Tacker"):
        Tacker(cloud_client.connect())


def test_a_login_that_keystone_takes_no_more(asked, tacker, openstack, monkeypatch):
    """While the verb waits, the token ends and the password was changed."""
    monkeypatch.setattr("tests.helpers.openstack_cloud.PASSWORD", "another")
    answers(tacker, PATH, problem(401, "no", "Unauthorized"))
    with pytest.raises(TackerError, match="Keystone does not take the login"):
        asked.document(PATH, "2.0.0")


def test_a_redirection_is_not_followed(asked, tacker):
    answers(tacker, PATH, (302, {"Location": "http://127.0.0.1:1/"}, b""))
    with pytest.raises(Refused) as caught:
        asked.document(PATH, "2.0.0")
    assert caught.value.status == 302


@pytest.mark.parametrize("same", [True, False])
def test_pages_without_an_end(asked, tacker, monkeypatch, same):
    monkeypatch.setattr(client, "MOST_PAGES", 5)

    def page(number):
        link = (
            f'<http://elsewhere.example/?nextpage_opaque_marker=m{number}>; rel="next"'
        )
        return ok(b"[{}]", Link=link)

    answers(tacker, PATH, *(page(1 if same else number) for number in range(9)))
    with pytest.raises(TackerError, match="has no end"):
        list(asked.rows(PATH, "2.0.0"))
    assert len(tacker.asked) == (2 if same else 6)


@pytest.mark.parametrize(
    "link",
    [
        "",
        "next",
        "<>; rel=next",
        f"<{'a' * 5000}>; rel=next",
        "<http://x/?a=b>;rel=next",
    ],
)
def test_a_link_that_leads_nowhere_is_the_end(asked, tacker, link):
    answers(tacker, PATH, ok(b"[]", Link=link))
    assert list(asked.rows(PATH, "2.0.0")) == []


@pytest.mark.parametrize(
    ("body", "said"),
    [
        (b'{"detail": "why", "title": "t"}', "why"),
        (b'{"detail": {"a": 1}, "title": "title"}', "title"),
        (b'{"message": "the policy"}', "the policy"),
        (b"<html>", "without a reason"),
        (b"[]", "without a reason"),
        (b'{"detail": "a\\u001b[31mb"}', "a [31mb"),
        (json.dumps({"detail": "x" * 10**6}).encode(), "xxx"),
    ],
)
@pytest.mark.parametrize("status", [400, 401, 403, 404, 409, 500])
def test_errors_say_why(asked, tacker, status, body, said):
    # keystoneauth asks once more with another token.
    answers(tacker, PATH, *[(status, {}, body)] * 2)
    with pytest.raises(Refused) as caught:
        asked.document(PATH, "2.0.0")
    text = str(caught.value)
    assert f"Tacker refuses GET {PATH} (HTTP {status}): " in text
    assert said in text
    assert len(text) < 5000
    assert ("policy does not allow" in text) is (status == 403)


def test_the_token_goes_along_and_is_not_printed(asked, tacker):
    request = Request("POST", f"{PATH}/{NOBODY}/heal", "2.0.0", {"a": "b"})
    with pytest.raises(Refused, match="not found"):
        asked.send(request)
    ((_, _, headers, body),) = tacker.sent
    assert headers["x-auth-token"] == "t0ken"
    assert body == {"a": "b"}
    assert "t0ken" not in request.text()


def test_secrets_are_masked_where_a_request_is_printed():
    body = {"worker_node": {"password": "s3cret", "username": "u"}, "token": 12345}
    body["list"] = [{"url": "http://me:s3cret@host/"}, {"private_key": "s3cret"}]
    text = Request("POST", "/x", body={"additionalParams": body}).text()
    for secret in ("s3cret", "12345"):
        assert secret not in text
    assert '"username": "u"' in text


# --- instances


def test_an_id_is_not_looked_for_as_a_name(asked, tacker, cluster):
    tacker.asked.clear()
    assert verbs.find_instance(asked, cluster.id).id == cluster.id
    assert not [
        path for path in tacker.asked if cluster.id in path and "filter" in path
    ]


def test_a_name_may_have_the_form_of_an_id(asked, tacker):
    made = tacker.instance("/vnflcm/v2", NOBODY)
    assert verbs.find_instance(asked, NOBODY).id == made


@pytest.mark.parametrize("status", [403, 404])
def test_one_api_may_be_closed_or_absent(asked, tacker, cluster, status):
    other = "/vnflcm/v2" if cluster.api == "v1" else "/vnflcm/v1"
    answers(tacker, f"{other}/vnf_instances", problem(status, "no"))
    assert verbs.find_instance(asked, "my-cluster").id == cluster.id
    for root in ("/vnflcm/v1", "/vnflcm/v2"):
        answers(tacker, f"{root}/vnf_instances", problem(status, "no"))
    with pytest.raises(Refused, match=f"HTTP {status}"):
        verbs.find_instance(asked, "my-cluster")


def test_an_error_of_one_api_is_one(asked, tacker, cluster):
    answers(tacker, "/vnflcm/v1/vnf_instances", problem(500, "database"))
    with pytest.raises(Refused, match="database"):
        verbs.find_instance(asked, "my-cluster")


@pytest.mark.parametrize(
    "row",
    [
        {},
        {"id": 7},
        {"id": "../../etc"},
        {"id": None},
        {"id": ["a"]},
        {"id": NOBODY + "\n"},
    ],
)
def test_an_instance_without_an_id(row):
    with pytest.raises(TackerError, match="without a valid id"):
        records.instance(records.V1, row)
    with pytest.raises(TackerError, match="without a valid id"):
        records.occurrence(records.V1, row)


WRONG = [None, 7, "a", [], {}, [None], [[]], [7], [{}], [{"id": 7}], {"a": []}]


@pytest.mark.parametrize("wrong", WRONG, ids=range(len(WRONG)))
@pytest.mark.parametrize("api", records.APIS, ids=lambda api: api.name)
def test_wrong_types_are_as_nothing(api, wrong):
    names = ("vnfcResourceInfo", "vnfcInfo", "scaleStatus", "maxScaleLevels")
    row = {"id": NOBODY, "instantiatedVnfInfo": dict.fromkeys(names, wrong)}
    row |= dict.fromkeys(("vnfInstanceName", "instantiationState", "vnfdId"), wrong)
    found = records.instance(api, row)
    assert (found.vnfcs, dict(found.levels)) == ((), {})
    row["instantiatedVnfInfo"] = wrong
    assert records.instance(api, row).vnfcs == ()
    row = {"id": NOBODY, "operation": "SCALE", "operationParams": wrong, "error": wrong}
    one = records.occurrence(api, row)
    assert (one.kind, one.error, one.state) == ("SCALE", "", "")


@pytest.mark.parametrize("level", [-1, "1", None, True, 1e300, {}])
def test_a_level_that_is_none(level):
    info = {"scaleStatus": [{"aspectId": "a", "scaleLevel": level}]}
    row = {"id": NOBODY, "instantiatedVnfInfo": info}
    assert records.instance(records.V1, row).levels == {}


@pytest.mark.parametrize(
    ("location", "found"),
    [
        (f"http://x/vnflcm/v1/vnf_lcm_op_occs/{NOBODY}", NOBODY),
        (f"/{NOBODY}/", NOBODY),
        ("", ""),
        ("http://x/../..", ""),
        (f"http://x/{NOBODY}?a=b", ""),
    ],
)
def test_the_operation_that_a_location_leads_to(location, found):
    assert records.location_id(location) == found
