# SPDX-License-Identifier: Apache-2.0
"""The commands that heal what differs, complete, with the ids that Tacker takes."""

import enum
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

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
