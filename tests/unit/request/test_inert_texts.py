# SPDX-License-Identifier: Apache-2.0
"""Every text of a request reaches kubespray as text, or the request is refused.

Each text of a request that uses every option is replaced by, or followed by, what
Ansible, YAML or a shell would take for more than a text.
"""

import copy
import functools
import json
import operator
import shlex
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import pytest
import yaml

from tacker_k8s_mgmt.errors import ParamError
from tacker_k8s_mgmt.kubespray import inventory, variables
from tacker_k8s_mgmt.model.yaml_text import SafeLoader
from tests.helpers import full_request
from tests.helpers.requests import BASTION
from tests.helpers.samples import changed, read, request

MARKS = ("{{", "{%", "{#")
HOSTILE = (
    "{{ lookup('pipe', 'touch /tmp/owned') }}",
    "{% for x in [1] %}{{ x }}{% endfor %}",
    "{# a comment #}",
    "!!python/object/apply:os.system ['touch /tmp/owned']",
    "!unsafe x",
    "!vault |\n  $ANSIBLE_VAULT;1.1;AES256",
    "a: b\n- c",
    "&a *a",
    "$(touch /tmp/owned)`touch /tmp/owned`; touch /tmp/owned | cat > /tmp/owned",
    "-oProxyCommand=touch",
    "' \" \\ #",
)
PROXY = {
    "http_proxy": "http://proxy.example.org:3128",
    "no_proxy": ".example.org,10.0.0.0/8",
}
KEY = f"SHA256:{'a' * 43}"
RELEASES = ((2, 24), max(full_request.KUBERNETES))

Place = tuple[str | int, ...]


def body_of(release: tuple[int, int]) -> dict[str, Any]:
    more = {"bastion": BASTION, "proxy": PROXY, "ansible.host_key": KEY}
    body = changed({**full_request.rich(release), **more})
    # These are variables of Ansible as they are; a user may run what they like there.
    del body["kubespray_vars"]
    return body


def texts(value: Any, place: Place = ()) -> Iterator[Place]:
    if isinstance(value, dict):
        for name, inner in value.items():
            yield from texts(inner, (*place, name))
    elif isinstance(value, list):
        for number, inner in enumerate(value):
            yield from texts(inner, (*place, number))
    elif isinstance(value, str):
        yield place


def replaced(body: Any, place: Place, text: str, *, appended: bool) -> Any:
    body = copy.deepcopy(body)
    outer = body
    for name in place[:-1]:
        outer = outer[name]
    outer[place[-1]] = f"{outer[place[-1]]}{text}" if appended else text
    return body


def shown(place: Place) -> str:
    return ".".join(map(str, place))


CASES = [
    pytest.param(release, place, id=f"v{release[1]}-{shown(place)}")
    for release in RELEASES
    for place in texts(body_of(release))
]


def strings(value: Any) -> Iterator[str]:
    if isinstance(value, dict):
        for name, inner in value.items():
            yield str(name)
            yield from strings(inner)
    elif isinstance(value, list):
        for inner in value:
            yield from strings(inner)
    elif isinstance(value, str):
        yield value


def templates(body: dict[str, Any]) -> Iterator[str]:
    """The templates in the variables of every playbook run."""
    made = read(request(body))
    nodes, balancer = full_request.NODES, full_request.BALANCER
    mtus = full_request.NIC_MTUS
    built = variables.build(made, nodes, balancer, nic_mtus=mtus)
    for text in strings(json.loads(json.dumps(built))):
        if any(mark in text for mark in MARKS):
            yield text


def scalars(node: yaml.Node) -> Iterator[yaml.ScalarNode]:
    if isinstance(node, yaml.ScalarNode):
        yield node
    elif isinstance(node, yaml.MappingNode):
        for pair in node.value:
            for one in pair:
                yield from scalars(one)
    elif isinstance(node, yaml.SequenceNode):
        for one in node.value:
            yield from scalars(one)


