# SPDX-License-Identifier: Apache-2.0
"""Names that are composed of those in a request fit where they go."""

import ipaddress
import itertools

import pytest

from tacker_k8s_mgmt.features.applications import content
from tacker_k8s_mgmt.features.applications.sources import namespace_of
from tacker_k8s_mgmt.features.tenants import feature
from tacker_k8s_mgmt.features.tenants.tenant_objects import (
    accounts,
    of,
    owner,
    token,
    unwanted,
)
from tacker_k8s_mgmt.model import nodes
from tacker_k8s_mgmt.model.nodes import Machine, Role
from tacker_k8s_mgmt.operations import preconditions
from tacker_k8s_mgmt.request.applications import LONGEST_NAME
from tests.helpers.fakes.clock import FakeClock
from tests.helpers.fakes.site import FakeSite
from tests.helpers.operations import dependencies
from tests.helpers.samples import changed, parsed, problems

VNF = "9f3b0f6e-9c0d-4f4e-8f7a-3b1c5d7e9f01"
#: Of Tacker's ``vims.name``, of a label of DNS, and of a name in Kubernetes.
COLUMN, LABEL, OBJECT = 255, 63, 253
TENANT = "t" * 48


def refused(changes):
    return problems(changed(changes))


@pytest.mark.parametrize(("vim", "tenant"), [(240, 15), (254, 1), (255, 48), (215, 40)])
def test_a_tenants_vim_name_that_tacker_has_no_room_for_is_refused(vim, tenant):
    given = {"vim_name": "v" * vim, "tenants": [{"name": "t" * tenant}]}
    (problem,) = refused(given)
    assert problem.startswith("tenants.0.vim_name: its default, vim_name with")
    assert f"has {vim + tenant + 1} characters" in problem
    given["tenants"][0]["vim_name"] = "mine"
    assert parsed(given)


@pytest.mark.parametrize("vim", [None, "v" * 206, "v" * 200])
def test_every_accepted_one_fits(vim):
    made = parsed({"vim_name": vim, "tenants": [{"name": TENANT}]})
    assert len(preconditions.vim_name(made, VNF)) <= COLUMN
    deps = dependencies(made, FakeSite(), FakeClock())
    assert len(feature.vim_name(deps, made.tenants[0])) <= COLUMN


@pytest.mark.parametrize(
    "tenants",
    [
        [{"name": "blue"}, {"name": "red", "vim_name": "v_blue"}],
        [{"name": "red", "vim_name": "v_blue"}, {"name": "blue"}],
    ],
)
def test_a_default_is_compared_with_given_names(tenants):
    (problem,) = refused({"vim_name": "v", "tenants": tenants})
    assert problem.startswith("tenants.1.vim_name: another VIM has this name")


def names(one):
    """Names and labels of an object, with the most characters of each."""
    metadata = one["metadata"]
    is_label = one["kind"] in ("Namespace", "Service")
    yield metadata["name"], LABEL if is_label else OBJECT
    yield metadata.get("namespace", ""), LABEL
    for value in metadata.get("labels", {}).values():
        yield value, LABEL


def test_names_and_labels_of_the_longest_tenant():
    made = parsed({"tenants": [{"name": TENANT}]})
    (tenant,) = made.tenants
    objects = [*of(tenant, guarded=True), *unwanted(tenant)]
    objects += [accounts(), token(TENANT)]
    found = list(itertools.chain.from_iterable(map(names, objects)))
    assert [name for name, most in found if len(name) > most] == []
    assert len(owner(TENANT)) <= LABEL


def test_names_of_the_longest_application():
    app = {"name": "a" * LONGEST_NAME, "manifests": [{"path": "Files/a.yaml"}]}
    (made,) = parsed({"applications": [app]}).applications
    assert all(len(name) <= most for name, most in names(namespace_of(made)))
    assert len(content.owner_of(made.name)) <= LABEL


@pytest.mark.parametrize("role", list(Role))
def test_node_names_are_labels_of_dns_with_the_longest_address(role):
    address = str(ipaddress.ip_address("fd00:1111:2222:3333:4444:5555:6666:7777"))
    machine = Machine(role, "server", address, address)
    taken = {nodes._free_name(machine, ())}
    assert len(nodes._free_name(machine, taken)) <= LABEL - len("99")


@pytest.mark.parametrize(
    "part",
    ["d" * 256, "é" * 128, "/".join(["d" * 200] * 20)],
    ids=["a long name", "many bytes", "a long path"],
)
def test_directories_that_linux_cannot_make_are_refused(part):
    path = f"/home/ansible/{part}"
    (problem,) = refused({"ansible.transferring_inventory_path": path})
    assert problem.startswith("ansible.transferring_inventory_path: must have at most")


def test_the_longest_directory_is_accepted():
    path = f"/home/ansible/{'d' * 255}"
    assert parsed({"ansible.transferring_inventory_path": path})
