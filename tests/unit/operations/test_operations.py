# SPDX-License-Identifier: Apache-2.0
"""Instantiate and terminate on fakes: order, faults at every step, second runs."""

import json
import traceback
from typing import Any

import pytest

from tacker_k8s_mgmt import errors
from tacker_k8s_mgmt.kubespray import inventory
from tacker_k8s_mgmt.model.nodes import Role
from tacker_k8s_mgmt.operations import preconditions
from tacker_k8s_mgmt.operations.instantiate import Instantiate
from tacker_k8s_mgmt.operations.step import Runner, Step
from tacker_k8s_mgmt.operations.terminate import terminate_end, terminate_start
from tacker_k8s_mgmt.request.reader import ClusterRequest
from tacker_k8s_mgmt.text import Redactor
from tests.helpers import operations
from tests.helpers.fakes.clock import FakeClock
from tests.helpers.fakes.journal import FakeJournal
from tests.helpers.fakes.nodes import FakeNode, machine
from tests.helpers.fakes.site import FakeSite
from tests.helpers.operations import dependencies, scale_out
from tests.helpers.requests import VNF, params

NAMES = ["control-plane-10-10-0-4", "worker-10-10-0-5", "worker-10-10-0-55"]
EFFECTS = (
    "machines",
    "workdir.claim",
    "lock",
    "wait_reachable",
    "save_host_keys",
    "workdir.write machines.json",
    "workdir.write hosts.yaml",
    "workdir.write hosts.last.yaml",
    "workdir.write vars.json",
    "balancer.install",
    "balancer.status",
    "run cluster",
    "cluster.nodes",
    "workdir.write joined.json",
    "pod_network.measure",
    "cluster.admin_access",
    "vims.register",
)


def instantiate(site: FakeSite, wanted: ClusterRequest | None = None) -> FakeJournal:
    wanted = wanted or params()
    clock, journal = FakeClock(), FakeJournal()
    work = Instantiate(dependencies(wanted, site, clock))
    runner = Runner(
        "instantiate_end", journal, clock, Redactor(wanted.secrets()), work.left
    )
    runner.run(work.steps())
    return journal


def terminate(site: FakeSite, known: FakeSite | None) -> FakeJournal:
    clock, journal = FakeClock(), FakeJournal()
    steps = terminate_end(VNF, site.vims, known)
    Runner("terminate_end", journal, clock, Redactor(())).run(steps)
    return journal


