# SPDX-License-Identifier: Apache-2.0
"""The sources that know a cluster, what each reports, and the rows made of that.

Heat, the inventory on the Ansible server, the cluster's API, the load balancer and
Tacker's VIM registry are read independently of each other. A finding may have a command
that heals what differs: complete, with the ids that Tacker takes.
"""

import enum
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from tacker_k8s_mgmt.model.load_balancer import BalancerStatus
from tacker_k8s_mgmt.model.nodes import Count, Node, NodeObject, Role
from tacker_k8s_mgmt.model.vim import Vim
from tacker_k8s_mgmt.topology.heat_stack import Machines

#: Of openstack, for the v2 API.
_V2 = "--os-tacker-api-version 2"


class Heal(enum.Flag):
    """What a remedy heals."""

    #: The VNFC of the VM that the row is about.
    VNFC = enum.auto()
    #: The VNFC of the load balancer.
    BALANCER = enum.auto()
    #: The whole VNF.
    VNF = enum.auto()
    #: The VNFC of whichever node is healed next, for which there is no command.
    NEXT = enum.auto()


@dataclass(frozen=True)
class HealCommands:
    """The commands for one VNF instance.

    :param api: Tacker's, ``v1`` or ``v2``.
    :param vnfcs: the server of each VNFC, by the id that a heal request takes.
    """

    vnf_id: str = ""
    api: str = "v1"
    vnfcs: Mapping[str, str] = field(default_factory=dict)

    def of(self, heal: Heal | None, server_id: str, balancer_id: str) -> Iterator[str]:
        """The command lines.

        There is none for a VM that is no VNFC by Tacker's records.

        :param server_id: of the row's VM.
        :param balancer_id: of the load balancer's VM.
        """
        if heal is None or not self.vnf_id:
            return
        for part, server in ((Heal.VNFC, server_id), (Heal.BALANCER, balancer_id)):
            known = (vnfc for vnfc, place in self.vnfcs.items() if place == server)
            if part in heal and (vnfc := next(known, "")):
                yield self._line("--vnfc-instance", vnfc)
        if Heal.VNF in heal:
            yield self._line()

    def _line(self, *options: str) -> str:
        api = (_V2,) if self.api == "v2" else ()
        return " ".join(("openstack vnflcm heal", self.vnf_id, *options, *api))


class Source(enum.Enum):
    """A source, and its column in the report."""

    HEAT = "heat"
    INVENTORY = "inventory"
    CLUSTER = "cluster"
    BALANCER = "load_balancer"
    VIM = "vim"

    @property
    def title(self) -> str:
        """Its name in a sentence."""
        names = {"heat": "Heat", "vim": "VIM"}
        return names.get(self.value, self.value.replace("_", " "))


@dataclass(frozen=True)
class Answers:
    """What each source reports; None where it could not be read.

    :param inventory: empty where there is none.
    :param joined: ids of the servers recorded as full members; None: no record.
    :param balancer: None also for a cluster without a load balancer.
    :param vims: none or one.
    :param counts: of the groups of VMs.
    :param clocks: seconds by which the clocks of nodes are ahead, by their names.
    """

    machines: Machines | None = None
    inventory: tuple[Node, ...] | None = None
    joined: frozenset[str] | None = None
    nodes: tuple[NodeObject, ...] | None = None
    balancer: BalancerStatus | None = None
    vims: tuple[Vim, ...] | None = None
    counts: tuple[Count, ...] | None = None
    clocks: Mapping[str, float] | None = None


class Remedy(NamedTuple):
    """What the operator can do about a difference.

    :ivar heal: what it heals, or may.
    """

    text: str
    heal: Heal | None = None


@dataclass(frozen=True)
class Finding:
    """A difference.

    :param text: what differs, about the row that it belongs to.
    """

    text: str
    remedy: Remedy


@dataclass(frozen=True)
class Cell:
    """What one source reports of one row, in a word or two."""

    text: str
    findings: tuple[Finding, ...] = ()


UNKNOWN = Cell("?")
ABSENT = Cell("-")
#: The column has nothing to do with the row.
BLANK = Cell("")


def differs(text: str, what: str, remedy: Remedy) -> Cell:
    """A cell with one finding."""
    return Cell(text, (Finding(what, remedy),))


@dataclass(frozen=True)
class Row:
    """One VM, or what a source takes for one, a port of a CNF, or a tenant.

    :param server_id: of Heat, else of the inventory; "" if neither has it.
    :param address: in the cluster's network, likewise.
    """

    name: str
    role: Role
    server_id: str
    address: str
    cells: dict[Source, Cell]

    @property
    def findings(self) -> Iterator[Finding]:
        """All differences, column by column."""
        for cell in self.cells.values():
            yield from cell.findings


@dataclass(frozen=True)
class Contribution:
    """What a feature adds to the comparison.

    :param rows: of its own.
    :param findings: differences in the cluster's column of nodes, by their names.
    :param out_of_service: names of the nodes that are to be cordoned, without routes.
    """

    rows: Sequence[Row] = ()
    findings: Mapping[str, Sequence[Finding]] = field(default_factory=dict)
    out_of_service: Collection[str] = ()


@dataclass(frozen=True)
class ClusterComparison:
    """The comparison.

    :param sources: those of this cluster, in the order of the columns.
    :param failures: why a source could not be read.
    :param heals: the commands that heal.
    """

    rows: tuple[Row, ...]
    sources: tuple[Source, ...]
    failures: Mapping[Source, str]
    heals: HealCommands = field(default_factory=HealCommands)

    def commands(self, row: Row, finding: Finding) -> tuple[str, ...]:
        """The commands of a remedy."""
        balancers = (one for one in self.rows if one.role is Role.LOAD_BALANCER)
        balancer = next((one.server_id for one in balancers if one.server_id), "")
        return tuple(self.heals.of(finding.remedy.heal, row.server_id, balancer))

    @property
    def differs(self) -> bool:
        """Whether there is any difference."""
        return any(True for row in self.rows for _ in row.findings)
