# SPDX-License-Identifier: Apache-2.0
"""The names of attributes: how they may be written, and which are known."""

import pytest

from tests.helpers.samples import (
    SIMPLE,
    camelised,
    changed,
    parsed,
    problems,
    read,
    request,
)


class TestSpelling:
    def test_what_tackers_get_view_shows_can_be_sent(self):
        body = changed({"kubespray_vars": {"kube_network_plugin": "calico"}})
        shown = {"k8sClusterInstallationParam": camelised(body)}
        assert read(shown) == read(request(body))

    def test_names_that_the_view_changed_for_good_are_refused(self):
        body = {**SIMPLE, "kubesprayVars": {"metallbConfig": {"addressPools": {}}}}
        assert problems(body) == (
            "kubesprayVars.metallbConfig: Tacker's output has changed the names "
            "inside; write them as kubespray has them, under kubespray_vars",
        )

    def test_capitals_inside_variables_are_fine_under_the_specifications_name(self):
        variables = {"kubelet_config_extra_args": {"maxPods": 50}}
        assert parsed({"kubespray_vars": variables}).kubespray_vars == variables

    def test_problems_use_the_users_spelling(self):
        body = camelised(changed({"master_node.pod_cidr": "x", "ansible.port": "22"}))
        assert problems(body) == (
            "ansible.port: must be a whole number",
            "masterNode.podCidr: must be a network such as 10.233.64.0/18",
        )

    def test_an_attribute_in_both_spellings_is_refused(self):
        body = {**SIMPLE, "masterNode": {}}
        assert problems(body) == (
            "masterNode: is given twice, the first is master_node",
        )

    @pytest.mark.parametrize(
        ("unknown", "expected"),
        [
            (
                "worker_node.pasword",
                "worker_node.pasword: is not a known attribute; did you mean password?",
            ),
            (
                "master_nodes",
                "master_nodes: is not a known attribute; did you mean master_node?",
            ),
            ("ansible.zzz", "ansible.zzz: is not a known attribute"),
            ("ansible.a b\n", "ansible.'a b\\n': is not a known attribute"),
            ("warnings", "warnings: is not a known attribute"),
            ("control_plane", "control_plane: is not a known attribute"),
        ],
    )
    def test_unknown_attributes_are_refused_with_the_nearest_known(
        self, unknown, expected
    ):
        assert problems(changed({unknown: "x"})) == (expected,)

    def test_attributes_of_the_kubeadm_driver_are_accepted_and_said_to_be_unused(self):
        ignored = {
            "script_path": "Scripts/install_k8s_cluster.sh",
            "helm_installation_script_path": "Scripts/install_helm.sh",
            "pv_registration_params": [{"nfs_server_cp": "x"}],
            "storage_server": {"password": "pw"},
            "master_node.cluster_cp_name": "vip_CP",
            "master_node.cluster_fip_name": "vip_FIP",
            "master_node.vdu_id": "masterNode",
            "worker_node.vdu_id": "workerNode",
        }
        names = [
            warning.partition(": is not used, ")[0]
            for warning in parsed(ignored).warnings
        ]
        assert sorted(names) == sorted(ignored)

    @pytest.mark.parametrize("spelled", ["vdu_id", "vduId"])
    def test_groups_of_its_v2_sample_are_found_by_their_ports(self, spelled):
        """There ``vdu_id`` is obligatory in both, and ``aspect_id`` is not known."""
        login = {"username": "ubuntu", "password": "ubuntu"}
        groups = {
            f"{role}_node": {
                spelled: f"{role}Node",
                "ssh_cp_name": f"{role}Node_CP1_floating_ip",
                "nic_cp_name": f"{role}Node_CP1",
                **login,
            }
            for role in ("master", "worker")
        }
        made = parsed(groups)
        assert made.warnings == tuple(
            f"{role}_node.{spelled}: is not used, the names of the ports, and "
            "aspect_id, tell which VMs are meant"
            for role in ("master", "worker")
        )
        assert (made.control_plane.ssh_cp, made.workers.nic_cp) == (
            "masterNode_CP1_floating_ip",
            "workerNode_CP1",
        )
        assert made.workers.aspect_id is None
