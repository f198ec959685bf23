# SPDX-License-Identifier: Apache-2.0
"""Change of external connectivity on fakes: what follows, and what is refused."""

import copy
import json
from dataclasses import replace

import pytest

from tacker_k8s_mgmt import errors
from tacker_k8s_mgmt.kubespray import inventory
from tacker_k8s_mgmt.model.load_balancer import ExposedService
from tacker_k8s_mgmt.operations.connectivity import ConnectivityEnd, connectivity_start
from tacker_k8s_mgmt.operations.step import Runner
from tacker_k8s_mgmt.text import Redactor
from tacker_k8s_mgmt.topology.connection_points import Attachment
from tests.helpers.control_planes import AvailableSite
from tests.helpers.fakes.clock import FakeClock
from tests.helpers.fakes.journal import FakeJournal
from tests.helpers.fakes.site import FakeSite
from tests.helpers.operations import (
    FIFTY_FIVE,
    FIVE,
    MASTER,
    dependencies,
    heal_end,
    heal_start,
    instantiated,
    run,
)
from tests.helpers.requests import BALANCER, params

WANTED = params(external_lb_param=BALANCER)
WITHOUT = params(external_lb_param=None)


def made(wanted=WANTED) -> FakeSite:
    site = instantiated(wanted, load_balancer=wanted.load_balancer is not None)
    site.known = dict(site.stored)
    return site


def end(site, wanted=WANTED):
    return run(ConnectivityEnd, site, wanted)


def start(site, *asked, wanted=WANTED):
    steps = connectivity_start(dependencies(wanted, site, FakeClock()), asked)
    runner = Runner("start", FakeJournal(), FakeClock(), Redactor(wanted.secrets()))
    runner.run(steps)


def move(site, **addresses):
    """What Heat does: servers (``server_5``) are at other outer addresses."""

    def moved(one):
        address = addresses.get(one.server_id.replace("-", "_"), one.ssh_address)
        return replace(one, ssh_address=address)

    site.control_planes = [
        moved(control_plane) for control_plane in site.control_planes
    ]
    site.workers = [moved(one) for one in site.workers]
    if site.load_balancer:
        site.load_balancer = moved(site.load_balancer)


def everything_moved(site):
    move(
        site,
        server_4="198.51.100.4",
        server_5="198.51.100.5",
        server_55="198.51.100.55",
        server_9="198.51.100.9",
    )


def state(site):
    seen = (site.members, site.listed, site.routes, site.certified, site.vim)
    return copy.deepcopy((*seen, site.files, site.stored))


def hosts(site):
    nodes = inventory.parse(site.files["hosts.yaml"])
    return {node.name: node.ssh_address for node in nodes}


