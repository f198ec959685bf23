# SPDX-License-Identifier: Apache-2.0
"""A heal keeps the group as large as it is, by Tacker's own way to compute the size."""

import random
import types
from typing import Any

import pytest
import yaml
from tacker.vnflcm import utils as vnflcm_utils

pytest.importorskip("tacker", reason="the contract is with an installed Tacker")

from tacker import objects
from tacker.vnfm.lcm_user_data import utils as user_data_utils

from tacker_k8s_mgmt import errors
from tacker_k8s_mgmt.hooks.v1 import group_sizes
from tacker_k8s_mgmt.hooks.v1.instance import V1Instance
from tacker_k8s_mgmt.tools.csar import parts
from tacker_k8s_mgmt.topology.heat_stack import Machines
from tacker_k8s_mgmt.topology.scaling_groups import GroupSize
from tests.contract.heat_groups import STATES, group, heat, named, stack_of
from tests.contract.v1_instances import DEFINITIONS
from tests.helpers.model import planning
from tests.helpers.model.faults import Fault, Trouble
from tests.helpers.model.tacker import Kind, Operation, Troubles
from tests.helpers.model.v1 import V1

objects.register_all()

GROUP = "worker_instance"
HOT = "hot/simple/base_hot_top.yaml"
#: Of the sample package: two workers at level 0, and one more with each.
INITIAL, MAX_LEVEL = 2, 7


def loaded(name):
    return yaml.safe_load((parts.samples() / name).read_text())


def in_steps_of(vnfd, number):
    """The VNFD with another number of VMs to each scale level."""
    for policy in vnfd["topology_template"]["policies"]:
        for one in policy.values():
            if one["type"] == "tosca.policies.nfv.VduScalingAspectDeltas":
                one["properties"]["deltas"]["delta_1"]["number_of_instances"] = number
    return vnfd


@pytest.fixture
def vnfd(monkeypatch):
    """The package's VNFD, to be changed by a test."""
    found = loaded(DEFINITIONS)
    monkeypatch.setattr(vnflcm_utils, "get_vnfd_dict", lambda *_: found)
    return found


def instance(level):
    info = objects.InstantiatedVnfInfo(
        flavour_id="simple",
        instance_id="stack",
        scale_status=[objects.ScaleInfo(aspect_id=GROUP, scale_level=level)],
    )
    made = types.SimpleNamespace(
        id="vnf", vnfd_id="vnfd", instantiated_vnf_info=info, saved=[]
    )
    made.save = lambda: made.saved.append(info.scale_status[0].scale_level)
    return made


def cluster(one, size, failed=0, members=()):
    """The instance, and what its hook works with; its inventory is empty."""
    site = types.SimpleNamespace(
        group_sizes=lambda: {GROUP: GroupSize(size, failed)},
        machines=lambda: Machines(groups=members),
        workdir=types.SimpleNamespace(read=lambda _: None),
    )
    params = types.SimpleNamespace(ansible=types.SimpleNamespace(host="192.0.2.9"))
    made: Any = types.SimpleNamespace(site=site, params=params)
    return V1Instance(None, one), made


def counts(one, size, group=GROUP):
    return group_sizes.counts(V1Instance(None, one), {group: GroupSize(size)})


def healed(one, vnfd):
    """The size that Tacker's heal writes into the template."""
    base = {"heat_template": loaded(HOT)}
    found = user_data_utils.get_desired_capacity_dict(
        base, vnfd, one.instantiated_vnf_info
    )
    return found[GROUP]


def level_of(one):
    return one.instantiated_vnf_info.scale_status[0].scale_level


def compare_before_heal(one, size):
    group_sizes.scale_level_step(*cluster(one, size)).act()


@pytest.mark.parametrize("level", [0, 1, 3])
@pytest.mark.parametrize("size", [2, 3, 4, INITIAL + MAX_LEVEL])
def test_a_heal_leaves_the_size_that_heat_has(vnfd, level, size):
    one = instance(level)
    compare_before_heal(one, size)
    assert healed(one, vnfd) == size
    # A retry of the heal may begin after the hook, with what is stored.
    assert one.saved == ([] if level == size - INITIAL else [size - INITIAL])


