# SPDX-License-Identifier: Apache-2.0
"""Draining nodes with the real kubectl over SSH."""

import json
import logging
import threading
import time

import pytest

from tacker_k8s_mgmt import errors
from tacker_k8s_mgmt.remote.kubernetes.api import ClusterApi
from tacker_k8s_mgmt.remote.kubernetes.draining import drain as run_drain
from tacker_k8s_mgmt.remote.kubernetes.kubectl import KubeClient
from tacker_k8s_mgmt.request.drain_policy import DrainPolicy
from tests.helpers import kubeapi as bed
from tests.helpers.kubectl_server import SUDO, needs_kubectl, pod, with_metadata

pytestmark = needs_kubectl


def policy(**options):
    return DrainPolicy(**{"timeout": 20, **options})


@pytest.fixture
def cluster(site, session):
    return ClusterApi(session)


def drain(cluster, *names, **options):
    cluster.cordon(names)
    cluster.drain(names, policy(**options))


def test_pods_move_to_the_nodes_that_stay(cluster, site):
    site.run(bed.deployment("web", 6))
    assert site.pods_on("w1")
    kept = site.pods_on("w10")
    drain(cluster, "w1", "w2")
    assert site.pods_on("w1") == site.pods_on("w2") == set()
    bed.wait_for(lambda: len(site.pods_on("w10")) == 6)
    assert kept <= site.pods_on("w10"), "w10 is not w1"
    drained = [call.split(" drain ")[1].split()[0] for call in site.calls("drain")]
    assert sorted(drained) == ["w1", "w2"]


def test_everything_that_can_go_goes_and_the_rest_does_not_matter(cluster, site):
    static = pod("static", "w1")
    annotations = {"kubernetes.io/config.mirror": "x"}
    other = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "blue"}}
    site.run(
        other,
        bed.daemon_set("agent"),
        with_metadata(static, annotations=annotations),
        pod("bare", "w1"),
        with_metadata(pod("elsewhere", "w1"), namespace="blue"),
        pod("scratch", "w1", volumes=[{"name": "s", "emptyDir": {}}]),
    )
    drain(cluster, "w1")
    left = site.pods_on("w1")
    assert "static" in left
    assert {name.partition("-")[0] for name in left} == {"static", "agent"}


def test_a_name_that_is_not_in_the_cluster_is_skipped(cluster, site):
    drain(cluster, "w", "w1x", "gone")
    assert not (site.sshd.home / "calls").read_text().count(" drain ")


# Notes how many drains run at the same time; the first ones wait for each other.
CROWD = r"""
case " $* " in
*" get nodes "*)
    # One list of values for each path of the template.
    paths=$(($(grep -o '{\.' <<<"$*" | wc -l) - 2))
    echo '["List"]'
    for name in a b c d; do
        printf '["v1"] ["Node"] [] ["%s"]' "$name"
        for ((n = 4; n < paths; n++)); do echo '[]'; done
    done
    echo '["List"]' ;;
*" get pods "*) echo '["List"] ["List"]' ;;
*" drain "*)
    mkdir -p "$HOME/running"
    touch "$HOME/running/$$"
    for _ in {1..100}; do
        crowd=$(ls "$HOME/running" | wc -l)
        echo "$crowd" >>"$HOME/crowd"
        ((crowd < WANTED)) || touch "$HOME/met"
        [ ! -e "$HOME/met" ] || break
        sleep 0.1
    done
    sleep 0.3
    ls "$HOME/running" | wc -l >>"$HOME/crowd"
    rm "$HOME/running/$$" ;;
esac
"""


@pytest.mark.parametrize("parallel", [1, 2])
def test_not_more_are_drained_at_once_than_is_wanted(sshd, session, parallel):
    sshd.program("kubectl", CROWD.replace("WANTED", str(parallel)))
    sshd.program("sudo", SUDO)
    ClusterApi(session).drain(["a", "b", "c", "d"], policy(parallel=parallel))
    crowd = [int(line) for line in (sshd.home / "crowd").read_text().split()]
    assert max(crowd) == parallel
    assert sshd.logins == 1


