# SPDX-License-Identifier: Apache-2.0
"""What the measurements of pods mean."""

import pytest

from tacker_k8s_mgmt import errors
from tacker_k8s_mgmt.features.pod_network.measurement import Measurement, PodPath, check

HUB, W1, W2 = ("10.233.1.1", "fd00::1"), ("10.233.2.1", "fd00::2"), ("10.233.3.1",)
API = "10.233.0.1"


def measured(changes=None, services=None, errors_=None):
    """A hub and two workers; all is well but what the test changes.

    :param changes: what arrived, by address of source and target.
    """
    holders = {"hub": HUB, "w1": W1, "w2": W2}
    result = []
    for name, own in holders.items():
        others = [*W1, *W2] if name == "hub" else HUB
        paths = {}
        for other in others:
            here = next((a for a in own if (":" in a) is (":" in other)), None)
            if here:
                arrived = (changes or {}).get((other, here), 1450)
                error = (errors_ or {}).get((here, other), "")
                paths[other] = PodPath(0 if error else 1450, arrived, error)
        result.append(
            Measurement(name, own, paths, {API: (services or {}).get(name, "")})
        )
    return result


def test_nothing_to_say_when_everything_arrives():
    check(measured(), "vxlan")


def problems(encapsulation="vxlan", **changes) -> tuple[tuple[str, ...], str]:
    with pytest.raises(errors.PodNetworkError) as caught:
        check(measured(**changes), encapsulation)
    return caught.value.problems, caught.value.hint


def test_direction_that_is_lost_is_named_and_the_other_is_not():
    found, hint = problems(changes={(W1[0], HUB[0]): 0})
    assert found == (
        "from a pod on w1 to one on hub no UDP packet, small or large, arrives",
    )
    assert "VXLAN" in hint
    assert "port security" not in hint
    assert "mtu" not in hint


def test_port_security_is_named_without_encapsulation():
    _, hint = problems("none", changes={(HUB[0], W2[0]): 0})
    assert "allowed_address_pairs" in hint
    assert "VXLAN" not in hint


def test_size_that_works_is_named_and_the_least_is_what_to_set():
    changes = {(HUB[0], W1[0]): 1400, (W2[0], HUB[0]): 1380}
    found, hint = problems(changes=changes)
    assert found == (
        "from a pod on hub to one on w1 packets of 1400 bytes arrive, but with DF set "
        "none of 1450 bytes, the MTU of the pod",
        "from a pod on w2 to one on hub packets of 1380 bytes arrive, but with DF set "
        "none of 1450 bytes, the MTU of the pod",
    )
    assert "cluster.network.mtu 1380" in hint
    assert "VXLAN" not in hint


def test_one_family_alone_is_a_problem():
    found, _ = problems(changes={(W1[1], HUB[1]): 0})
    assert found == (
        "from a pod on w1 to one on hub no UDP packet, small or large, arrives",
    )


def test_missing_route_is_named_with_the_kernels_reason():
    found, _ = problems(errors_={(W1[0], HUB[0]): "Network is unreachable"})
    assert found == (
        "from a pod on w1 to one on hub no packet can be sent (Network is unreachable)",
    )


def test_service_and_path_are_both_told():
    changes, services = {(HUB[0], W1[0]): 0}, {"w1": "timed out"}
    found, hint = problems(changes=changes, services=services)
    assert found[1] == (
        f"from a pod on w1 the API's Service {API} cannot be reached over TCP "
        "(timed out)"
    )
    assert "kube-proxy" in hint
    assert "VXLAN" in hint
