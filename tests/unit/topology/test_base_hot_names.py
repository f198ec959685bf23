# SPDX-License-Identifier: Apache-2.0
"""Names in a request are looked for in the Base HOT, as Heat's stack is searched."""

import copy
import json
import logging

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tacker_k8s_mgmt.errors import DiscoveryError
from tacker_k8s_mgmt.remote import site
from tacker_k8s_mgmt.request.reader import ATTRIBUTE, RequestReader
from tacker_k8s_mgmt.tools.csar import parts, stack_preview, tacker_api
from tacker_k8s_mgmt.topology import base_hot
from tacker_k8s_mgmt.topology.heat_stack import find_machines
from tests.helpers.heat_stacks import template

SAMPLES = [
    (one, flavour)
    for one in (tacker_api.V1, tacker_api.V2)
    for flavour in ("simple", "ha")
]
USER_DATA = "UserData/k8s_cluster_user_data.py"


@pytest.fixture(
    scope="module", params=SAMPLES, ids=lambda one: f"{one[0].name} {one[1]}"
)
def sample(request):
    """Files of a sample package, its flavour and the sample request."""
    target, flavour = request.param
    files = parts.collect(flavour, source=parts.samples(target), api=target)
    path = parts.samples(target) / "requests" / f"instantiate-{flavour}.json"
    return files, flavour, json.loads(path.read_text())["additionalParams"]


def params(body, **changes):
    """The sample's parameters with dotted attributes changed, or removed with None."""
    body = copy.deepcopy(body)
    for dotted, value in changes.items():
        place, *steps = body[ATTRIBUTE], *dotted.split("__")
        for step in steps[:-1]:
            place = place[step]
        place[steps[-1]] = value
    parsed = RequestReader().read(body)
    assert parsed
    return parsed


def base_of(files, flavour):
    base, problems = base_hot.read(files, flavour)
    assert base, problems
    return base


def test_the_samples_have_what_their_requests_name(sample):
    files, flavour, body = sample
    found = base_hot.compare(base_of(files, flavour), params(body))
    assert found == base_hot.Comparison(())


def test_the_specifications_name_stands_for_the_balancers_port(sample):
    files, flavour, body = sample
    base, name = base_of(files, flavour), "externalLB_instance"
    wanted = params(body, external_lb_param__ssh_cp_name=name)
    assert base_hot.compare(base, wanted) == base_hot.Comparison(())
    wanted = params(body, master_node__ssh_cp_name=name)
    assert base_hot.compare(base, wanted).missing


WRONG = {
    f"{group}__{cp}_cp_name": f"{group}.{cp}_cp_name: "
    for group in ("master_node", "worker_node", "external_lb_param")
    for cp in ("ssh", "nic")
}


SERVERS = {
    "master_node": "masterNode",
    "worker_node": "workerNode",
    "external_lb_param": "externalLB",
}


@pytest.mark.parametrize("value", ["missing", "server", "of another"])
@pytest.mark.parametrize(("attribute", "words"), WRONG.items())
def test_a_wrong_name_is_found_as_in_the_stack(sample, attribute, words, value):
    files, flavour, body = sample
    base = base_of(files, flavour)
    group = attribute.partition("__")[0]
    server = SERVERS[group]
    name = {"missing": "port9", "server": server}
    stacks = [
        r.stack_id
        for r in base.resources()
        if r.name == body[ATTRIBUTE][group]["ssh_cp_name"]
    ]
    ports = [
        r.name
        for r in base.resources()
        if r.type == "OS::Neutron::Port" and not r.name.startswith(server)
    ]
    near = [r for r in base.resources() if r.name in ports and r.stack_id in stacks]
    other = near[0].name if near else ports[0]
    wrong = params(body, **{attribute: name.get(value, other)})
    found = base_hot.compare(base, wrong).missing
    assert len(found) == 1
    words = words if value == "missing" else f"{group}."
    assert found[0].startswith(words)
    with pytest.raises(DiscoveryError) as caught:
        find_machines("stack", stack_preview.stack(base, {}, {}), wrong)
    assert set(found) <= set(caught.value.problems)


@pytest.mark.parametrize(
    ("changes", "expected"),
    [
        (
            {"worker_node__aspect_id": "workers"},
            "worker_node.aspect_id: the Base HOT has no group workers (it has: ",
        ),
        (
            {"worker_node__aspects": [{"aspect_id": "gpu"}]},
            "worker_node.aspects.0.aspect_id: there is no group gpu in the stack",
        ),
    ],
)
def test_a_wrong_aspect_is_found(sample, changes, expected):
    files, flavour, body = sample
    base = base_of(files, flavour)
    (found,) = base_hot.compare(base, params(body, **changes)).missing
    assert found.startswith(expected)
    # The whole stack is searched for control planes without a group.
    other = params(body, master_node__aspect_id="masters")
    assert base_hot.compare(base, other).missing == ()


# --- what cannot be followed

SERVER = {"type": "OS::Nova::Server"}
OPAQUE = {
    "a nested template elsewhere": {"type": "http://192.0.2.1/worker.yaml"},
    "a nested template that is not there": {"type": "worker.yaml"},
    "a type of the operator's": {"type": "My::Worker"},
    "a stack": {"type": "OS::Heat::Stack", "properties": {"template": "..."}},
    "a group of them": {
        "type": "OS::Heat::AutoScalingGroup",
        "properties": {"resource": {"type": "worker.yaml"}},
    },
    "a group of what a parameter says": {
        "type": "OS::Heat::ResourceGroup",
        "properties": {"resource_def": {"get_param": "member"}},
    },
}