def test_kubectl_has_the_policys_words_and_a_longer_limit_than_the_drain(
    cluster, site, sshd
):
    drain(cluster, "w1", grace_period=7, timeout=20, disable_eviction=True)
    (call,) = site.calls("drain")
    assert call.endswith(
        "drain w1 --ignore-daemonsets --force --delete-emptydir-data=true "
        "--grace-period=7 --disable-eviction=true --timeout=20s"
    )
    (command,) = [one for one in sshd.commands if " drain " in one]
    limit = float(command.split("timeout -k 5 ")[1].split()[0])
    assert limit > 20


def test_a_budget_that_blocks_is_named_with_its_numbers(cluster, site, caplog):
    site.run(bed.budget("web", minAvailable="100%"), bed.deployment("web", 3))
    (kept,) = site.pods_on("w1")
    caplog.set_level(logging.INFO)
    with pytest.raises(errors.DrainError) as caught:
        drain(cluster, "w1", "m1", timeout=1)
    text = str(caught.value)
    assert text.startswith("1 of 2 node(s) could not be drained: ")
    assert "m1 was drained in " in text
    assert f"s: still there: default/{kept}; " in text
    assert (
        "PodDisruptionBudget default/web (minAvailable 100%, currentHealthy 3, "
        f"desiredHealthy 3, disruptionsAllowed 0) keeps default/{kept}"
    ) in text
    assert "Relax the budget, add replicas that run elsewhere, or heal" in text
    assert "drain.on_failure force" in text
    assert site.pods_on("w1") == {kept}
    assert "w1 was not drained" in caplog.text


def test_pods_that_left_although_the_drain_failed_are_named(cluster, site):
    site.run(bed.budget("web", minAvailable="100%"), bed.deployment("web", 3))
    site.run(pod("bare", "w1"), bed.deployment("free", 3))
    (free,) = [name for name in site.pods_on("w1") if name.startswith("free-")]
    with pytest.raises(errors.DrainError) as caught:
        drain(cluster, "w1", timeout=5)
    assert (
        "; deleted for good, as no controller created them: default/bare; "
        f"evicted: default/{free}. "
    ) in str(caught.value)


def test_a_budget_that_lets_pods_go_one_after_the_other_is_waited_for(cluster, site):
    site.run(bed.budget("web", maxUnavailable=1), bed.deployment("web", 3))
    drain(cluster, "w1", "w2", timeout=40)
    assert site.pods_on("w1") == site.pods_on("w2") == set()
    bed.wait_for(lambda: len(site.pods_on("w10")) == 3)


def test_pods_under_two_budgets_are_explained_and_not_waited_for(cluster, site):
    second = with_metadata(bed.budget("web", maxUnavailable=3), name="second")
    site.run(bed.budget("web", minAvailable=0), second, bed.deployment("web", 3))
    began = time.monotonic()
    with pytest.raises(errors.DrainError) as caught:
        drain(cluster, "w1", timeout=60)
    assert time.monotonic() - began < 30
    assert "PodDisruptionBudget default/web (" in str(caught.value)
    assert "PodDisruptionBudget default/second (" in str(caught.value)
    assert "leave one budget for each pod" in str(caught.value)


def test_emptydir_data_is_kept_if_it_must_be(cluster, site):
    site.run(pod("scratch", "w1", volumes=[{"name": "s", "emptyDir": {}}]))
    with pytest.raises(errors.DrainError) as caught:
        drain(cluster, "w1", delete_emptydir_data=False)
    assert "still there: default/scratch; kubectl: " in str(caught.value)
    assert "drain.delete_emptydir_data" in str(caught.value)
    assert site.pods_on("w1") == {"scratch"}


def test_a_pod_that_does_not_end_is_named(cluster, site):
    blue = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "blue"}}
    stuck = with_metadata(pod("stuck", "w1"), finalizers=["test/stays"])
    site.run(blue, with_metadata(stuck, namespace="blue"))
    with pytest.raises(errors.DrainError) as caught:
        drain(cluster, "w1", timeout=1)
    assert "still there: blue/stuck (being deleted)." in str(caught.value)
    assert "See why pods do not end" in str(caught.value)


def test_force_passes_over_budgets_and_says_so(cluster, site, caplog):
    site.run(bed.budget("web", minAvailable="100%"), bed.deployment("web", 3))
    (kept,) = site.pods_on("w1")
    drain(cluster, "w1", timeout=1, on_failure="force")
    assert site.pods_on("w1") == set()
    first, second = site.calls("drain")
    assert "--disable-eviction=false" in first
    assert "--disable-eviction=true" in second
    (told,) = [r for r in caplog.records if "force" in r.getMessage()]
    assert told.levelno == logging.WARNING
    assert f"default/{kept}" in told.getMessage()
    assert site.calls("delete") == [], "its grace was kept"


