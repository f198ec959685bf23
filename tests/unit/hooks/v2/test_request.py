# SPDX-License-Identifier: Apache-2.0
"""What Tacker's v2 API passes to a hook, and what goes back."""

import json

import pytest

from tacker_k8s_mgmt import errors
from tacker_k8s_mgmt.hooks.v2.call import HookCall, cluster_vim_id

VNF = "7b5e0f0a-5a0a-4f0e-9a55-3a1c1f1d2e3f"
STATE = {"version": 1, "parameters": {"vim_name": "one"}}


def call(operation="scale_end", request=None, granted=None, between=None, **instance):
    return HookCall.read(
        {
            "operation": operation,
            "request": request,
            "vnf_instance": {"id": VNF, **instance},
            "grant_request": granted,
            "grant_response": None,
            "tmp_csar_dir": "/package",
            "user_script_err_handling_data": between,
        }
    )


def vnfc(number, vdu="worker", stack="vnf-1-nested/member"):
    return {
        "id": f"resource-{number}",
        "vduId": vdu,
        "computeResource": {"resourceId": f"server-{number}"},
        "metadata": {"stack_id": f"{stack}-{number}"},
    }


class TestConcern:
    @pytest.mark.parametrize(
        "name", ["k8s_cluster_installation_param", "k8sClusterInstallationParam"]
    )
    def test_a_request_with_our_parameters_is_ours(self, name):
        assert call(request={"additionalParams": {name: {}}}).concerns_us

    def test_an_instance_with_our_state_is_ours(self):
        assert call(metadata={"k8s_mgmt": STATE}).concerns_us

    @pytest.mark.parametrize(
        "instance", [{}, {"metadata": None}, {"metadata": {"other": 1}}]
    )
    def test_others_are_not(self, instance):
        assert not call(
            request={"additionalParams": {"other": 1}}, **instance
        ).concerns_us


class TestState:
    def test_what_is_stored_is_found_again_beside_what_others_keep(self):
        one = call(metadata={"other": 1})
        one.store({"k8s_cluster_installation_param": {"vim_name": "one"}})
        assert one.instance["metadata"] == {"other": 1, "k8s_mgmt": STATE}
        assert one.stored == {"k8s_cluster_installation_param": {"vim_name": "one"}}

    def test_what_is_forgotten_leaves_what_others_keep(self):
        one = call(metadata={"other": 1, "k8s_mgmt": STATE})
        one.forget()
        one.forget()
        assert one.instance["metadata"] == {"other": 1}
        assert (one.state, one.stored) == (None, {})

    @pytest.mark.parametrize("state", ["text", {}, {"version": 2, "parameters": {}}])
    def test_what_this_release_does_not_keep_so_is_refused(self, state):
        with pytest.raises(errors.TackerError, match=r"metadata\.k8s_mgmt"):
            _ = call(metadata={"k8s_mgmt": state}).stored

    def test_a_failure_gives_back_nothing_but_what_its_retry_needs(self):
        one = call(between={"k8s_mgmt": {"servers": ["a"]}, "other": 1})
        one.between["more"] = "b"
        output = one.failure()
        assert output == {
            "user_script_err_handling_data": {
                "k8s_mgmt": {"servers": ["a"], "more": "b"}
            }
        }
        assert json.dumps(output)
        assert one.result() == {"vnf_instance": one.instance, **output}


class TestStack:
    def test_its_id_is_used_once_it_is_known(self):
        assert call().stack == f"vnf-{VNF}"
        info = {"metadata": {"stack_id": "top"}}
        assert call(instantiatedVnfInfo=info).stack == f"vnf-{VNF}/top"

    def test_the_first_vim_is_asked(self):
        one = call(vimConnectionInfo={"z": {"vimId": "first"}, "a": {"vimId": "last"}})
        assert one.vim == {"vimId": "first"}
        assert call().vim == {}

    def test_the_cluster_is_never_taken_for_the_vim_of_its_vms(self):
        ours = {"vimId": cluster_vim_id(VNF)}
        one = call(vimConnectionInfo={"k8s": ours, "openstack": {"vimId": "theirs"}})
        assert one.vim == {"vimId": "theirs"}


