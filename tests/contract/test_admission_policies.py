# SPDX-License-Identifier: Apache-2.0
"""The laboratory's stand-in decides on a tenant's Services as kube-apiserver does.

:file:`admission_answers.json` is what kube-apiserver has answered;
:mod:`tests.real.differential` makes the same requests to one.
"""

import json
from pathlib import Path

import pytest

from lab.kubeapi.server import start, stop
from lab.kubeapi.settings import Listener
from tests.helpers import admission_requests
from tests.helpers import kubeapi as bed

ANSWERS = Path(__file__).with_name("admission_answers.json")
RECORDED = json.loads(ANSWERS.read_text())["answers"]


@pytest.fixture(scope="module")
def answered(tmp_path_factory):
    """What the stand-in answers, by the request's name."""
    path, key = bed.make_certificate(tmp_path_factory.mktemp("certificate"))
    tokens = frozenset({bed.ADMIN_TOKEN})
    listener = Listener(
        port=0, certificate=str(path), key=str(key), admin_tokens=tokens
    )
    server = start(listener, bed.QUICK)
    kube = bed.Kube(server, path)

    def ask(method, where, body, kind):
        return kube.request(method, where, body, content_type=kind)[:2]

    admission_requests.prepare(ask)
    assert admission_requests.is_active(ask)
    yield admission_requests.answers(ask)
    stop(server)


def test_each_request_is_recorded():
    assert list(RECORDED) == [name for name, *_ in admission_requests.REQUESTS]


@pytest.mark.parametrize("name", RECORDED)
def test_the_stand_in_decides_as_kube_apiserver(answered, name):
    assert answered[name] == RECORDED[name]


def test_what_takes_over_an_address_or_leads_away_is_refused():
    refused = {name for name, text in RECORDED.items() if text.startswith("422")}
    assert refused == {
        *("create ips", "create ips of a balanced one", "create a name"),
        *("create a name and ips", "create ips without effect", "apply ips"),
        *(
            "apply ips to it",
            "patch ips onto a plain one",
            "patch ips onto it otherwise",
        ),
        *("patch a plain one to a name", "patch more ips", "patch other ips"),
        *("patch ips again", "patch another name", "patch a name and ips"),
        "patch and back",
    }