def test_force_deletes_at_once_what_does_not_end(cluster, site, caplog):
    site.run(
        with_metadata(pod("stuck", "w1"), finalizers=["test/stays"]),
        with_metadata(pod("other", "w2"), finalizers=["test/stays"]),
    )
    drain(cluster, "w1", timeout=1, on_failure="force")
    (call,) = site.calls("delete")
    assert "--grace-period=0 --force" in call
    assert "deleted at once: default/stuck" in caplog.text
    other = site.kube.get("/api/v1/namespaces/default/pods/other")
    assert "deletionTimestamp" not in other["metadata"]


def test_pods_of_a_silent_kubelet_are_not_waited_for(cluster, site):
    site.run(pod("slow", "w1", terminationGracePeriodSeconds=1))
    site.silence("w1")
    drain(cluster, "w1", timeout=20)
    assert site.pods_on("w1") == {"slow"}
    assert "--skip-wait-for-delete-timeout=1" in site.calls("drain")[0]
    slow = site.kube.get("/api/v1/namespaces/default/pods/slow")
    assert slow["metadata"]["deletionTimestamp"]


def test_an_api_that_is_away_is_an_error_and_not_an_empty_cluster(cluster, site):
    site.take_api_away()
    with pytest.raises(errors.CommandFailed, match=r"server \S+ was refused"):
        cluster.drain(["w1"], policy())


def test_an_api_that_goes_away_meanwhile_is_reported_for_each_node(cluster, site, sshd):
    site.run(bed.budget("web", minAvailable="100%"), bed.deployment("web", 3))
    broken = sshd.bin / "kubectl"
    script = broken.read_text()
    gone = (
        '[ "$4" = drain ] && { touch "$HOME/down"; echo "etcd is gone" >&2; exit 1; }'
    )
    broken.write_text(script.replace("shift 2\n", f"{gone}\nshift 2\n"))
    with pytest.raises(errors.DrainError) as caught:
        cluster.drain(["w1", "w2"], policy(parallel=1, timeout=1))
    text = str(caught.value)
    assert text.startswith("2 of 2 node(s)")
    assert "(1) w1 was not drained" in text
    assert "(2) w2 was not drained" in text
    assert "kubectl: etcd is gone; then: " in text
    assert "server 10.0.0.5:6443 was refused" in text


EOF = 'Internal error occurred: failed calling webhook "v.example.org": EOF'
PASSING = [
    pytest.param(500, "InternalError", EOF, {"times": 1}, id="webhook restarts"),
    pytest.param(
        403,
        "Forbidden",
        'admission webhook "drain-cleaner.example.org" denied the request',
        {"seconds": 4},
        id="webhook moves the pod itself",
    ),
    pytest.param(500, "", "etcdserver: leader changed", {"times": 2}, id="etcd"),
    pytest.param(
        409,
        "Conflict",
        "Operation cannot be fulfilled on pods: the object has been modified",
        {"times": 1},
        id="conflict",
    ),
    pytest.param(504, "Timeout", "request did not complete", {"times": 1}, id="slow"),
]


def refusing(code=500, reason="InternalError", message=EOF, **limit):
    """A workload whose pods' evictions fail."""
    fault = {"code": code, "reason": reason, "message": message, **limit}
    web = bed.deployment("web", 3)
    metadata = web["spec"]["template"]["metadata"]
    metadata["annotations"] = {"kapi.sim/eviction-fails": json.dumps(fault)}
    return web


def timed(*args, **options):
    began = time.monotonic()
    drain(*args, **options)
    return time.monotonic() - began


@pytest.mark.parametrize(("code", "reason", "message", "limit"), PASSING)
def test_an_eviction_that_fails_for_a_while_is_repeated(
    cluster, site, code, reason, message, limit
):
    site.run(refusing(code, reason, message, **limit))
    assert timed(cluster, "w1", timeout=40) < 40
    assert site.pods_on("w1") == set()
    limits = [int(c.partition("--timeout=")[2].strip("s")) for c in site.calls("drain")]
    assert limits[0] == 40
    assert limits == sorted(limits, reverse=True), "the limit is that of the whole"
    assert limits[-1] <= 40 - limit.get("seconds", 0)


