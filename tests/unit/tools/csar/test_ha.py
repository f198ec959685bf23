# SPDX-License-Identifier: Apache-2.0
"""The flavour `ha`: as many control planes as etcd wants, and each one Tacker's."""

import pytest
import yaml

from tacker_k8s_mgmt.tools.csar import archive
from tacker_k8s_mgmt.tools.csar.package_check import check
from tests.unit.tools.csar.conftest import packed, replaced, sample

DF = "Definitions/kubernetes_df_ha.yaml"
HOT = "BaseHOT/ha/base_hot_top.yaml"
NESTED = "BaseHOT/ha/nested/base_hot_nested_master.yaml"


@pytest.fixture(scope="module")
def package(packages):
    return packages["ha", "v1"]


@pytest.fixture(scope="module")
def parts(package):
    return archive.read(package)


@pytest.fixture
def problems_of(parts, tmp_path):
    """Return a function: the problems of a package with some texts replaced."""

    def problems(*changes, requests=None):
        path = packed(replaced(parts, *changes), tmp_path)
        return check(path, requests or {}).problems

    return problems


def request(level="instantiation_level_1"):
    return {**sample("instantiate-ha"), "instantiationLevelId": level}


@pytest.mark.parametrize("level", ["instantiation_level_1", "instantiation_level_2"])
def test_the_package_and_its_sample_request_have_no_problems(package, level):
    report = check(package, {"request": request(level)})
    assert report.problems == ()
    assert report.warnings == ()
    assert report.flavours == ("ha",)


def test_control_planes_are_a_group_that_nothing_scales(parts):
    resources = yaml.safe_load(parts[HOT])["resources"]
    group = resources["master_instance"]
    assert group["type"] == "OS::Heat::ResourceGroup"
    count = {"get_param": "master_instance_desired_capacity"}
    assert group["properties"]["count"] == count
    scaled = {
        resource["properties"]["auto_scaling_group_id"]["get_resource"]
        for resource in resources.values()
        if resource["type"] == "OS::Heat::ScalingPolicy"
    }
    assert scaled == {"worker_instance"}


@pytest.mark.parametrize(
    ("template", "vdu", "group", "policy"),
    [
        (NESTED, "masterNode", "control_planes_apart", "control_planes_policy"),
        (NESTED.replace("master", "worker"), "workerNode", "workers_apart", None),
    ],
)
def test_both_roles_keep_apart(parts, template, vdu, group, policy):
    server = yaml.safe_load(parts[template])["resources"][vdu]["properties"]
    assert server["scheduler_hints"] == {"group": {"get_param": "server_group"}}
    top = yaml.safe_load(parts[HOT])
    (given,) = top["resources"][group]["properties"]["policies"]
    if policy:
        given = top["parameters"][given["get_param"]]["default"]
    assert given == ("anti-affinity" if policy else "soft-anti-affinity")


def test_an_even_number_of_control_planes_is_refused_by_the_check(problems_of):
    found = problems_of(
        # Of the VDU, and of the level.
        *[(DF, "number_of_instances: 5", "number_of_instances: 4")] * 2,
        (
            DF,
            "number_of_instances: 2\n        targets: [ masterNode ]",
            "number_of_instances: 1\n        targets: [ masterNode ]",
        ),
        requests={"request": request("instantiation_level_2")},
    )
    assert any(
        "instantiation_level_2 has 4 VMs of masterNode" in text
        and "allows 3 or 5 as master_instance_desired_capacity" in text
        for text in found
    ), found
    assert any("4 VMs; etcd wants an odd number" in text for text in found), found


def test_heat_refuses_any_other_number_before_there_is_a_vm(parts):
    parameters = yaml.safe_load(parts[HOT])["parameters"]
    (constraint,) = parameters["master_instance_desired_capacity"]["constraints"]
    assert constraint["allowed_values"] == [3, 5]


def test_the_group_takes_its_number_from_the_level(problems_of):
    wanted = "{ get_param: master_instance_desired_capacity }"
    (found,) = problems_of((HOT, wanted, "5"))
    assert "must take its count from the parameter" in found
    # That of the default level may be written, and serves no other level.
    assert problems_of((HOT, wanted, "3"), requests={"r": request()}) == ()
    other = {"r": request("instantiation_level_2")}
    (found,) = problems_of((HOT, wanted, "3"), requests=other)
    assert found == (
        "r: instantiationLevelId: the level instantiation_level_2 has 5 VMs in "
        "master_instance, and the Base HOT makes 3 whatever the level is"
    )


def test_a_group_of_control_planes_may_have_what_scales_it(problems_of):
    policies = "".join(
        f"""
  master_instance_scale_{way}:
    type: OS::Heat::ScalingPolicy
    properties:
      auto_scaling_group_id: {{ get_resource: master_instance }}
      adjustment_type: change_in_capacity
      scaling_adjustment: {step}
"""
        for way, step in (("out", 2), ("in", -2))
    )
    found = problems_of(
        (HOT, "OS::Heat::ResourceGroup", "OS::Heat::AutoScalingGroup"),
        (
            HOT,
            "count: { get_param: master",
            "min_size: 3\n      max_size: 5\n"
            "      desired_capacity: { get_param: master",
        ),
        (HOT, "resource_def:", "resource:"),
        (HOT, "\n  control_planes_apart:", f"{policies}\n  control_planes_apart:"),
        requests={"request": request()},
    )
    assert found == ()