def assert_inert(text: str) -> None:
    """Nothing in an inventory is a template, or of a tag but those of JSON."""
    root = yaml.compose(text, Loader=Loader)
    assert root is not None
    for scalar in scalars(root):
        if any(mark in scalar.value for mark in MARKS):
            assert scalar.tag == "!unsafe", scalar
        else:
            assert scalar.tag.startswith("tag:yaml.org,2002:"), scalar
    for host in yaml.load(text, Loader=Loader)["all"]["hosts"].values():  # noqa: S506
        for name in ("ansible_host", "ip", "access_ip", "tacker_server_id"):
            assert shlex.quote(host[name]) == host[name]


class Loader(SafeLoader):
    """Reads ``!unsafe`` as Ansible does."""


Loader.add_constructor("!unsafe", lambda _, node: node.value)


@pytest.mark.parametrize(("release", "place"), CASES)
def test_a_text_is_refused_or_stays_a_text(release, place):
    body = body_of(release)
    own = {*templates(body)}  # what the driver itself has Ansible take apart
    for hostile in HOSTILE:
        for appended in (False, True):
            wrong = replaced(body, place, hostile, appended=appended)
            try:
                made = read(request(wrong))
            except ParamError:
                continue
            assert_inert(inventory.render(full_request.NODES, made))
            assert {*templates(wrong)} <= own, shown(place)


def test_every_option_has_its_texts_tried():
    tried = {shown(place) for release in RELEASES for place in texts(body_of(release))}
    assert len(tried) > 70
    assert {"bastion.username", "worker_node.aspects.0.aspect_id"} <= tried


def takes(body: dict[str, Any], place: Place, text: str) -> bool:
    """Whether a request with this text at this place is accepted."""
    try:
        read(request(replaced(body, place, text, appended=False)))
    except ParamError as error:
        return shown(place) not in str(error)
    return True


def test_no_address_or_network_has_text_behind_it():
    release = max(full_request.KUBERNETES)
    more = {
        "master_node.pod_cidr": "10.235.0.0/16",
        "master_node.cluster_cidr": "10.233.0.0/18",
        "proxy.k8s_node_cidr": "10.10.0.0/24",
    }
    body = changed({**body_of(release), **more})
    tried = set()
    for place in texts(body):
        is_one = any(
            takes(body, place, form) for form in ("10.233.0.99", "10.240.0.0/18")
        )
        if not is_one or takes(body, place, "a b"):
            continue
        tried.add(shown(place))
        for zone in ("x\n10.9.9.9 ssh-ed25519 AAAA", "{{ x }}", "x,10.9.9.9", "$(id)"):
            for text in (f"fe80::1%{zone}", f"fe80::%{zone}/64", f"fe80::/64%{zone}"):
                assert not takes(body, place, text), (shown(place), text)
    assert tried >= {
        *("ansible.ip_address", "bastion.ip_address", "cluster.node_registry.address"),
        *more,
    }


#: Characters that Python takes for digits and letters of ASCII.
ALIKE = str.maketrans(
    "0123456789ksi",
    "\u0660\u0661\u0662\u0663\u0664\u0665\u0666\u0667\u0668\u0669\u212a\u017f\u0131",
)


@pytest.mark.parametrize("release", RELEASES)
def test_what_only_looks_like_a_digit_or_a_letter_is_none(release):
    body = body_of(release)
    for place in texts(body):
        text = str(functools.reduce(operator.getitem, place, body))
        alike = text.translate(ALIKE)
        # A place for any text takes this, too; files have any name.
        if (
            not text.startswith("/")
            and alike != text
            and not takes(body, place, "\u00e9\u0663")
        ):
            assert not takes(body, place, alike), (shown(place), alike)


@pytest.mark.parametrize("hostile", [one for one in HOSTILE if "\n" not in one])
@pytest.mark.parametrize("field", ["compute_host", "aspect_id"])
def test_what_nova_and_heat_call_a_vm_stays_a_text(hostile, field):
    nodes = tuple(replace(one, **{field: hostile}) for one in full_request.NODES)
    made = read(request(body_of(max(full_request.KUBERNETES))))
    text = inventory.render(nodes, made)
    assert_inert(text)
    assert {getattr(node, field) for node in inventory.parse(text)} == {hostile}