def test_an_eviction_that_fails_for_ever_fails_at_the_limit_with_its_reason(
    cluster, site
):
    site.run(refusing(seconds=600))
    began = time.monotonic()
    with pytest.raises(errors.DrainError, match=r"webhook .* EOF"):
        drain(cluster, "w1", timeout=8)
    assert 6 <= time.monotonic() - began < 20
    assert len(site.calls("drain")) <= 8, "it is not hammered"
    assert len(site.pods_on("w1")) == 1


def test_force_passes_over_budgets_at_the_time_limit_only(cluster, site):
    site.run(bed.budget("web", minAvailable=3), refusing(times=1))
    assert timed(cluster, "w1", timeout=8, on_failure="force") > 6
    assert site.pods_on("w1") == set()
    *first, last = site.calls("drain")
    assert len(first) > 1
    assert all("--disable-eviction=false" in call for call in first)
    assert "--disable-eviction=true" in last


def test_an_api_that_comes_back_within_the_limit_is_waited_for(cluster, site, sshd):
    site.run(bed.deployment("web", 3))
    cluster.cordon(["w1"])
    nodes = cluster.nodes()
    site.take_api_away()
    back = threading.Timer(3, (sshd.home / "down").unlink)
    back.start()
    worker = next(node for node in nodes if node.name == "w1")
    client = KubeClient(cluster._client._session)
    run_drain(client, [worker], policy(timeout=40), cluster.nodes)
    back.join()
    assert site.pods_on("w1") == set()


def test_force_deletes_with_a_grace_again_after_an_error(cluster, site, sshd):
    """A deletion that fails once is no reason to kill pods at once."""
    site.run(bed.budget("web", minAvailable=3), bed.deployment("web", 3))
    script = sshd.bin / "kubectl"
    once = (
        'case " $* " in *" drain "*"--disable-eviction=true"*)\n'
        '    [ -e "$HOME/failed" ] ||\n'
        '    { touch "$HOME/failed"; echo "EOF" >&2; exit 1; }\n'
        "esac\nshift 2\n"
    )
    script.write_text(script.read_text().replace("shift 2\n", once))
    drain(cluster, "w1", timeout=4, on_failure="force")
    assert (sshd.home / "failed").exists()
    assert site.pods_on("w1") == set()
    assert site.calls("delete") == [], "their grace was kept"


def test_a_pod_whose_daemonset_is_gone_leaves(cluster, site):
    owner = {"apiVersion": "apps/v1", "kind": "DaemonSet", "name": "gone", "uid": "x"}
    orphan = with_metadata(
        pod("orphan", "w1"), ownerReferences=[{**owner, "controller": True}]
    )
    site.run(orphan)
    drain(cluster, "w1")
    assert site.pods_on("w1") == set()


def test_a_pod_that_has_not_started_leaves(cluster, site):
    site.kube.apply(pod("new", "w1"))
    drain(cluster, "w1")
    assert site.pods_on("w1") == set()


@pytest.mark.parametrize("on_failure", ["abort", "force"])
def test_pods_with_much_text_do_not_exceed_the_limit_of_an_answer(
    cluster, site, on_failure
):
    """As 250 pods of a service mesh have it, with 36 kB of annotations each."""
    annotations = {"sidecar.example.org/status": "x" * 220_000}
    site.run(bed.budget("web-0", minAvailable=1))
    for number in range(40):
        one = with_metadata(pod(f"web-{number}", "w1"), annotations=annotations)
        path = "/api/v1/namespaces/default/pods"
        assert site.kube.request("POST", path, one)[0] == 201
    bed.wait_for(site.all_run)
    assert len(site.pods_on("w1")) == 40
    if on_failure == "force":
        drain(cluster, "w1", timeout=10, on_failure=on_failure)
        assert site.pods_on("w1") == set()
        return
    with pytest.raises(errors.DrainError, match="PodDisruptionBudget default/web-0 "):
        drain(cluster, "w1", timeout=10)
    assert site.pods_on("w1") == {"web-0"}


DEDICATED = {"key": "dedicated", "value": "cnf", "effect": "NoSchedule"}


