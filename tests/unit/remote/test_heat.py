# SPDX-License-Identifier: Apache-2.0
"""Heat's listings, as heatclient hands them over, against plain fakes."""

from types import SimpleNamespace

import pytest

from tacker_k8s_mgmt import errors
from tacker_k8s_mgmt.remote import heat

URL = "http://heat/v1/project/stacks"
FIXED_IPS = [{"ip_address": "10.10.0.5", "subnet_id": "s"}]


def resource(stack, name, kind, nested="", status="CREATE_COMPLETE", **fields):
    links = [
        {"rel": "self", "href": f"{URL}/name-{stack}/{stack}/resources/{name}"},
        {"rel": "stack", "href": f"{URL}/name-{stack}/{stack}"},
    ]
    if nested:
        links.append({"rel": "nested", "href": f"{URL}/name-{nested}/{nested}"})
    return SimpleNamespace(
        resource_name=name,
        resource_type=kind,
        physical_resource_id=fields.pop("physical", f"id-{name}"),
        resource_status=status,
        links=links,
        **fields,
    )


class FakeResources:
    """Filters by type as Heat's engine does: the type contains the filter's text."""

    def __init__(self, items, attributes, knows_detail=True):
        self.items = items
        self.attributes = attributes
        self.knows_detail = knows_detail
        self.calls = []

    def list(self, stack_id, **kwargs):
        self.calls.append(("list", stack_id, kwargs))
        wanted = kwargs.get("type", "")
        found = [item for item in self.items if wanted in item.resource_type]
        if kwargs.get("with_detail") and self.knows_detail:
            return [self._detailed(item) for item in found]
        return found

    def get(self, stack_id, resource_name):
        self.calls.append(("get", stack_id, resource_name))
        (item,) = (
            item
            for item in self.items
            if item.resource_name == resource_name
            and f"/{stack_id}/" in str(item.links)
        )
        return self._detailed(item)

    def _detailed(self, item):
        key = (item.links[1]["href"].rpartition("/")[2], item.resource_name)
        values = vars(item) | {"attributes": self.attributes.get(key, {"id": "x"})}
        return SimpleNamespace(**values)


@pytest.fixture
def items():
    """A control plane in the top stack, a group of two workers nested in it."""
    workers = [
        one
        for n in "12"
        for one in (
            resource("group", f"member{n}", "Worker.yaml", nested=f"worker{n}"),
            resource(f"worker{n}", "workerNode", "OS::Nova::Server"),
            resource(f"worker{n}", "workerNode_CP1", "OS::Neutron::Port"),
        )
    ]
    return [
        resource("top", "masterNode", "OS::Nova::Server"),
        resource("top", "masterNode_CP1", "OS::Neutron::Port"),
        resource("top", "masterNode_FIP", "OS::Neutron::FloatingIP"),
        resource("top", "internalVL", "OS::Neutron::Net"),
        resource("top", "group", "OS::Heat::AutoScalingGroup", nested="group"),
        *workers,
    ]


ATTRIBUTES = {
    ("top", "masterNode_CP1"): {"fixed_ips": FIXED_IPS},
    ("top", "masterNode_FIP"): {"floating_ip_address": "192.0.2.5"},
    ("worker1", "workerNode_CP1"): {"fixed_ips": [{"ip_address": "10.10.0.6"}]},
    ("worker2", "workerNode_CP1"): {"fixed_ips": [{"ip_address": "10.10.0.7"}]},
}


def by_place(found):
    return {(one.stack_id, one.name): one for one in found}


def attributes(found):
    """Those that were found, by the place of their resource."""
    return {place: one.attributes for place, one in found.items() if one.attributes}


def test_two_listings_are_enough(items):
    api = FakeResources(items, ATTRIBUTES)
    found = by_place(heat.list_resources(api, "top"))
    assert [name for name, *_ in api.calls] == ["list", "list"]
    assert attributes(found) == ATTRIBUTES
    server = found["worker2", "workerNode"]
    assert (server.type, server.physical_id, server.status) == (
        "OS::Nova::Server",
        "id-workerNode",
        "CREATE_COMPLETE",
    )
    assert found["group", "member1"].nested_stack_id == "worker1"
    assert found["top", "masterNode"].nested_stack_id == ""


HOSTS = {
    ("top", "masterNode"): {"hostId": "a", "OS-EXT-SRV-ATTR:host": "compute-1"},
    ("worker1", "workerNode"): {"hostId": "b"},
    ("worker2", "workerNode"): {"hostId": "c"},
}


@pytest.mark.parametrize("knows_detail", [True, False])
def test_a_third_listing_has_the_servers_where_requested(items, knows_detail):
    api = FakeResources(items, ATTRIBUTES | HOSTS, knows_detail)
    found = by_place(heat.list_resources(api, "top", True))
    assert [name for name, *_ in api.calls].count("list") == 3
    assert attributes(found) == ATTRIBUTES | HOSTS


def test_number_of_requests_does_not_grow_with_the_nodes():
    items = [
        one
        for n in range(200)
        for one in (
            resource(f"w{n}", "workerNode", "OS::Nova::Server"),
            resource(f"w{n}", "workerNode_CP1", "OS::Neutron::Port"),
        )
    ]
    api = FakeResources(items, {})
    assert len(heat.list_resources(api, "top")) == 400
    assert len(api.calls) == 2


def test_listing_asks_for_nested_stacks(items):
    api = FakeResources(items, ATTRIBUTES)
    heat.list_resources(api, "top")
    # Heat redirects what has one word; the first answer has both.
    assert [call[1] for call in api.calls] == ["top", "name-top/top"]
    assert all(call[2]["nested_depth"] == 5 for call in api.calls)


def test_heat_that_lists_no_attributes_is_asked_for_each_port(items):
    api = FakeResources(items, ATTRIBUTES, knows_detail=False)
    found = by_place(heat.list_resources(api, "top"))
    assert attributes(found) == ATTRIBUTES
    assert len([call for call in api.calls if call[0] == "get"]) == len(ATTRIBUTES)


@pytest.mark.parametrize("status", ["DELETE_IN_PROGRESS", "CREATE_FAILED"])
def test_port_that_is_not_there_is_not_asked_for(status):
    port = resource("top", "p", "OS::Neutron::Port", status=status, physical=None)
    api = FakeResources([port], {}, knows_detail=False)
    (found,) = heat.list_resources(api, "top")
    assert (found.physical_id, dict(found.attributes)) == ("", {})
    assert len(api.calls) == 2


@pytest.mark.parametrize(
    "error", [TimeoutError(), ValueError("HTTP 503"), KeyError("links")]
)
def test_failing_client_is_a_remote_error_with_the_stack_and_the_cause(error):
    class Failing:
        def list(self, stack_id, **kwargs):
            raise error

    with pytest.raises(errors.RemoteError, match="stack-1") as caught:
        heat.list_resources(Failing(), "stack-1")
    assert caught.value.__cause__ is error