class TestInstantiate:
    def test_effects_come_in_the_order_of_work(self):
        site = FakeSite()
        instantiate(site)
        assert tuple(dict.fromkeys(site.calls)) == EFFECTS

    @pytest.mark.parametrize(
        "left", ['{"version": "1.31.9"}', '{"aim": "1.31.9"}', "{", "\ufffd"]
    )
    def test_version_is_that_of_the_request_and_not_of_a_former_cluster(self, left):
        wanted = params(cluster={"kubernetes_version": "1.30.4"})
        site = FakeSite()
        site.files["upgrade.json"] = left
        operations.run(Instantiate, site, wanted)
        variables = json.loads(site.files["vars.json"])
        assert variables["kube_version"].endswith("}}1.30.4")
        assert json.loads(site.files["upgrade.json"]) == {}

    def test_what_a_former_cluster_exposed_is_not_exposed_again(self):
        """Its directory could not be removed."""
        site = FakeSite()
        site.owner = VNF
        old = {"name": "web", "port": 8080, "node_port": 30080}
        site.files["services.json"] = json.dumps([old])
        site.files["healing.json"] = json.dumps({"load_balancer": "another"})
        instantiate(site)
        assert site.exposed == ()
        assert json.loads(site.files["services.json"]) == []
        assert json.loads(site.files["healing.json"]) == {}

    @pytest.mark.parametrize("kept", ["all", "hosts.yaml", "joined.json"])
    def test_nothing_is_left_of_a_former_cluster_whose_vms_are_gone(self, kept):
        """It was abandoned, or its directory could not be removed at its end."""
        site = operations.instantiated()
        exposed: dict[str, Any] = {"owner": VNF, "namespace": "shop", "service": "web"}
        exposed |= {"protocol": "tcp", "port": 80, "node_port": 30080}
        site.files |= {"exposures.json": json.dumps([exposed]), "moving.json": "{}"}
        if kept != "all":
            others = {"hosts.yaml", "hosts.last.yaml", "machines.json", "joined.json"}
            for name in others - {kept}:
                del site.files[name]
        operations.replace_all(site)
        site.vim = None
        instantiate(site)
        new = FakeSite()
        operations.replace_all(new)
        instantiate(new)
        assert (site.files, site.exposed, site.members) == (new.files, (), NAMES)

    def test_outcome_is_a_registered_cluster(self):
        site = FakeSite()
        instantiate(site)
        assert site.owner == VNF
        names = [node.name for node in inventory.parse(site.files["hosts.yaml"])]
        assert names == NAMES
        assert site.balanced.workers == (
            ("worker-10-10-0-5", "10.10.0.5"),
            ("worker-10-10-0-55", "10.10.0.55"),
        )
        assert site.vim.auth_url == "https://192.0.2.109:6443"
        assert site.vim.name == f"kubernetes_vim_{VNF}"

    def test_the_vim_has_the_name_of_the_request(self):
        site = FakeSite()
        instantiate(site, params(vim_name="my-cluster"))
        assert site.vim.name == "my-cluster"

    def test_second_run_changes_nothing(self):
        site = FakeSite()
        instantiate(site)
        site.changes.clear()
        site.forgotten.clear()
        journal = instantiate(site)
        assert site.changes == []
        assert site.forgotten == []
        outcomes = {
            record["step"]: record["outcome"]
            for record in journal.records
            if record["event"] == "step-end"
        }
        assert outcomes["run cluster.yml"] == "nothing to do"

    @pytest.mark.parametrize("fault", EFFECTS)
    def test_retry_after_a_fault_anywhere_reaches_the_same_end(self, fault):
        whole = FakeSite()
        instantiate(whole)
        site = FakeSite()
        site.faults.add(fault)
        with pytest.raises(errors.StepFailed, match=f"fault in {fault}"):
            instantiate(site)
        instantiate(site)
        assert (site.files, site.vim, site.balanced, site.ran) == (
            whole.files,
            whole.vim,
            whole.balanced,
            whole.ran,
        )

    @pytest.mark.parametrize("fault", EFFECTS)
    def test_rollback_after_a_fault_anywhere_leaves_nothing(self, fault):
        site = FakeSite()
        site.faults.add(fault)
        with pytest.raises(errors.StepFailed):
            instantiate(site)
        terminate(site, site)
        assert (site.owner, site.files, site.vim) == (None, {}, None)

    def test_without_load_balancer_the_vim_is_the_control_plane(self):
        site = FakeSite(load_balancer=False)
        instantiate(site, params(external_lb_param=None))
        assert "balancer.install" not in site.calls
        assert site.vim.auth_url == "https://192.0.2.104:6443"

    def test_load_balancer_that_does_not_run_stops_the_operation(self):
        site = FakeSite()
        site.balancer_runs = False
        with pytest.raises(errors.StepFailed, match="HAProxy does not run"):
            instantiate(site)
        assert "run cluster" not in site.calls

    def test_workers_that_heat_has_not_finished_are_waited_for_by_a_retry(self):
        site = FakeSite()
        site.unfinished = {worker.server_id for worker in site.workers}
        with pytest.raises(errors.StepFailed, match="No worker VM is complete"):
            instantiate(site)
        assert "owner" not in site.changes
        site.unfinished = set()
        instantiate(site)
        assert len(site.members) == 3

    def test_pods_mtu_is_made_of_the_nodes_and_stays(self):
        wanted = params(cluster={"network": {"plugin": "calico", "mtu": "nodes"}})
        site = FakeSite()
        instantiate(site, wanted)
        made = json.loads(site.files["vars.json"])["calico_mtu"]
        assert made < site.nic_mtu
        site.nic_mtu = 9000
        site.workers.append(machine(Role.WORKER, 6))
        scale_out(site, "server-6", wanted=wanted)
        assert json.loads(site.files["vars.json"])["calico_mtu"] == made

    @pytest.mark.parametrize("mtu", ["nodes", None])
    def test_a_worker_with_a_smaller_mtu_is_refused_where_it_was_counted_on(self, mtu):
        network = {"plugin": "calico", **({"mtu": mtu} if mtu else {})}
        wanted, site = params(cluster={"network": network}), FakeSite()
        instantiate(site, wanted)
        before, site.nic_mtu = site.nic_mtu, 1400
        site.workers.append(machine(Role.WORKER, 6))
        if not mtu:
            scale_out(site, "server-6", wanted=wanted)
            return
        with pytest.raises(errors.StepFailed, match="smaller MTU") as caught:
            scale_out(site, "server-6", wanted=wanted)
        assert f"{before} bytes: worker-10-10-0-6 (1400)" in str(caught.value)
        assert "worker-10-10-0-6" not in site.members

    def test_rebuilt_vms_lose_their_host_keys(self):
        site = FakeSite()
        instantiate(site)
        known = json.loads(site.files["machines.json"])
        known.pop("server-9")
        site.files["machines.json"] = json.dumps(known)
        site.forgotten.clear()
        instantiate(site)
        assert site.forgotten == ["192.0.2.109"]

    def test_nodes_that_stay_unready_are_named_with_their_reason(self):
        site = FakeSite()
        instantiate(site)
        site.remove(NAMES[2])
        with pytest.raises(errors.StepFailed) as caught:
            instantiate(site)
        assert "worker-10-10-0-55: not in the cluster" in str(caught.value)
        assert "worker-10-10-0-5:" not in str(caught.value)

    def test_waits_for_ready_nodes(self):
        site = FakeSite()
        instantiate(site)
        site.cluster_nodes = [
            FakeNode(name, ready=False, reason="kubelet stopped posting")
            for name in NAMES
        ]
        with pytest.raises(errors.StepFailed, match="kubelet stopped posting"):
            instantiate(site)

    def test_error_names_step_leftovers_and_next_action(self):
        site = FakeSite()
        site.faults.add("run cluster")
        with pytest.raises(errors.StepFailed) as caught:
            instantiate(site)
        text = str(caught.value)
        assert "instantiate_end: step 7/11 (run cluster.yml) failed" in text
        assert "3 node VM(s) and the directory /srv/clusters/one on 192.0.2.5" in text

    def test_error_is_reported_although_the_ansible_server_is_gone(self):
        class Gone(FakeSite):
            @property
            def workdir(self):
                if "run cluster" in self.calls:
                    raise errors.RemoteError(detail="no connection")
                return super().workdir

        site = Gone()
        site.faults.add("run cluster")
        with pytest.raises(errors.StepFailed) as caught:
            instantiate(site)
        text = str(caught.value)
        assert "fault in run cluster" in text
        assert "the directory /srv/clusters/one on 192.0.2.5" in text

    @pytest.mark.parametrize(
        "error",
        [
            errors.CommandFailed(host="h", command="kubectl", rc=1, tail="refused"),
            errors.CommandTimeout(host="h", command="kubectl", seconds=60),
            errors.ConnectionLost(host="h", command="kubectl", reason="reset"),
        ],
        ids=lambda error: type(error).__name__,
    )
    def test_api_that_comes_and_goes_is_waited_for(self, error):
        site = FakeSite()
        site.faults.add("cluster.nodes")
        site.error = error
        instantiate(site)
        assert site.vim is not None

    def test_api_that_never_answers_is_reported_after_the_limit(self):
        site = FakeSite()
        answer = errors.CommandFailed(host="h", command="kubectl", rc=1, tail="refused")

        def never(control_plane):
            raise answer

        site.cluster = never
        with pytest.raises(errors.StepFailed, match="refused"):
            instantiate(site)

    @pytest.mark.parametrize(
        ("error", "recorded"),
        [
            (
                errors.PlaybookFailed(
                    playbook="cluster.yml",
                    host="h",
                    rc=2,
                    log="/log",
                    failures=["w1: Join: n0de-secret"],
                    tasks=[{"host": "w1", "task": "Join", "message": "n0de-secret"}],
                ),
                {
                    "failed_tasks": [{"host": "w1", "task": "Join", "message": "***"}],
                    "advice": "Fix the cause; kubespray can be run again. `retry` it.",
                },
            ),
            (
                errors.DrainError(
                    failed=1, outcomes=["w1: drained", "w2: n0de-secret"]
                ),
                {"problems": ["w1: drained", "w2: ***"], "advice": "`retry` it."},
            ),
            (
                errors.ClusterError(detail="It is n0de-secret."),
                {"advice": "`retry` it."},
            ),
        ],
        ids=lambda value: type(value).__name__,
    )
    def test_failure_is_recorded_as_a_list_without_secrets(self, error, recorded):
        def fail():
            raise error

        journal, redact = FakeJournal(), Redactor(["n0de-secret"])
        sent = ("`retry` it.", ("retry",))
        runner = Runner("heal_end", journal, FakeClock(), redact, advice=lambda _: sent)
        with pytest.raises(errors.StepFailed) as caught:
            runner.run([Step("join", "join", fail)])
        last = journal.records[-1]
        known = {"event", "operation", "outcome", "seconds"}
        details = {key: value for key, value in last.items() if key not in known}
        told = {"error": str(caught.value), "verbs": ("retry",)}
        assert details == {**told, **recorded}

    def test_unforeseen_error_is_wrapped_and_redacted(self, caplog):
        site = FakeSite()

        def broken(machines):
            raise ValueError("login with n0de-secret")

        site.wait_reachable = broken
        with pytest.raises(errors.StepFailed) as caught:
            instantiate(site)
        assert "ValueError: login with ***" in str(caught.value)
        # Tacker's conductor logs the whole chain.
        logged = caplog.text + "".join(traceback.format_exception(caught.value))
        assert "n0de-secret" not in logged
        assert "in broken" in caplog.text