class Package(site.Vnf):
    """A VNF instance with a package of these files."""

    def __init__(self, root, files, body, **changes):
        super().__init__("vnf", params(body, **changes))
        self._root = root
        for name, content in files.items():
            path = root / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(content)

    def _list_stack(self):
        raise AssertionError("Heat is not asked")

    def _package_root(self):
        return str(self._root)


@pytest.fixture
def warned(caplog):
    caplog.set_level(logging.WARNING)
    return lambda: [record.getMessage() for record in caplog.records]


def test_the_hook_refuses_and_warns_of_nothing(sample, tmp_path, warned):
    files, flavour, body = sample
    wrong = {"worker_node__ssh_cp_name": "port9", "worker_node__nic_cp_name": "port9"}
    package = Package(tmp_path, files, body, **wrong)
    place = "worker_node.ssh_cp_name: there is no port9 in "
    (finding,) = package.base_hot_findings(flavour, USER_DATA)
    assert finding.startswith(place)
    assert package.base_hot_findings(flavour) == (finding,)
    assert warned() == []
    assert Package(tmp_path, {}, body).base_hot_findings(flavour) == ()
    assert warned() == []


@pytest.mark.parametrize("resource", OPAQUE.values(), ids=OPAQUE)
def test_what_may_have_more_resources_is_a_warning(sample, tmp_path, warned, resource):
    _, _, body = sample
    files = {"BaseHOT/own/top.yaml": template(vm=SERVER, more=resource)}
    assert Package(tmp_path, files, body).base_hot_findings("own") == ()
    (text,) = warned()
    assert "BaseHOT/own of the VNF package cannot be followed" in text
    assert "more is of type" in text
    assert "master_node.ssh_cp_name: there is no " in text


UNREADABLE = {
    "no directory": {},
    "two templates": {f"{n}.yaml": template(vm=SERVER) for n in "ab"},
    "no YAML": {"top.yaml": b"{"},
    "no HOT": {"top.yaml": b"[]"},
    "several documents": {"top.yaml": b"a: 1\n---\nb: 1\n"},
    "no text": {"top.yaml": b"\xff\xfe"},
    "numbers as names": {"top.yaml": b"heat_template_version: 1\nresources: {1: {}}"},
    "nested too deeply": {"top.yaml": b"[" * 5000},
}


@pytest.mark.parametrize("files", UNREADABLE.values(), ids=UNREADABLE)
@pytest.mark.parametrize("flavour", ["own", "../own", ""])
def test_what_cannot_be_read_is_a_warning(sample, tmp_path, warned, files, flavour):
    _, _, body = sample
    named = {f"BaseHOT/own/{name}": content for name, content in files.items()}
    assert Package(tmp_path, named, body).base_hot_findings(flavour) == ()
    assert "cannot be followed" in warned()[0]


def test_templates_that_multiply_are_not_unfolded(sample, tmp_path, warned):
    _, _, body = sample
    names = [f"t{number}.yaml" for number in range(9)]
    uses = {f"r{n}-{i}": {"type": name} for n, name in enumerate(names) for i in (1, 2)}
    files = {f"BaseHOT/own/nested/{name}": template(**uses) for name in names}
    files["BaseHOT/own/top.yaml"] = template(**uses)
    assert Package(tmp_path, files, body).base_hot_findings("own") == ()
    assert "resources or more" in warned()[0]


CHANGING = [
    b'def f(top):\n    top["resources"]["more"] = {}\n',
    b'def f(top):\n    top.get("resources", {}).pop("vm")\n',
    b'def f(top):\n    del top["resources"]["vm"]\n',
    b'def f(top):\n    top["resources"].update(more={})\n',
    b"from tacker.sol_refactored.infra_drivers.openstack import userdata_standard\n",
    b"def f(:\n",
    b"\0",
]


@pytest.mark.parametrize("script", CHANGING)
def test_user_data_that_makes_other_resources_is_a_warning(
    sample, tmp_path, warned, script
):
    files, flavour, body = sample
    wrong = {"master_node__nic_cp_name": "port9"}
    package = Package(tmp_path, {**files, USER_DATA: script}, body, **wrong)
    assert package.base_hot_findings(flavour, USER_DATA) == ()
    assert f"{USER_DATA} changes its resources" in warned()[0]
    assert "master_node.nic_cp_name" in warned()[0]


_VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=4),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from(
                (
                    "type",
                    "resource",
                    "resource_def",
                    "properties",
                    "port",
                    "get_param",
                    "a",
                )
            ),
            inner,
            max_size=4,
        )
    ),
    max_leaves=12,
)
_KINDS = st.sampled_from(
    ("OS::Neutron::Port", "OS::Nova::Server", "OS::Heat::AutoScalingGroup", "n.yaml")
)


@given(
    st.dictionaries(
        st.text("abc", min_size=1, max_size=2),
        st.fixed_dictionaries({"type": _KINDS}, optional={"properties": _VALUES}),
        min_size=1,
        max_size=4,
    )
)
def test_any_template_is_compared_or_refused(resources):
    files = {
        f"BaseHOT/own/{n}": template(**resources) for n in ("t.yaml", "nested/n.yaml")
    }
    base, _ = base_hot.read(files, "own")
    assert base
    path = parts.samples() / "requests" / "instantiate-simple.json"
    body = json.loads(path.read_text())["additionalParams"]
    assert base_hot.compare(base, params(body))
