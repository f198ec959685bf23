# SPDX-License-Identifier: Apache-2.0
"""A sentinel in the place of every secret is in nothing that is shown or kept.

The places are those of the models; free-form mappings have them in every form.
"""

import base64
import json
import logging
from typing import Any

import pytest

from tacker_k8s_mgmt import errors
from tacker_k8s_mgmt.errors import ParamError
from tacker_k8s_mgmt.kubespray import inventory, variables
from tacker_k8s_mgmt.operations.instantiate import Instantiate
from tacker_k8s_mgmt.request import reader, structure
from tacker_k8s_mgmt.request.installation import ClusterRequest
from tacker_k8s_mgmt.request.structure import Structure
from tacker_k8s_mgmt.text import Redactor
from tacker_k8s_mgmt.tools.cli.request_input import masked
from tests.helpers import operations
from tests.helpers.fakes.journal import FakeJournal
from tests.helpers.fakes.site import FakeSite
from tests.helpers.full_request import BALANCER, NODES
from tests.helpers.samples import KEY, changed, read, request
from tests.helpers.secret_values import VALUES, with_secret

MARK = "S3ntinel"
NUMBER = 7364519283
#: As programs of any kind end a login at another "@", ":" or "/".
_AWKWARD = f"{MARK}-a@{MARK}-b'\"\\ö:{MARK}-c"
_IN_URL = f"{MARK}-a@{MARK}-b:{MARK}%40d"
_PEM = KEY.replace("secret", MARK)


def secret_of(name: str) -> str:
    if name.endswith("private_key"):
        return _PEM
    value = VALUES[name]
    if value and "://" in value:
        return value.replace("s3cret", _IN_URL)
    return _AWKWARD


FREE_FORM: dict[str, Any] = {
    "by its name": {"registry_password": _AWKWARD},
    "in a name": {"admin_password_of_harbor": _AWKWARD},
    "a number": {"registry_password": NUMBER},
    "below a name": {"vault_credentials": {"a": [{"b": _AWKWARD}]}},
    "in the list of a container engine": {
        "containerd_registry_auth": [
            {"registry": "r.example.org", "username": "u", "password": _AWKWARD}
        ]
    },
    "a token as user name there": {
        "containerd_registry_auth": [
            {"registry": "r", "username": f"{MARK}-1234567890", "password": "x"}
        ]
    },
    "as one text there": {"registries": [{"auth": f"{MARK}0123"}]},
    "a login in a URL": {"download_url": f"https://user:{_IN_URL}@files/x"},
    "a token in a URL": {"download_url": f"https://{MARK}@files/x"},
    "a token before a password": {"git": f"https://{MARK}-12345678:x-oauth@git/x"},
    "a slash in a URL": {"download_url": f"https://u:{MARK}/{MARK}@files/x"},
    "no port in a URL": {"download_url": f"https://u:p@files:{MARK}"},
    "a query": {"download_url": f"https://files/x?a=b&X-Amz-Signature={MARK}"},
    "a URL within a text": {"command": f"curl -x http://u:{MARK}@p https://files"},
    "a URL as a name": {"mirrors": {f"https://u:{MARK}@files": 1}},
    "a host that Python refuses": {"mirror": f"https://u:{MARK}@h\u2100st"},
    "a key": {"some_text": _PEM},
}
BODIES = {
    **{name: with_secret(name, secret_of(name)) for name in VALUES},
    **{
        f"kubespray_vars: {name}": changed({"kubespray_vars": value})
        for name, value in FREE_FORM.items()
    },
    "registry's token": changed(
        {
            "cluster.registries": [
                {"prefix": "r", "username": f"{MARK}-1234567890", "password": "xxxxx"}
            ]
        }
    ),
    "application's URL": changed(
        {
            "cluster.helm": True,
            "applications": [
                {
                    "name": "a",
                    "chart": {"url": f"https://h/x?token={MARK}", "sha256": "0" * 64},
                }
            ],
        }
    ),
}
SHOWN = ("registry's token", "application's URL")
every_body = pytest.mark.parametrize("body", BODIES.values(), ids=list(BODIES))


def ways(text: str) -> list[str]:
    """The text as a program or Ansible may quote it."""
    return [
        text,
        json.dumps(text),
        json.dumps({"msg": json.dumps(text, ensure_ascii=False)}),
        repr(text),
        *(piece for end in "@:/" for piece in text.split(end) if "://" in text[:9]),
    ]


def leaves(value: Any) -> list[str]:
    if isinstance(value, dict):
        return [
            text for pair in value.items() for part in pair for text in leaves(part)
        ]
    if isinstance(value, list):
        return [text for one in value for text in leaves(one)]
    return [str(value)]