class TestPreflight:
    def test_all_findings_come_in_one_error_and_nothing_is_touched(self):
        site = FakeSite()
        site.package = ("no script",)
        site.server = ("no kubespray", "no sshpass")
        site.foreign_vims = {f"kubernetes_vim_{VNF}"}
        with pytest.raises(errors.PreflightError) as caught:
            preconditions.check(dependencies(params(), site, FakeClock()))
        assert len(caught.value.problems) == 4
        assert site.calls == []

    def test_instantiate_end_checks_again_before_it_touches_anything(self):
        site = FakeSite()
        site.server = ("no kubespray",)
        with pytest.raises(errors.StepFailed, match="no kubespray"):
            instantiate(site)
        assert site.calls == []


class TestTerminate:
    def test_refused_while_the_vim_is_in_use(self):
        site = FakeSite()
        site.vim_in_use = True
        runner = Runner("terminate_start", FakeJournal(), FakeClock(), Redactor(()))
        with pytest.raises(errors.StepFailed, match="still used"):
            runner.run(terminate_start(site.vims))

    def test_takes_everything_away_and_again_is_harmless(self):
        site = FakeSite()
        instantiate(site)
        terminate(site, site)
        assert (site.owner, site.files, site.vim) == (None, {}, None)
        site.changes.clear()
        terminate(site, site)
        assert site.changes == []

    def test_directory_of_another_vnf_is_left_alone(self):
        site = FakeSite()
        site.owner, site.files = "other", {"hosts.yaml": "theirs"}
        terminate(site, site)
        assert site.files == {"hosts.yaml": "theirs"}
        assert "playbooks.stop" not in site.calls

    @pytest.mark.parametrize(
        "error",
        [
            None,
            errors.OwnershipError(path="/p", host="h", reason="has a bad marker"),
            PermissionError(13, "known_hosts"),
        ],
        ids=["unreachable", "marker-damaged", "no-state-path"],
    )
    @pytest.mark.parametrize("fault", ["workdir.owner", "playbooks.stop"])
    def test_directory_that_cannot_be_removed_does_not_keep_the_vnf(
        self, fault, error, caplog
    ):
        site = FakeSite()
        instantiate(site)
        site.faults.add(fault)
        site.error = error
        terminate(site, site)
        assert site.vim is None
        assert "delete it by hand" in caplog.text

    def test_the_lock_is_waited_for_before_runs_are_stopped(self):
        site = FakeSite()
        instantiate(site)
        site.calls.clear()
        terminate(site, site)
        work = ["lock for 60 s", "playbooks.stop", "workdir.remove"]
        assert [call for call in site.calls if call in work] == work

    @pytest.mark.parametrize(
        "error",
        [
            errors.LockedError(path="/p", host="h", owner="scale_end of conductor two"),
            errors.RemoteError(detail="scale_end of conductor two: no flock."),
        ],
        ids=["locked", "lock-unusable"],
    )
    def test_directory_is_removed_without_the_lock_and_that_is_reported(
        self, error, caplog
    ):
        site = FakeSite()
        instantiate(site)
        site.faults.add("lock for 60 s")
        site.error = error
        terminate(site, site)
        assert (site.owner, site.files) == (None, {})
        assert "removed without the cluster's lock" in caplog.text
        assert "scale_end of conductor two" in caplog.text

    def test_vim_goes_even_when_the_parameters_are_no_good(self):
        site = FakeSite()
        instantiate(site)
        terminate(site, None)
        assert site.vim is None
        assert site.owner == VNF


def test_secrets_never_reach_the_journal():
    site = FakeSite()
    journal = instantiate(site)
    text = json.dumps(journal.records)
    for secret in ("n0de-secret", "serv3r-secret", "b4lancer-secret", "t0ken"):
        assert secret not in text
