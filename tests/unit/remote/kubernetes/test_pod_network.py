# SPDX-License-Identifier: Apache-2.0
"""Measuring the pod network over SSH: pods, their namespace, answers, failures."""

import json
import time

import pytest

from tacker_k8s_mgmt import errors
from tacker_k8s_mgmt.features.pod_network.measurement import PodNetwork, PodPath
from tacker_k8s_mgmt.model.nodes import Node, Role
from tacker_k8s_mgmt.remote.kubernetes.kubectl import KubeClient
from tests.helpers import kubeapi as bed
from tests.helpers.kubectl_server import needs_kubectl

pytestmark = needs_kubectl

LIMIT = 20.0
# Runs what it gets with a probe's main that prints its request: all packets arrive.
_PYTHON = """
call=$(grep '^main(')
[ -e "$HOME/fails" ] && { echo "no setns here" >&2; exit 1; }
[ -e "$HOME/babbles" ] && { echo "Last login: today"; exit 0; }
printf '%s\\n' "$call" >>"$HOME/requests"
{ echo 'import json
def main(request):
    well = {"tried": 1400, "arrived": 1400, "error": ""}
    paths = {other: well for other in request["others"]}
    services = {host: "" for host, _ in request["services"]}
    print(json.dumps({"paths": paths, "services": services}))
'; printf '%s\\n' "$call"; } | /usr/bin/env -i PATH=/usr/bin:/bin python3 -
"""


def node(name: str) -> Node:
    return Node(Role.WORKER, name, "192.0.2.1", "10.10.0.1", name=name)


M1, W1, W10, W2 = map(node, ("m1", "w1", "w10", "w2"))


@pytest.fixture
def network(site, sshd, log_in, session):
    sshd.program("python3", _PYTHON)

    def open_session(_: Node):
        return log_in()

    return PodNetwork(KubeClient(session), open_session, LIMIT, "registry.k8s.io/pause")


def left(site) -> list[str]:
    """What there is of the namespaces of pods, once their end is over."""

    def names() -> list[str]:
        items = site.kube.get("/api/v1/namespaces")["items"]
        found = [one["metadata"]["name"] for one in items]
        return [name for name in found if name.startswith("tacker-k8s-mgmt-")]

    deadline = time.monotonic() + 20
    while names() and time.monotonic() < deadline:
        time.sleep(0.1)
    return names()


def requests(sshd) -> list[dict]:
    lines = (sshd.home / "requests").read_text().splitlines()
    return [eval(line.removeprefix("main")) for line in lines]  # noqa: S307


def test_new_nodes_measure_with_the_hub_and_the_service(network, site, sshd):
    measured = {one.node: one for one in network.measure([W1, W2], W10)}
    assert list(measured) == ["w10", "w1", "w2"]
    (hub,) = measured["w10"].addresses
    (one,), (two,) = measured["w1"].addresses, measured["w2"].addresses
    assert measured["w10"].paths == {one: PodPath(1400, 1400), two: PodPath(1400, 1400)}
    assert list(measured["w1"].paths) == list(measured["w2"].paths) == [hub]
    assert measured["w10"].services == {}
    assert list(measured["w1"].services.values()) == [""]
    assert len({request["token"] for request in requests(sshd)}) == 1
    assert {request["limit"] for request in requests(sshd)} == {LIMIT}
    assert left(site) == []


def test_single_node_reaches_the_service_only(network):
    (alone,) = network.measure([M1], M1)
    assert alone.paths == {}
    assert len(alone.services) == 1


def test_pods_pass_the_restricted_admission_and_end_by_themselves(network):
    pods = []

    class Kubectl(KubeClient):
        def run(self, *args, stdin=None, **options):
            if "apply" in args:
                pods.extend(i for i in json.loads(stdin)["items"] if i["kind"] == "Pod")
            return super().run(*args, stdin=stdin, **options)

    network._client = Kubectl(network._client._session)
    network.measure([W1], M1)
    assert [pod["spec"]["nodeName"] for pod in pods] == ["m1", "w1"]
    for pod in pods:
        spec, (container,) = pod["spec"], pod["spec"]["containers"]
        assert spec["automountServiceAccountToken"] is False
        assert spec["tolerations"] == [{"operator": "Exists"}]
        assert spec["activeDeadlineSeconds"] > 3 * LIMIT
        # Kubernetes, "Pod Security Standards", restricted.
        assert spec["securityContext"]["runAsNonRoot"] is True
        assert spec["securityContext"]["seccompProfile"] == {"type": "RuntimeDefault"}
        own = container["securityContext"]
        assert own["allowPrivilegeEscalation"] is False
        assert own["capabilities"] == {"drop": ["ALL"]}
        assert container["image"] == "registry.k8s.io/pause:3.10"


@pytest.mark.parametrize(
    ("fault", "error", "text"),
    [
        ("fails", errors.CommandFailed, "no setns here"),
        ("babbles", errors.ClusterError, "could not be understood"),
    ],
)
def test_nothing_is_left_of_a_probe_that_fails(network, site, sshd, fault, error, text):
    (sshd.home / fault).touch()
    with pytest.raises(error, match=text) as caught:
        network.measure([W1], M1)
    assert "import" not in str(caught.value)
    assert left(site) == []


def test_what_a_killed_operation_has_left_goes_with_the_next(network, site):
    labels = {"tacker-k8s-mgmt/pod-network": "true"}
    name = "tacker-k8s-mgmt-pod-network-abcdef"
    metadata = {"name": name, "labels": labels}
    site.kube.apply({"apiVersion": "v1", "kind": "Namespace", "metadata": metadata})
    network.measure([W1], M1)
    assert left(site) == []


def test_pods_that_do_not_start_are_told_with_the_reason(network, site):
    network._limit = 2.0
    site.silence("w1")
    with pytest.raises(errors.ClusterError, match="do not start on w1 within 2 s") as e:
        network.measure([W1], M1)
    assert "network plugin" in str(e.value)


@pytest.mark.parametrize(
    ("names", "image"),
    [
        (["registry.k8s.io/pause@sha256:12", "registry.k8s.io/pause:3.10.1"], 1),
        (["10.0.0.1:5000/mirrored-pause:3.9"], None),
        (["quay.io/coredns:1", "registry.k8s.io/pause:3.1"], 1),
        (["registry.k8s.io/pauser:1", "registry.k8s.io/kube-proxy:v1.35.4"], None),
    ],
)
def test_image_is_what_the_nodes_report(network, site, names, image):
    for name in ("m1", "w1", "w10", "w2"):
        shown = names if name == "w1" else ["x:1"]
        reported = [{"names": shown, "sizeBytes": 320_368}]
        site.kube.request(
            "PATCH",
            f"/api/v1/nodes/{name}/status",
            {"status": {"images": reported}},
            content_type="application/merge-patch+json",
        )
    bed.wait_for(lambda: site.node("w1")["status"]["images"][0]["names"] == names)
    if image is None:
        network._limit = 1.0
        with pytest.raises(errors.ClusterError, match="No node reports a pause image"):
            network._images(["m1", "w1"])
        return
    assert network._images(["m1", "w1"]) == dict.fromkeys(("m1", "w1"), names[image])