@pytest.mark.parametrize(
    ("healthy", "failed", "level", "after"),
    [
        # A heal whose VM Heat could not build: it builds it now.
        (4, 1, 3, 3),
        # A scale-out whose VM Heat could not build: it deletes what is left of it.
        (4, 1, 2, 2),
        # And after `rollback`, for which the level is one step higher.
        (4, 1, 4, 3),
        (4, 1, 0, 2),
    ],
)
def test_a_member_that_heat_failed_at_is_there_if_tacker_counts_it(
    vnfd, healthy, failed, level, after
):
    one = instance(level)
    group_sizes.scale_level_step(*cluster(one, healthy, failed)).act()
    assert level_of(one) == after
    assert healed(one, vnfd) >= healthy


def test_the_difference_is_logged(vnfd, caplog):
    compare_before_heal(instance(0), 3)
    assert "Heat has 3 members of worker_instance" in caplog.text
    assert "level 0 stands for 2; it is set to 1" in caplog.text


@pytest.mark.parametrize(
    ("number", "level", "size"), [(1, 0, INITIAL + MAX_LEVEL + 1), (2, 0, 3), (2, 1, 5)]
)
def test_more_members_than_any_level_stands_for_are_refused(vnfd, number, level, size):
    one = instance(level)
    in_steps_of(vnfd, number)
    with pytest.raises(errors.UnsupportedOperation) as caught:
        compare_before_heal(one, size)
    assert f"Heat has {size} members of the group {GROUP}" in str(caught.value)
    assert "without a drain" in str(caught.value)
    assert level_of(one) == level
    assert one.saved == []


@pytest.mark.parametrize(("number", "level", "size"), [(1, 0, 1), (2, 1, 3)])
def test_fewer_members_than_a_level_stands_for_are_left_to_heat(
    vnfd, number, level, size
):
    one = instance(level)
    in_steps_of(vnfd, number)
    compare_before_heal(one, size)
    assert level_of(one) == level
    assert healed(one, vnfd) > size


def test_after_a_scale_out_the_level_follows_and_tacker_stores_it(vnfd):
    one = instance(1)
    group_sizes.follow_scale_out(*cluster(one, 4))
    assert level_of(one) == 2
    assert one.saved == []


def test_a_scale_out_does_not_fail_when_heat_does_not_answer(vnfd, caplog):
    def silent():
        raise errors.RemoteError(detail="Heat does not answer.")

    one = instance(1)
    own, its_cluster = cluster(one, 4)
    its_cluster.site.group_sizes = silent
    group_sizes.follow_scale_out(own, its_cluster)
    assert level_of(one) == 1
    assert "Heat does not answer" in caplog.text


def test_the_sizes_are_counted_without_a_change(vnfd):
    one = instance(0)
    (found,) = counts(one, 3)
    assert (found.group, found.heat, found.tacker) == (GROUP, 3, 2)
    assert level_of(one) == 0


def test_groups_that_tacker_does_not_scale_have_no_level(vnfd):
    assert counts(instance(0), 3, group="another") == ()
    one = instance(0)
    one.instantiated_vnf_info.scale_status = []
    assert counts(one, 3) == ()


def listing(level, names):
    """An instance of which Tacker lists these members of the group as VNFCs."""
    one = instance(level)
    one.instantiated_vnf_info.vnfc_resource_info = [
        objects.VnfcResourceInfo(
            id=name,
            vdu_id="workerNode",
            compute_resource=objects.ResourceHandle(resource_id=f"former-{name}"),
            metadata={"stack_id": stack_of(name)},
        )
        for name in names
    ]
    return one


