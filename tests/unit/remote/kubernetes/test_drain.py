# SPDX-License-Identifier: Apache-2.0
"""Draining nodes with the real kubectl over SSH."""

import logging
import threading

import pytest

from tacker_k8s_mgmt import errors
from tacker_k8s_mgmt.remote.kubernetes.cluster import KubeControl
from tacker_k8s_mgmt.request.drain_policy import DrainPolicy
from tests.helpers import kubeapi as bed
from tests.helpers.kubectl_server import SUDO, needs_kubectl, pod, with_metadata

pytestmark = needs_kubectl


def policy(**options):
    return DrainPolicy(**{"timeout": 20, **options})


@pytest.fixture
def cluster(site, session):
    return KubeControl(session)


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
    assert sorted(
        call.split(" drain ")[1].split()[0] for call in site.calls("drain")
    ) == [
        "w1",
        "w2",
    ]


def test_one_login_serves_all_drains(cluster, site, sshd):
    drain(cluster, "w1", "w10", "w2")
    assert len(site.calls("drain")) == 3
    assert sshd.logins == 1


def test_everything_that_can_go_goes_and_the_rest_does_not_matter(cluster, site):
    agent = bed.deployment("agent", 1)
    agent["kind"] = "DaemonSet"
    del agent["spec"]["replicas"]
    static = pod("static", "w1")
    annotations = {"kubernetes.io/config.mirror": "x"}
    other = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "blue"}}
    site.run(
        other,
        agent,
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
CROWD = """
case " $* " in
*" get nodes "*) printf 'List\n'; printf '%s\t\t\t\t\t\t\t\t\t\n' a b c d ;;
*" get pods "*) echo '{"items": []}' ;;
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
    KubeControl(session).drain(["a", "b", "c", "d"], policy(parallel=parallel))
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
        "--grace-period=7 --timeout=20s --disable-eviction=true"
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
        "; deleted for good, as no controller made them: default/bare; "
        f"evicted: default/{free}. "
    ) in str(caught.value)


def test_a_budget_that_lets_pods_go_one_after_the_other_is_waited_for(cluster, site):
    site.run(bed.budget("web", maxUnavailable=1), bed.deployment("web", 3))
    drain(cluster, "w1", "w2", timeout=40)
    assert site.pods_on("w1") == site.pods_on("w2") == set()
    bed.wait_for(lambda: len(site.pods_on("w10")) == 3)


def test_pods_under_two_budgets_are_explained(cluster, site):
    second = with_metadata(bed.budget("web", maxUnavailable=3), name="second")
    site.run(bed.budget("web", minAvailable=0), second, bed.deployment("web", 3))
    with pytest.raises(errors.DrainError) as caught:
        drain(cluster, "w1", timeout=1)
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
        cluster.drain(["w1", "w2"], policy(parallel=1))
    text = str(caught.value)
    assert text.startswith("2 of 2 node(s)")
    assert "(1) w1 was not drained" in text
    assert "(2) w2 was not drained" in text
    assert "kubectl: etcd is gone; then: " in text
    assert "server 10.0.0.5:6443 was refused" in text


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
