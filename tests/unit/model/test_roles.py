# SPDX-License-Identifier: Apache-2.0
"""The table of roles, and the request's structures with their VMs."""

import os
import re
import shutil
import subprocess
import sys
import textwrap

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tacker_k8s_mgmt.model.nodes import ROLES, Role, RoleSpec, role_of
from tacker_k8s_mgmt.request.reader import ClusterRequest
from tests.helpers.requests import BALANCER, params
from tests.tree import ROOT

GIVEN = {
    spec.parameter: {"ssh_cp_name": "ssh", "username": "u", "password": "s3cret-one"}
    for spec in ROLES.values()
    if spec.groups
}


def test_each_role_has_a_row_and_a_structure_of_the_request():
    structures = {field.alias for field in ClusterRequest.model_fields.values()}
    assert set(ROLES) == set(Role)
    assert {spec.parameter for spec in ROLES.values()} <= structures


def test_the_request_has_the_vms_of_each_role():
    wanted = params(external_lb_param=BALANCER, **GIVEN)
    assert list(wanted.vms) == list(ROLES)
    for role, spec in ROLES.items():
        assert (role in wanted.node_groups) == bool(spec.groups)
        assert wanted.account(role).attribute == spec.parameter


@pytest.mark.parametrize(
    ("vdu", "role"),
    [
        ("masterNode", Role.CONTROL_PLANE),
        ("control_plane_node", Role.CONTROL_PLANE),
        ("workerNode", Role.WORKER),
        ("gpu-nodes", Role.WORKER),
        ("externalLB", Role.LOAD_BALANCER),
        ("control-plane-balancer", Role.LOAD_BALANCER),
        ("storage", None),
    ],
)
def test_the_name_of_a_vdu_tells_its_role(vdu, role):
    assert role_of(vdu) is role


@pytest.mark.parametrize("role", ROLES)
@given(data=st.data())
def test_each_role_has_words_for_the_names_of_its_vdus(role, data):
    first = ROLES[role].vdu.partition("|")[0]
    assert role_of(data.draw(st.from_regex(first, fullmatch=True))) is role


@pytest.mark.parametrize(
    ("groups", "scaled"),
    [(("kube_node",), True), (("calico_rr",), False), ((), False)],
)
def test_scale_joins_the_nodes_that_its_plays_are_for(groups, scaled):
    assert RoleSpec("x", "x", groups).joins_by_scale is scaled
    assert ROLES[Role.WORKER].joins_by_scale


def test_a_group_of_the_inventory_belongs_to_one_role():
    groups = [group for spec in ROLES.values() for group in spec.groups]
    assert len(groups) == len(set(groups))


class TestFurtherRole:
    """The recipe of the design page, in a copy of the package."""

    @pytest.fixture
    def tree(self, tmp_path):
        page = (ROOT / "doc/source/design.rst").read_text()
        section = page.partition("A further role of VMs\n====")[2].partition("\n====")[
            0
        ]
        blocks = re.findall(r"code-block:: python\n\n((?: {3}.*\n|\n)+)", section)
        texts = (textwrap.dedent(block).strip() for block in blocks)
        member, row, field, entry = (
            piece for text in texts for piece in text.split("\n\n")
        )
        for name in ("tests", "lab", "pyproject.toml"):
            (tmp_path / name).symlink_to(ROOT / name)
        package = tmp_path / "tacker_k8s_mgmt"
        shutil.copytree(
            ROOT / "tacker_k8s_mgmt",
            package,
            ignore=shutil.ignore_patterns("__pycache__"),
        )
        for file, place, text in (
            ("model/nodes.py", 'WORKER = "worker"', member),
            ("model/nodes.py", "Role.WORKER: RoleSpec(", row),
            ("request/installation.py", "proxy: Annotated[Proxy", field),
            ("request/installation.py", "Role.WORKER: self.workers", entry),
        ):
            before, found, after = (package / file).read_text().partition(place)
            assert found, place
            indent = " " * len(before.rpartition("\n")[2])
            if not indent.isspace():
                indent = ""
            lines = text.replace("\n", f"\n{indent}")
            (package / file).write_text(f"{before}{lines}\n{indent}{place}{after}")
        return tmp_path

    def test_a_cluster_with_it_lives(self, tree):
        files = ("tests/helpers/further_role.py", "tests/unit/model/test_roles.py")
        done = subprocess.run(
            [
                *(sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider"),
                *("--deselect", f"{files[1]}::TestFurtherRole", *files),
            ],
            cwd=tree,
            env={**os.environ, "PYTHONPATH": "", "PYTHONDONTWRITEBYTECODE": "1"},
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            check=False,
            timeout=300,
        )
        assert done.returncode == 0, done.stdout