def groups():
    """Groups of two to nine members, and which of them Tacker lists as VNFCs."""
    chance = random.Random(26)  # noqa: S311  the same each time
    states = [state for state in STATES if not state.startswith("DELETE_")]
    for _ in range(200):
        count = chance.randint(INITIAL, INITIAL + MAX_LEVEL)
        order = chance.sample(range(count), count)
        made = named(group(chance.choices(states, k=count), order=order))
        names = [one.name for one in made.members]
        yield made, set(chance.sample(names, chance.randint(0, count)))


def test_of_failed_members_heat_keeps_those_that_tacker_lists(vnfd):
    """Heat deletes the failed ones first, by its own functions."""
    asked, answers = [], []
    for made, listed in groups():
        one = listing(0, listed)
        failed = sum(member.failed for member in made.members)
        healthy = len(made.members) - failed
        group_sizes.scale_level_step(*cluster(one, healthy, failed, (made,))).act()
        size = healed(one, vnfd)
        asked.append((made, {"size": size}))
        answers.append((listed, {m.name for m in made.members if not m.failed}))
    for (one, way), (listed, healthy), does in zip(
        asked, answers, heat(asked), strict=True
    ):
        assert listed | healthy <= set(does["left"]), (one, way)


def test_surplus_that_is_marked_is_deleted_where_no_level_stands_for_it(vnfd):
    """What the documentation of heal shows, where a level stands for several VMs."""
    in_steps_of(vnfd, 2)
    made = named(group(("CREATE_COMPLETE",) * 4 + ("CHECK_FAILED",)))
    one = listing(1, ["m4"])
    group_sizes.scale_level_step(*cluster(one, 4, 1, (made,))).act()
    assert level_of(one) == 1
    assert healed(one, vnfd) == 4


def test_ports_change_with_all_that_tacker_lists():
    """Without a level, too, as of a group that Tacker does not scale."""
    one = instance(0)
    one.instantiated_vnf_info.scale_status = []
    sizes = {GROUP: GroupSize(2, failed=2, needed=3), "other": GroupSize(2, failed=1)}
    kept = group_sizes.kept_sizes(V1Instance(None, one), sizes)
    assert kept == {GROUP: 3, "other": 2}


def with_an_uncounted_worker():
    """A cluster with a third worker, which Tacker neither counts nor lists.

    The conductor of the scale-out was killed when the worker had joined.
    """
    tacker = V1()
    with tacker.in_place():
        tacker.send(Operation(Kind.INSTANTIATE))
        tacker.send(Operation(Kind.SCALE_OUT))
        last = len(tacker.site.gate.calls) - 1
    tacker = V1()
    with tacker.in_place():
        tacker.send(Operation(Kind.INSTANTIATE))
        killed = Trouble((Fault(last, after=True, dies=True),))
        tacker.send(Operation(Kind.SCALE_OUT), Troubles(end=killed))
        tacker.fail()
    return tacker


def by_server(tacker, server):
    return next(vnfc for vnfc, found in tacker.vnfcs().items() if found == server)


@pytest.mark.parametrize(
    ("is_listed", "heals_it"), [(False, False), (True, False), (True, True)]
)
def test_a_dead_worker_is_rebuilt_although_tacker_counts_one_less(is_listed, heals_it):
    """It is a node, and CHECK_FAILED in Heat; the plan says so."""
    tacker = with_an_uncounted_worker()
    site = tacker.site
    first, second, third = (vm.server_id for vm in site.workers)
    assert {first, second, third} <= site.full_members()
    assert (third in tacker.vnfcs().values(), tacker._level.scale_level) == (False, 0)
    failed = second if is_listed else third
    site.unfinished.add(failed)
    site.dead.add(failed)
    chosen = failed if heals_it else first
    operation = Operation(Kind.HEAL, (by_server(tacker, chosen),))
    with tacker.in_place():
        plan = planning.plan(tacker, operation)
        assert tacker.send(operation), operation.text
    assert {node.change for node in plan.nodes} == {"is rebuilt"}
    assert len(plan.nodes) == len({chosen, failed})
    assert tacker.violations == []
    assert len(site.full_members() & {vm.server_id for vm in site.workers}) == 3
