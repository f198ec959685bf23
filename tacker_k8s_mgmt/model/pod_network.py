# SPDX-License-Identifier: Apache-2.0
"""What pods on several nodes measured of the pod network, and what that means."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from tacker_k8s_mgmt import errors
from tacker_k8s_mgmt.model import network_plugins

_CARRIERS = {
    "vxlan": "VXLAN (calico: UDP 4789; cilium, flannel: UDP 8472; weave: UDP 6784)",
    "geneve": "Geneve (UDP 6081)",
    "ipip": "IP in IP (protocol 4)",
}
_NO_CARRIER = (
    "Without encapsulation the VMs' network carries packets with addresses of pods: "
    "give the VMs' ports allowed_address_pairs with the pods' network "
    "(kube_pods_subnet), or turn their port security off, and have their security "
    "groups admit the addresses of pods, not only members of the groups."
)
_CARRIER = (
    "With encapsulation the nodes exchange packets of pods in {carrier}: have the "
    "security groups of the VMs admit it between all nodes."
)
_MTU = (
    "The network between the VMs takes smaller packets than the MTU of their "
    "interfaces, from which that of pods follows: give the interfaces the MTU that the "
    "network really has. Or instantiate with cluster.network.mtu {mtu}, where the "
    "plugin takes it."
)
_SERVICE = (
    "Look at the logs of kube-proxy and of the network plugin on the nodes that do "
    "not reach the API's Service."
)


@dataclass(frozen=True)
class Path:
    """What a pod measured of another one.

    :param tried: the pod's MTU on the way there, bytes; 0: it has no route.
    :param arrived: size of the largest packet that arrived from there, bytes.
    :param error: why the last packet could not be sent; "" if it could.
    """

    tried: int
    arrived: int
    error: str = ""


@dataclass(frozen=True)
class Measurement:
    """What the pod on one node measured.

    :param node: the node's name.
    :param addresses: of the pod, one per address family.
    :param paths: by the address of the other pod.
    :param services: by address of the API's Service, why it was not reached, or "".
    """

    node: str
    addresses: tuple[str, ...]
    paths: Mapping[str, Path] = field(hash=False)
    services: Mapping[str, str] = field(hash=False)


def check(measured: Sequence[Measurement], encapsulation: str) -> None:
    """Check that everything arrived.

    :param encapsulation: of packets between nodes; "" if it is not known.
    :raises PodNetworkError: with what did not, the likely cause and its remedy.
    """
    lost, cut = [], []
    sizes = set()
    for source, target, sent, arrived in _directions(measured):
        way = f"from a pod on {source.node} to one on {target.node}"
        if not sent.tried:
            lost.append(f"{way} no packet can be sent ({sent.error})")
        elif not arrived:
            reason = f" ({sent.error})" if sent.error else ""
            lost.append(f"{way} no UDP packet, small or large, arrives{reason}")
        elif arrived < sent.tried:
            sizes.add(arrived)
            cut.append(
                f"{way} packets of {arrived} bytes arrive, but with DF set none of "
                f"{sent.tried} bytes, the MTU of the pod"
            )
    unreached = [
        f"from a pod on {one.node} the API's Service {address} cannot be reached over "
        f"TCP ({reason})"
        for one in measured
        for address, reason in one.services.items()
        if reason
    ]
    if not lost + cut + unreached:
        return
    hints = []
    if lost:
        if encapsulation != network_plugins.NO_ENCAPSULATION:
            known = _CARRIERS.get(encapsulation)
            hints.append(_CARRIER.format(carrier=known or "packets of their own"))
        if encapsulation not in _CARRIERS:
            hints.append(_NO_CARRIER)
    if cut:
        hints.append(_MTU.format(mtu=min(sizes)))
    if unreached:
        hints.append(_SERVICE)
    raise errors.PodNetworkError([*lost, *cut, *unreached], hint=" ".join(hints))


def _directions(
    measured: Iterable[Measurement],
) -> Iterator[tuple[Measurement, Measurement, Path, int]]:
    """Source, target, the source's path to it, and the size that arrived there."""
    holders = {address: one for one in measured for address in one.addresses}
    for address, source in holders.items():
        for other, path in source.paths.items():
            if (":" in address) is (":" in other):
                target = holders[other]
                yield source, target, path, target.paths[address].arrived