@pytest.mark.parametrize(
    ("spec", "taint", "nowhere"),
    [
        pytest.param({}, "", False, id="anywhere"),
        pytest.param({}, "dedicated=cnf:NoSchedule", True, id="tainted"),
        pytest.param(
            {"tolerations": [DEDICATED]},
            "dedicated=cnf:NoSchedule",
            False,
            id="tolerated",
        ),
        pytest.param(
            {"nodeSelector": {"kubernetes.io/hostname": "w1"}}, "", True, id="selector"
        ),
    ],
)
def test_whether_the_pods_that_are_left_have_somewhere_to_go(
    cluster, site, spec, taint, nowhere
):
    site.run(bed.budget("web", minAvailable=1), pod("web", "w1", **spec))
    if taint:
        site.kube.kubectl("taint", "node", "w10", "w2", taint)
    with pytest.raises(errors.DrainError) as caught:
        drain(cluster, "w1", timeout=1)
    assert caught.value.no_other_node is nowhere


@pytest.mark.parametrize("during", [" drain ", " get pods "])
def test_a_lost_session_is_an_error_of_its_own(cluster, site, sshd, during):
    site.run(bed.budget("web", minAvailable="100%"), bed.deployment("web", 3))
    started = threading.Event()
    execute = sshd.execute

    def watched(channel, command):
        if during in command:
            started.set()
        execute(channel, command)

    sshd.execute = watched
    cutter = threading.Thread(target=lambda: (started.wait(10), sshd.drop()))
    cutter.start()
    with pytest.raises(errors.ConnectionLost):
        cluster.drain(["w1"], policy(timeout=1))
    cutter.join()


class TestOutlook:
    """What a plan says of a drain, and the drain after it."""

    @pytest.mark.parametrize(
        ("objects", "options", "kept"),
        [
            ([bed.deployment("web", 3), pod("bare", "w1")], {}, False),
            (
                [bed.budget("web", minAvailable="100%"), bed.deployment("web", 3)],
                {},
                True,
            ),
            (
                [
                    bed.budget("web", minAvailable=0),
                    with_metadata(bed.budget("web", maxUnavailable=3), name="second"),
                    bed.deployment("web", 3),
                ],
                {},
                True,
            ),
            (
                [bed.budget("web", minAvailable="100%"), bed.deployment("web", 3)],
                {"disable_eviction": True},
                False,
            ),
            (
                [pod("scratch", "w1", volumes=[{"name": "s", "emptyDir": {}}])],
                {"delete_emptydir_data": False},
                True,
            ),
        ],
        ids=["free", "budget", "two budgets", "no eviction", "emptyDir"],
    )
    def test_it_is_what_the_drain_then_does(
        self, cluster, site, objects, options, kept
    ):
        site.run(bed.daemon_set("agent"), *objects)
        before = site.pods_on("w1")
        found = cluster.drain_outlook(["w1"], policy(**options))
        assert {one.node for one in found} == {"w1"}
        assert any(one.blocks for one in found) is kept
        assert site.pods_on("w1") == before
        moved = {one.pod for one in found}
        if not kept:
            drain(cluster, "w1", **options)
            left = {f"default/{name}" for name in site.pods_on("w1")}
            assert left == {f"default/{name}" for name in before} - moved
            return
        with pytest.raises(errors.DrainError) as caught:
            drain(cluster, "w1", timeout=2, **options)
        for one in (one for one in found if one.blocks):
            assert one.pod in str(caught.value)
            for reason in one.kept_by:
                budget = reason.partition(" (")[0]
                assert budget in str(caught.value) or "emptydir" in reason

    def test_a_forced_drain_is_not_kept(self, cluster, site):
        site.run(bed.budget("web", minAvailable="100%"), bed.deployment("web", 3))
        (found,) = cluster.drain_outlook(["w1"], policy(on_failure="force"))
        assert (found.blocks, len(found.kept_by)) == (False, 1)
        assert (found.lost, found.stranded) == (False, False)

    def test_a_bare_pod_that_is_bound_to_its_node(self, cluster, site):
        site.run(pod("b", "w1", nodeSelector={"kubernetes.io/hostname": "w1"}))
        (found,) = cluster.drain_outlook(["w1"], policy())
        assert (found.pod, found.lost, found.stranded) == ("default/b", True, True)

    def test_no_node_is_asked_for_nothing(self, cluster, site):
        assert cluster.drain_outlook(["gone"], policy()) == ()