class TestEnd:
    def test_everything_follows(self):
        site = made()
        everything_moved(site)
        end(site)
        assert hosts(site) == {
            MASTER: "198.51.100.4",
            FIVE: "198.51.100.5",
            FIFTY_FIVE: "198.51.100.55",
        }
        assert set(json.loads(site.files["machines.json"]).values()) == set(site.stored)
        assert site.stored["198.51.100.9"] == "server-9"
        assert {"198.51.100.9", "198.51.100.4"} <= site.certified
        assert site.vim.auth_url == "https://198.51.100.9:6443"
        assert "192.0.2.109" not in site.stored

    def test_names_and_inner_addresses_stay(self):
        site = made()
        before = inventory.parse(site.files["hosts.yaml"])
        everything_moved(site)
        end(site)
        after = inventory.parse(site.files["hosts.yaml"])
        assert [(n.name, n.address, n.etcd_member_name) for n in before] == [
            (n.name, n.address, n.etcd_member_name) for n in after
        ]

    def test_second_run_changes_nothing(self):
        site = made()
        everything_moved(site)
        end(site)
        site.changes.clear()
        site.runs.clear()
        end(site)
        assert site.changes == []
        assert site.runs == []

    def test_nothing_moved_changes_nothing(self):
        site = made()
        end(site)
        assert site.changes == []
        assert site.runs == []

    def test_worker_alone_needs_no_playbook_and_no_other_vim(self):
        site = made()
        vim = site.vim
        move(site, server_5="198.51.100.5")
        end(site)
        assert hosts(site)[FIVE] == "198.51.100.5"
        assert site.runs == []
        assert site.vim == vim

    def test_certificate_is_renewed_on_the_control_planes_alone(self):
        site = made()
        move(site, server_9="198.51.100.9")
        end(site)
        assert [(one.playbook, one.limit) for one in site.runs] == [
            ("playbooks/facts.yml", ""),
            ("cluster.yml", "etcd,kube_control_plane"),
        ]

    def test_certificate_is_waited_for(self):
        site = made()
        move(site, server_9="198.51.100.9")
        site.looks_for_certificate = 5
        end(site)
        assert site.vim.auth_url == "https://198.51.100.9:6443"

    def test_api_server_that_restarts_for_it_is_waited_for(self):
        site = made()
        move(site, server_9="198.51.100.9")
        touch = site.touch

        def restart(call):
            touch(call)
            if call == "run cluster":
                site.faults.add("cluster.uncertified")
                site.error = errors.CommandFailed(
                    host="h", command="kubectl", rc=1, tail="was refused"
                )

        site.touch = restart
        end(site)
        assert site.vim.auth_url == "https://198.51.100.9:6443"

    def test_certificate_that_never_comes_is_reported(self):
        site = made()
        move(site, server_9="198.51.100.9")
        site.looks_for_certificate = 1000
        with pytest.raises(errors.StepFailed, match=f"{MASTER}: .*198.51.100.9"):
            end(site)

    def test_balancer_is_installed_again_before_the_certificate(self):
        site = made()
        move(site, server_9="198.51.100.9")
        end(site)
        assert site.calls.index("balancer.install") < site.calls.index("run cluster")

    def test_without_balancer_the_first_control_plane_is_the_endpoint(self):
        site = made(WITHOUT)
        move(site, server_4="198.51.100.4")
        end(site, WITHOUT)
        assert site.vim.auth_url == "https://198.51.100.4:6443"
        assert "198.51.100.4" in site.certified

    def test_without_balancer_the_vim_stays_where_a_healed_control_plane_is(self):
        site = AvailableSite(load_balancer=False)
        site.known = dict(site.stored)
        registered = site.vim
        first = site.control_planes[0].server_id
        heal_start(site, first, wanted=site.wanted)
        heal_end(site, *site.rebuild(first), wanted=site.wanted)
        site.vim_in_use = True
        end(site, site.wanted)
        assert site.vim == registered

    def test_keys_go_along_when_two_servers_exchange_their_addresses(self):
        site = made()
        move(site, server_5="192.0.2.155", server_55="192.0.2.105")
        end(site)
        assert site.stored["192.0.2.155"] == "server-5"
        assert site.stored["192.0.2.105"] == "server-55"

    @pytest.mark.parametrize(
        "fault",
        ["workdir.write moving.json", "save_host_keys", "workdir.write machines.json"],
    )
    def test_keys_of_an_exchange_survive_a_cut(self, fault):
        site = made()
        move(site, server_5="192.0.2.155", server_55="192.0.2.105")
        site.faults.add(fault)
        with pytest.raises(errors.StepFailed):
            end(site)
        # What another conductor finds.
        site.known = dict(site.stored)
        end(site)
        assert site.stored["192.0.2.155"] == "server-5"
        assert site.stored["192.0.2.105"] == "server-55"

    def test_key_of_a_stranger_at_the_new_address_is_no_key_of_ours(self):
        site = made()
        move(site, server_9="198.51.100.9")
        site.known["198.51.100.9"] = "stranger"
        end(site)
        assert site.stored["198.51.100.9"] == "server-9"

    def test_another_host_at_the_new_address_is_refused(self):
        site = made()
        move(site, server_9="198.51.100.9")
        original = site.wait_reachable

        def wait(machines):
            if any(machine.ssh_address == "198.51.100.9" for machine in machines):
                assert site.known["198.51.100.9"] == "server-9"
                raise errors.HostKeyError(host="198.51.100.9", recorded="known_hosts")
            original(machines)

        site.wait_reachable = wait
        with pytest.raises(errors.StepFailed, match=r"host key of 198\.51\.100\.9"):
            end(site)

    def test_dead_worker_that_moved_is_left_as_it_is(self, caplog):
        site = made()
        site.kill("server-5")
        everything_moved(site)
        end(site)
        assert hosts(site)[FIVE] == "198.51.100.5"
        assert site.runs[0].limit == f"all:localhost:!{FIVE}"
        assert f"left as they are: {FIVE}" in caplog.text

    def test_ready_worker_that_refuses_logins_is_left_out_of_the_facts(self):
        site = made()
        move(site, server_9="198.51.100.9")
        site.dead.add("server-5")
        end(site)
        assert site.runs[0].limit == f"all:localhost:!{FIVE}"

    def test_worker_that_was_built_anew_fails_it_when_the_rest_is_done(self):
        site = made()
        everything_moved(site)
        site.workers[1] = replace(site.workers[1], server_id="anew")
        with pytest.raises(errors.StepFailed, match=f"rebuilt: {FIVE}") as caught:
            end(site)
        assert site.vim.auth_url == "https://198.51.100.9:6443"
        assert "next scale-out" in str(caught.value)

    def test_control_plane_that_was_built_anew_is_the_end_of_the_cluster(self):
        site = made()
        site.control_planes = [replace(site.control_planes[0], server_id="anew")]
        with pytest.raises(errors.StepFailed, match="Heal the whole VNF"):
            end(site)
        assert site.changes == []

    def test_balancer_that_was_built_anew_gets_what_it_had(self):
        site = made()
        web = ExposedService("web", 8080, 30080, ())
        site.files["services.json"] = json.dumps(
            [{"name": "web", "port": 8080, "node_port": 30080, "check_port": None}]
        )
        site.load_balancer = replace(
            site.load_balancer, server_id="anew", ssh_address="198.51.100.9"
        )
        site.faults.add("balancer.expose")
        with pytest.raises(errors.StepFailed):
            end(site)
        end(site)
        assert site.exposed == (web,)
        assert "anew" in json.loads(site.files["machines.json"])

    def test_inner_address_is_refused_before_anything_is_touched(self):
        site = made()
        before = state(site)
        site.workers[0] = replace(site.workers[0], address="10.10.0.77")
        move(site, server_9="198.51.100.9")
        with pytest.raises(errors.StepFailed) as caught:
            end(site)
        assert f"{FIFTY_FIVE} from 10.10.0.55 to 10.10.0.77" in str(caught.value)
        assert "heal the whole VNF" in str(caught.value)
        assert state(site) == before

    def test_inner_address_of_the_balancer_is_refused(self):
        site = made()
        site.load_balancer = replace(site.load_balancer, address="10.10.0.99")
        with pytest.raises(errors.StepFailed, match=r"the load balancer from 10\."):
            end(site)
        assert site.changes == []

    def test_vim_in_use_is_reported_when_the_rest_is_done_and_retry_works(self):
        site = made()
        site.vim_in_use = True
        everything_moved(site)
        with pytest.raises(errors.StepFailed, match="use it as their VIM") as caught:
            end(site)
        assert "https://198.51.100.9:6443" in str(caught.value)
        assert hosts(site)[MASTER] == "198.51.100.4"
        site.vim_in_use = False
        site.runs.clear()
        end(site)
        assert site.vim.auth_url == "https://198.51.100.9:6443"
        assert site.runs == []

    def test_vim_that_an_earlier_try_has_removed_is_made(self):
        site = made()
        site.change("vim", None)
        end(site)
        assert site.vim.auth_url == "https://192.0.2.109:6443"

    def test_without_inventory_it_says_what_to_do(self):
        site = made()
        del site.files["hosts.yaml"], site.files["hosts.last.yaml"]
        with pytest.raises(errors.StepFailed, match="no inventory of this cluster"):
            end(site)

    @pytest.mark.parametrize(
        "fault",
        [
            "lock",
            "machines",
            "workdir.write moving.json",
            "save_host_keys",
            "workdir.write machines.json",
            "wait_reachable",
            "cluster.nodes",
            "workdir.write hosts.yaml",
            "workdir.write vars.json",
            "balancer.install",
            "balancer.status",
            "cluster.uncertified",
            "run facts",
            "run cluster",
            "vims.registered",
            "cluster.admin_access",
            "vims.register",
        ],
    )
    def test_fault_is_reported_and_retry_goes_on(self, fault):
        whole = made()
        everything_moved(whole)
        end(whole)
        site = made()
        everything_moved(site)
        site.faults.add(fault)
        site.error = errors.RemoteError(detail="no such luck")
        with pytest.raises(errors.StepFailed, match="no such luck"):
            end(site)
        end(site)
        assert state(site) == state(whole)


