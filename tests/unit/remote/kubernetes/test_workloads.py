# SPDX-License-Identifier: Apache-2.0
"""Why workloads do not work, by the real kubectl."""

import contextlib

import pytest

from tacker_k8s_mgmt.features.applications.workloads import Workloads
from tacker_k8s_mgmt.remote.kubernetes.kubectl import KubeClient
from tests.helpers import kubeapi as bed
from tests.helpers.applications import job
from tests.helpers.kubectl_server import needs_kubectl

pytestmark = needs_kubectl


def broken(name, **labels):
    """A Deployment whose pods cannot be scheduled."""
    made = bed.deployment(name, 1, nodeSelector={"only": "nowhere"})
    made["spec"]["selector"]["matchLabels"] = labels
    made["spec"]["template"]["metadata"]["labels"] = labels
    return made


class Events:
    """A cluster that has nothing but these events."""

    def __init__(self, *events):
        self._events = events

    understanding = contextlib.nullcontext

    def objects(self, kind, *_):
        return self._events if kind == "events" else []


def event(reason, type="Warning", **times):
    return {"type": type, "reason": reason, "message": "told", **times}


def test_the_three_latest_warnings_are_told():
    """Some events have one time, some the other, and some have both."""
    client = Events(
        event("D", eventTime="2026-01-04"),
        event("A", lastTimestamp="2026-01-01"),
        event("C", lastTimestamp="2026-01-03", eventTime="2026-01-01"),
        event("B", lastTimestamp=None, eventTime="2026-01-02"),
        event("E", type="Normal", lastTimestamp="2026-01-05"),
    )
    text = Workloads(client).diagnosis(broken("web", app="shop"))
    assert text == "B: told; C: told; D: told"


def test_without_a_warning_other_events_are_told():
    client = Events(event("A", type="Normal"), event("B", type="Normal", eventTime="1"))
    text = Workloads(client).diagnosis(broken("web", app="shop"))
    assert text == "A: told; B: told"


def test_a_job_that_is_gone_has_failed_as_its_event_says():
    class Gone(Events):
        def run(self, *words, **_):
            return '{"kind": "List", "items": []}'

    seed = job("seed")
    seed["metadata"]["namespace"] = "default"
    about = {"kind": "Job", "name": "seed", "uid": "1"}
    ended = event("BackoffLimitExceeded", involvedObject=about)
    progress = Workloads(Gone(ended)).progress([seed])
    assert progress.failed == {"Job default/seed": "BackoffLimitExceeded: told"}


@pytest.fixture
def workloads(session):
    return Workloads(KubeClient(session))


def test_the_pods_of_a_workload_have_all_of_its_labels(site, workloads):
    web = broken("web", app="shop", tier="web")
    # Either of these has one of its labels.
    site.kube.apply(web, broken("db", app="shop", tier="db"))
    site.kube.apply(broken("other", app="wiki", tier="web"))
    bed.wait_for(lambda: len(site.kube.pods()) == 3)
    text = bed.wait_for(lambda: workloads.diagnosis(web))
    assert "pod web-" in text
    assert "pod db-" not in text
    assert "pod other-" not in text


def test_the_end_of_an_earlier_job_is_not_that_of_this_one(site, workloads):
    seed = job("seed", "sh", "-c", "echo made")
    seed["metadata"]["namespace"] = "default"
    seed["spec"]["ttlSecondsAfterFinished"] = 0
    site.kube.apply(seed)
    bed.wait_for(lambda: not workloads.progress([seed]).pending)
    assert not workloads.progress([seed]).failed
    former = workloads.ended_jobs("default")
    assert len(former) == 1
    bed.wait_for(lambda: not site.kube.kubectl("get", "jobs", "-o", "name").stdout)
    # The next one of that name is not made, or not ended, yet.
    progress = workloads.progress([seed], former)
    assert "no event tells how it ended" in progress.pending["Job default/seed"]
    site.kube.apply(seed)
    bed.wait_for(lambda: not workloads.progress([seed], former).pending)
    assert len(workloads.ended_jobs("default")) == 2