def handed_on(made: ClusterRequest) -> list[str]:
    """Everything that an installation writes, as it is and as it may be quoted."""
    values = variables.build(made, NODES, BALANCER)
    files = [inventory.render(NODES, made), json.dumps(values)]
    texts = [*leaves(values), *made.secrets()]
    quoted = [way for text in (*files, *texts) for way in ways(text)]
    return [*quoted, *(way for text in texts for way in encoded(text))]


def encoded(text: str) -> list[str]:
    pairs = (text, f"user:{text}", f"us:{text}:x")
    return [base64.b64encode(pair.encode()).decode() for pair in pairs]


def shown(text: str) -> bool:
    """Whether the sentinel is in a text, in base64, too."""
    inner = MARK.encode()
    stems = (base64.b64encode(b"\0" * n + inner).decode()[n + 1 : 10] for n in range(3))
    return MARK in text or str(NUMBER) in text or any(stem in text for stem in stems)


# The model shows user names and the URLs of applications, which only messages lack.
@pytest.mark.parametrize("name", [n for n in BODIES if n not in SHOWN])
def test_it_is_in_no_text_of_the_model_and_nothing_that_is_kept(name):
    made = read(request(BODIES[name]))
    texts = [repr(made), str(made), repr(made.accounts()), *made.warnings]
    texts.append(repr(reader.without_secrets(request(BODIES[name]))))
    assert not list(filter(shown, texts))


@every_body
def test_no_message_that_quotes_what_is_handed_on_has_it(body):
    made = read(request(body))
    redact = Redactor(made.secrets())
    texts = handed_on(made)
    assert not [redact(text) for text in texts if shown(redact(text))]


@pytest.mark.parametrize("name", [n for n in BODIES if n not in SHOWN])
def test_a_rehearsal_masks_it(name):
    made = masked(read(request(BODIES[name])))
    hosts = inventory.render(NODES, made)
    texts = [hosts, json.dumps(variables.build(made, NODES, BALANCER))]
    assert not [text for text in texts if shown(text)]


@every_body
def test_a_failed_operation_has_it_in_no_error_log_or_journal(
    body, caplog, monkeypatch
):
    caplog.set_level(logging.DEBUG)
    made = read(request(body))
    site, quoted = FakeSite(), tuple(handed_on(made))
    records: list[Any] = []

    def fail(*_: Any, **__: Any) -> None:
        tasks = [{"host": "w", "task": text, "message": text} for text in quoted]
        raise errors.PlaybookFailed(
            host="h", playbook="p", rc=2, log="l", failures=quoted, tasks=tasks
        )

    def record(_: Any, *given: Any, **named: Any) -> None:
        records.append((given, named))

    monkeypatch.setattr(site, "wait_reachable", fail)
    monkeypatch.setattr(FakeJournal, "record", record)
    with pytest.raises(errors.StepFailed) as caught:
        operations.run(Instantiate, site, made)
    for text in (str(caught.value), caplog.text, repr(records)):
        assert not shown(text)
    assert records


def places(
    model: type[Structure] = ClusterRequest, place: tuple[str, ...] = ()
) -> list[tuple[str, ...]]:
    """Every attribute of the models, those in lists too ("*")."""
    found = []
    for name, attribute in structure.attributes(model).items():
        here = (*place, name)
        found.append(here)
        if attribute.structure:
            inner = (*here, "*") if attribute.is_list else here
            found += places(attribute.structure, inner)
    return found


def planted(place: tuple[str, ...], value: Any) -> dict[str, Any]:
    """A request whose attribute has this value; what is around it may be missing."""
    for name in reversed(place[1:]):
        value = [value] if name == "*" else {name: value}
    body = changed({})
    outer = body.get(place[0])
    if isinstance(outer, dict) and isinstance(value, dict):
        value = {**outer, **value}
    return {**body, place[0]: value}


MISPLACED = [
    f"https://user:{MARK}@h\u2100st/x",
    f"https://user:{MARK}@[host/x",
    f"https://user:{MARK}@host:x{MARK}/",
    f"https://user:{MARK}@host\x1b[2J/",
    f"user:{MARK}@host/1",
    f"{MARK} {MARK}\x00",
    {"secret_ref": f"https://u:{MARK}@h\u2100/v1/secrets/1"},
    {"file": f"/{MARK}/../{MARK}"},
    [f"https://user:{MARK}@h\u2100st/x"],
    {f"https://user:{MARK}@h\u2100st/x": f"{MARK} x"},
]


@pytest.mark.parametrize("place", places(), ids=".".join)
def test_no_refusal_repeats_it_wherever_it_was_misplaced(place):
    for value in MISPLACED:
        try:
            made = read(request(planted(place, value)))
        except ParamError as error:
            said = [*error.problems, str(error)]
        else:
            assert made is not None
            said = list(made.warnings)
        assert not [
            t for t in said if MARK in t and "is not a known attribute" not in t
        ]
        assert all(text.isprintable() for text in said)
