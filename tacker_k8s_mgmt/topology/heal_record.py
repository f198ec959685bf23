"""What the hooks of a heal leave for each other, and for whoever comes after a failure.

The file lies in the cluster's directory, since the hooks may run in different
conductors, and since the control plane that is built anew is not in the inventory
meanwhile: its names have to come back with it.
"""

import json
from dataclasses import dataclass, replace
from typing import Any

from tacker_k8s_mgmt.model.nodes import Node, Role

FILE_NAME = "healing.json"
_NAMES = ("name", "server_id", "ssh_address", "address", "etcd_member_name")


@dataclass(frozen=True)
class Healing:
    """The heal that is under way, or that was given up.

    :param rebuilt: names of the nodes that Heat builds anew.
    :param not_ready: of the nodes that were not Ready for a reason of their own.
    :param plane: the control plane that is taken out, until it has joined again.
    :param first: it is the first one of its groups in kubespray's eyes, which another
        one has to become.
    """

    rebuilt: tuple[str, ...] = ()
    not_ready: tuple[str, ...] = ()
    plane: Node | None = None
    first: bool = False

    def ended(self) -> "Healing":
        """What is kept when the heal has ended: a control plane that is still out."""
        return replace(self, rebuilt=(), not_ready=())

    def text(self) -> str:
        """As it is written."""
        told: dict[str, Any] = {}
        if self.rebuilt or self.not_ready:
            told |= {"rebuilt": self.rebuilt, "not_ready": self.not_ready}
        if self.plane is not None:
            names = {name: getattr(self.plane, name) for name in _NAMES}
            told["control_plane"] = {**names, "first": self.first}
        return json.dumps(told, indent=2) + "\n"


def parse(text: str | None) -> Healing:
    """What :meth:`Healing.text` has written; an empty one where nothing was."""
    told = json.loads(text or "{}")
    plane = told.get("control_plane")
    return Healing(
        rebuilt=tuple(told.get("rebuilt", ())),
        not_ready=tuple(told.get("not_ready", ())),
        plane=(
            Node(role=Role.CONTROL_PLANE, **{name: plane[name] for name in _NAMES})
            if plane
            else None
        ),
        first=bool(plane and plane["first"]),
    )
