# SPDX-License-Identifier: Apache-2.0
"""What is to be run for which purpose: playbooks, limits and extra variables.

Each function returns the request for one run. *inputs* are the texts of inventory and
variables that it depends on (:class:`.PlaybookRequest`).
"""

from collections.abc import Collection, Iterable, Sequence
from typing import Any

from tacker_k8s_mgmt.model.nodes import ROLES, Node, api_url, member_number
from tacker_k8s_mgmt.model.playbooks import PlaybookRequest
from tacker_k8s_mgmt.request.drain_policy import DrainPolicy

#: Playbooks, relative to ``kubespray_root_path``. From v2.29 on, those with a hyphen
#: have twins with an underscore.
INSTALL = "cluster.yml"
JOIN_CONTROL_PLANES = INSTALL
RENEW_CERTIFICATES = INSTALL
JOIN = "scale.yml"
REMOVE = "remove-node.yml"
FACTS = "playbooks/facts.yml"
UPGRADE = "upgrade-cluster.yml"
#: Those that download what nodes need.
DOWNLOADING = (INSTALL, JOIN, UPGRADE)

_PEER_PORT = 2380

_Inputs = tuple[str, ...]


def install(inputs: _Inputs) -> PlaybookRequest:
    """The run that makes a cluster of all nodes of the inventory."""
    return PlaybookRequest(INSTALL, inputs=inputs)


def facts(without: Iterable[str], inputs: _Inputs = ()) -> PlaybookRequest:
    """The run that gathers the facts of all hosts for the cache.

    :param without: names of the nodes that accept no SSH login.
    """
    return PlaybookRequest(FACTS, limit=_all_without(without), inputs=inputs)


def join(nodes: Sequence[Node], inputs: _Inputs, leader: str = "") -> PlaybookRequest:
    """The run with which these nodes, no control planes, join the cluster.

    :param leader: name of the first of several control planes, if it makes certificates
        of etcd for the workers (:func:`.variables.give_workers_etcd`). It has the
        script for that only if it has been the first one among the hosts of a run.
    """
    names = (*(node.name for node in nodes), leader)
    limit = ",".join(filter(None, names))
    scaled = all(ROLES[node.role].joins_by_scale for node in nodes)
    return PlaybookRequest(JOIN if scaled else INSTALL, limit=limit, inputs=inputs)


def join_control_planes(
    members: Iterable[Node], inputs: _Inputs, *, without: Iterable[str] = ()
) -> PlaybookRequest:
    """The run for the control planes in the inventory's order, with which one may join.

    :param members: the control planes that are or become members of etcd.
    :param without: names of those that accept no SSH login.
    """
    return PlaybookRequest(
        JOIN_CONTROL_PLANES,
        extra_vars=_member_variables(members),
        limit=_control_planes(without),
        inputs=inputs,
    )


def renew_certificates(inputs: _Inputs) -> PlaybookRequest:
    """The run that issues the certificates of the API servers for other addresses."""
    return PlaybookRequest(RENEW_CERTIFICATES, limit=_control_planes(), inputs=inputs)


def remove(
    names: Sequence[str],
    drain: DrainPolicy,
    *,
    dead: bool = False,
    undrained: bool = False,
    without: Iterable[str] = (),
) -> PlaybookRequest:
    """The run that removes nodes from the cluster.

    Source: kubespray's docs/operations/nodes.md, "Removing nodes". Newer releases need
    one of the two confirmations, older ones the other.

    :param names: the nodes' names.
    :param drain: kubespray drains once more.
    :param dead: the hosts do not accept logins.
    :param undrained: some pods could not leave; kubespray's own drain may fail too.
    :param without: names of other nodes that accept no SSH login.
    """
    variables: dict[str, Any] = {
        "node": ",".join(names),
        "skip_confirmation": True,
        "delete_nodes_confirmation": "yes",
        **drain.removal_variables(ungraceful=dead or undrained),
    }
    if dead:
        variables["reset_nodes"] = False
    if dead or undrained:
        variables["allow_ungraceful_removal"] = True
    limit = _all_without(() if dead else without)
    return PlaybookRequest(REMOVE, extra_vars=variables, limit=limit)


def upgrade(
    drain: DrainPolicy, inputs: _Inputs, batch: Collection[str] = ()
) -> PlaybookRequest:
    """The run that upgrades a batch of workers; without one, the control planes.

    kubespray drains a node that is Ready and not cordoned, and uncordons it afterwards.

    :param drain: for the control planes, which kubespray drains.
    :param batch: names of cordoned and drained workers, which are upgraded at once.
    """
    variables: dict[str, Any] = {
        "drain_nodes": True,
        **drain.upgrade_variables(),
        "upgrade_node_always_cordon": False,
        "upgrade_node_fail_if_drain_fails": True,
        "upgrade_node_uncordon_after_drain_failure": True,
        # Do not prompt.
        "upgrade_node_confirm": False,
        "upgrade_node_post_upgrade_confirm": False,
        **({"serial": len(batch)} if batch else {}),
    }
    limit = ",".join(batch) or _control_planes()
    return PlaybookRequest(UPGRADE, extra_vars=variables, limit=limit, inputs=inputs)


def configured(request: PlaybookRequest, nodes: Iterable[Node]) -> tuple[Node, ...]:
    """The nodes whose container engine a run configures.

    :param nodes: of the inventory.
    """
    if request.playbook not in DOWNLOADING:
        return ()
    names = request.limit.split(",") if request.limit else ["k8s_cluster"]

    def is_meant(node: Node) -> bool:
        is_plane = node.is_control_plane
        groups = {"k8s_cluster", *(["kube_control_plane"] if is_plane else [])}
        return f"!{node.name}" not in names and not {node.name, *groups}.isdisjoint(
            names
        )

    return tuple(filter(is_meant, nodes))


def _all_without(names: Iterable[str]) -> str:
    """The limit that excludes hosts from a run; "" without hosts.

    In a play that gathers all hosts' facts, an unreachable host would fail the others.
    Some plays run on ``localhost``, which ``all`` does not include.
    """
    excluded = [f"!{name}" for name in names]
    return ":".join(["all", "localhost", *excluded]) if excluded else ""


def _control_planes(without: Iterable[str] = ()) -> str:
    """The limit of a run for the control planes, without these hosts.

    Source: kubespray's docs/operations/nodes.md, "Adding an etcd node".
    """
    return ",".join(["etcd", "kube_control_plane", *(f"!{name}" for name in without)])


def _member_variables(planes: Iterable[Node]) -> dict[str, Any]:
    """Extra variables of ``cluster.yml`` that pin etcd's members.

    By default, ``roles/etcd/tasks/join_etcd_member.yml`` of all releases names the
    other members ``etcd1``, ``etcd2``, ... by position in the group. With a joining
    member's own name among them, etcd does not start. Another order than before would
    restart all members at once, so they are in the original order, by number.
    """
    members = sorted(planes, key=lambda n: (member_number(n), n.etcd_member_name))
    pairs = (f"{n.etcd_member_name}={api_url(n.address, _PEER_PORT)}" for n in members)
    return {"etcd_retries": 10, "etcd_peer_addresses": ",".join(pairs)}