class TestServers:
    def test_those_that_tacker_knows_of(self):
        one = call(
            instantiatedVnfInfo={"vnfcResourceInfo": [vnfc(5), vnfc(4, "plane")]}
        )
        assert one.servers() == ["server-5", "server-4"]
        assert one.vdus(["server-4"]) == {"plane"}

    def test_those_that_are_granted(self):
        granted = {
            "addResources": [
                {"type": "COMPUTE", "resourceTemplateId": "worker"},
                {"type": "LINKPORT", "resourceTemplateId": "port"},
            ],
            "removeResources": [
                {"type": "COMPUTE", "resource": {"resourceId": "server-5"}},
                {"type": "LINKPORT", "resource": {"resourceId": "port"}},
                {"type": "LINKPORT"},
            ],
        }
        assert call(granted=granted).added() == ["worker"]
        assert call(granted=granted).removed() == ["server-5"]
        assert call(granted=None).removed() == []

    def test_removed_ones_by_their_group_members_too(self):
        member, single = vnfc(5), vnfc(6)
        member["metadata"]["parent_stack_id"] = "group"
        granted = {
            "removeResources": [
                {"type": "COMPUTE", "resource": {"resourceId": f"server-{number}"}}
                for number in (5, 6)
            ]
        }
        one = call(
            granted=granted,
            instantiatedVnfInfo={"vnfcResourceInfo": [vnfc(4), member, single]},
        )
        assert one.removed() == ["server-5", "server-6", "member-5"]

    def test_uncounted_ones_are_of_no_known_place(self):
        one = call(
            instantiatedVnfInfo={"vnfcResourceInfo": [vnfc(5), vnfc(4, "plane")]}
        )
        there = [
            ("server-5", ("member-5", "worker")),
            # rebuilt by a heal that was abandoned.
            ("another", ("member-4", "plane")),
        ]
        assert not one.uncounted(there)
        there += [(f"left-{n}", (f"member-{n}", "worker")) for n in (8, 9)]
        assert one.uncounted(there) == {"worker": 2}

    def test_healed_ones_by_the_ids_of_sol002(self):
        info = {
            "vnfcResourceInfo": [vnfc(4), vnfc(5)],
            "vnfcInfo": [
                {"id": "worker-server-4", "vnfcResourceInfoId": "resource-4"},
                {"id": "worker-server-5", "vnfcResourceInfoId": "resource-5"},
                {"id": "worker-nowhere", "vnfcResourceInfoId": "gone"},
            ],
        }
        wanted = {"vnfcInstanceId": ["worker-server-5", "worker-nowhere"]}
        one = call("heal_start", wanted, instantiatedVnfInfo=info)
        assert list(one.healed()) == [
            ("worker-server-5", "server-5", ("member-5", "worker"))
        ]
        one.note_healed()
        assert json.loads(json.dumps(one.between)) == one.between
        assert one.noted() == {("member-5", "worker"): "worker-server-5"}

    def test_a_heal_without_heal_start_is_refused(self):
        with pytest.raises(errors.UnsupportedOperation, match="and not heal_start"):
            call("heal_end", {"vnfcInstanceId": ["worker-server-5"]}).noted()


class TestSettingsOfAVnfc:
    """Tacker makes the id of a VNFC of its server's, which a heal replaces."""

    ENTRIES = {"k8s_nodes:vnfc:worker-server-1:maintenance": "true", "theirs": "1"}

    def after(self, **places):
        """The metadata after a heal of the first of two workers.

        :param places: stack of each server, before and after.
        """

        def info(first):
            vnfcs = [vnfc(first), vnfc(2)]
            for one, number in zip(vnfcs, (first, 2), strict=True):
                one["metadata"]["stack_id"] = places[f"server_{number}"]
            return {
                "vnfcResourceInfo": vnfcs,
                "vnfcInfo": [
                    {
                        "id": f"worker-server-{number}",
                        "vnfcResourceInfoId": f"resource-{number}",
                    }
                    for number in (first, 2)
                ],
            }

        begun = call(metadata=dict(self.ENTRIES), instantiatedVnfInfo=info(1))
        begun.note_places()
        between = begun.failure()["user_script_err_handling_data"]
        ended = call(
            between=between, metadata=dict(self.ENTRIES), instantiatedVnfInfo=info(3)
        )
        ended.follow_places()
        return ended.instance["metadata"]

    def test_they_follow_its_place(self):
        metadata = self.after(server_1="a", server_2="b", server_3="a")
        assert metadata == {
            "k8s_nodes:vnfc:worker-server-3:maintenance": "true",
            "theirs": "1",
        }

    def test_they_follow_nothing_else(self):
        assert self.after(server_1="a", server_2="b", server_3="c") == self.ENTRIES
        # Outside of groups, several may be in one place.
        assert self.after(server_1="", server_2="", server_3="") == self.ENTRIES


def test_connection_points_of_a_change_of_connectivity():
    def entry(*addresses):
        fixed = {"fixedAddresses": list(addresses)} if addresses else {}
        return {
            "cpProtocolData": [{"ipOverEthernet": {"ipAddresses": [{**fixed}]}}],
        }

    request = {
        "extVirtualLinks": [
            {
                "resourceId": "net",
                "extCps": [
                    {"cpdId": "one", "cpConfig": {"a": entry("192.0.2.1")}},
                    {"cpdId": "two", "cpConfig": {"b": entry(), "c": {}}},
                ],
            }
        ]
    }
    assert list(call(request=request).connections()) == [
        ("one", "net", frozenset({"192.0.2.1"})),
        ("two", "net", frozenset()),
    ]