HERE = [
    Attachment("lb_ssh", "net", frozenset({"192.0.2.109"})),
    Attachment("m_ssh", "net", frozenset({"192.0.2.104"})),
    Attachment("m_nic", "inner", frozenset({"10.10.0.4"})),
    Attachment("w_ssh", "net", frozenset({"192.0.2.105"})),
    Attachment("w_ssh", "net", frozenset({"192.0.2.155"})),
]


class TestRefusedByHeat:
    """Tacker only logs it, and may call the second hook all the same."""

    def test_it_is_reported_and_nothing_is_touched(self):
        site = made()
        site.present = HERE
        asked = [Attachment("lb_ssh", "other"), HERE[1]]
        with pytest.raises(errors.StepFailed, match="request wants them: lb_ssh"):
            run(ConnectivityEnd, site, WANTED, points=asked)
        assert site.changes == []

    def test_what_was_met_goes_on(self):
        site = made()
        site.present = HERE
        move(site, server_9="198.51.100.9")
        run(ConnectivityEnd, site, WANTED, points=HERE[:2])
        assert site.vim.auth_url == "https://198.51.100.9:6443"


class TestStart:
    @pytest.fixture
    def site(self):
        site = made()
        site.present = HERE
        return site

    def test_outer_points_may_change(self, site):
        start(site, *(Attachment(name, "other") for name in ("lb_ssh", "m_ssh")))
        assert site.changes == []

    def test_what_stays_may_be_repeated(self, site):
        site.vim_in_use = True
        start(site, Attachment("m_nic", "inner"), HERE[0], HERE[2])
        assert site.changes == []

    def test_inner_point_is_refused(self, site):
        with pytest.raises(errors.StepFailed, match=r"m_nic \(master_node.nic_cp_n"):
            start(site, Attachment("lb_ssh", "other"), Attachment("m_nic", "other"))

    def test_balancer_with_one_port_is_refused(self, site):
        with pytest.raises(errors.StepFailed, match=r"lb_ssh \(external_lb_param.ssh_"):
            start(site, Attachment("lb_ssh", "other"), wanted=params())

    def test_balancers_port_is_known_by_the_specifications_name(self, site):
        wanted = params(
            external_lb_param={**BALANCER, "ssh_cp_name": "externalLB_instance"}
        )
        site.present = (*HERE, Attachment("externalLB_CP1", "outer"))
        site.vim_in_use = True
        changed = Attachment("externalLB_CP1", "other")
        with pytest.raises(errors.StepFailed, match="changes externalLB_CP1, where"):
            start(site, changed, wanted=wanted)
        own = Attachment("w_ssh", "outer", floating_ips={"externalLB_instance"})
        site.present = (*site.present, own)
        start(site, changed, wanted=wanted)

    def test_vim_in_use_is_reported_before_a_port_changes(self, site):
        site.vim_in_use = True
        with pytest.raises(errors.StepFailed, match="use the cluster as their VIM"):
            start(site, Attachment("lb_ssh", "other"))
        start(site, Attachment("w_ssh", "other"))

    def test_address_for_a_whole_group_is_refused(self, site):
        node = {"username": "ubuntu", "password": "n0de-secret"}
        worker = {"ssh_cp_name": "w_ssh", "nic_cp_name": "w_nic", **node}
        wanted = params(
            external_lb_param=BALANCER, worker_node={"aspect_id": "group", **worker}
        )
        with pytest.raises(errors.StepFailed, match="w_ssh cannot have a fixed addr"):
            start(
                site,
                Attachment("w_ssh", "net", frozenset({"192.0.2.7"})),
                wanted=wanted,
            )

    def test_every_text_that_is_no_address_is_refused(self, site):
        written = frozenset({"2001:DB8:0::10", "fe80::1%eth0"})
        asked = Attachment("lb_ssh", "net", written), Attachment("x", "net", {"10.1"})
        with pytest.raises(errors.StepFailed) as caught:
            start(site, *asked)
        assert "no IP addresses: fe80::1%eth0 (lb_ssh), 10.1 (x)" in str(caught.value)

    def test_group_whose_template_tacker_forgets_is_reported(self, site):
        site.fixed = ("master_instance",)
        with pytest.raises(errors.StepFailed, match="VMs in master_instance"):
            start(site, Attachment("lb_ssh", "other"))

    def test_server_that_does_not_serve_is_reported_before_a_port_changes(self, site):
        site.server = ("the Ansible server does not answer",)
        with pytest.raises(errors.StepFailed, match="does not answer"):
            start(site, Attachment("lb_ssh", "other"))

    def test_node_that_heat_would_build_again_is_reported(self, site):
        """The update of the stack replaces whatever is marked unhealthy."""
        site.unfinished.add("server-55")
        with pytest.raises(errors.StepFailed, match=f"the VM of {FIFTY_FIVE} again"):
            start(site, Attachment("lb_ssh", "other"))
        assert site.changes == []
        site.kill("server-55")
        start(site, Attachment("lb_ssh", "other"))
