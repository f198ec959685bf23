# SPDX-License-Identifier: Apache-2.0
"""What the lab's Heat resources have in common; needs Heat, so only plugins import it.

Heat loads every module of ``plugin_dirs`` after its own resources and keeps the last
class registered for a type, so the plugins simply take the place of the real classes.
Property and attribute schemas are the real ones: templates are validated as a real
cloud's Heat does it.
"""

import json
import os
import subprocess
import tempfile
import time
import uuid
from collections.abc import Callable, Iterable, Mapping
from typing import Any

from heat.common import exception
from heat.engine import resource
from oslo_config import cfg
from oslo_log import log as logging

from lab.cloud import CloudError
from lab.cloud.addresses import Records
from lab.cloud.state import State

#: The properties of a resource; a row of a table of the records.
Properties = Mapping[str, Any]
Row = dict[str, Any]
LOG = logging.getLogger(__name__)
OUTPUT_TAIL = 500
# Heat asks once per second, most commands take a fraction of one.
PATIENCE = 0.8

cfg.CONF.register_opts(
    [
        cfg.StrOpt("state_dir", help="the cloud's state directory"),
        cfg.StrOpt(
            "host_command",
            default="/usr/bin/python3 -m lab.cloud",
            help="what makes hosts and networks: COMMAND create|delete|...",
        ),
    ],
    group="lab",
)


def state() -> State:
    """The cloud's records."""
    return State(cfg.CONF.lab.state_dir)


class HostCommand:
    """A run of the host command, polled by Heat.

    :param document: goes to its standard input as JSON.
    """

    def __init__(self, *arguments: str, document: Row | None = None) -> None:
        self._words = arguments
        self._output = tempfile.TemporaryFile()  # noqa: SIM115  open as long as we are
        with tempfile.TemporaryFile() as document_file:
            document_file.write(json.dumps(document).encode())
            document_file.seek(0)
            self._process = subprocess.Popen(
                [*cfg.CONF.lab.host_command.split(), *arguments],
                stdin=document_file,
                stdout=self._output,
                stderr=subprocess.STDOUT,
                env={**os.environ, "LAB_CLOUD_STATE": cfg.CONF.lab.state_dir},
            )
        LOG.info("Lab cloud: %s (process %d)", " ".join(arguments), self._process.pid)

    def finished(self) -> bool:
        """Whether it has ended; waits a little before it returns False.

        :raises CloudError: it failed; the text is the end of its output.
        """
        try:
            code = self._process.wait(PATIENCE)
        except subprocess.TimeoutExpired:
            return False
        if code:
            self._output.seek(0)
            said = self._output.read().decode(errors="replace").strip()
            reason = said[-OUTPUT_TAIL:] or f"exit code {code} and no output"
            raise CloudError(f"{' '.join(self._words)}: {reason}")
        return True

    def wait(self, limit: float) -> None:
        """Wait for the end.

        :param limit: in seconds.
        :raises CloudError: it failed or takes longer.
        """
        deadline = time.monotonic() + limit
        while not self.finished():
            if time.monotonic() > deadline:
                raise CloudError(f"{' '.join(self._words)}: not done in {limit} s")


def network_of(properties: Properties) -> str | None:
    """The network that properties refer to, under its new or its old name."""
    reference: str | None = properties.get("network") or properties.get("network_id")
    return reference


class LabResource(resource.Resource):
    """A resource that is a row in one table of the cloud's records."""

    # No client: the type is available with any service catalogue.
    default_client_name = None
    required_service_extension = None
    table = "other"

    def translation_rules(self, properties: Properties) -> list[Any]:
        """None: the real ones would ask Nova and Neutron for ids."""
        return []

    def display_name(self) -> str:
        """The name that the row gets."""
        return str(self.properties.get("name") or self.physical_resource_name())

    def depend_on_subnets(
        self, deps: Any, networks: Callable[[], Iterable[Any]]
    ) -> None:
        """As the real ones: a network's subnets come before what is plugged into it.

        :param networks: gives the references that this resource's properties have.
        """
        for other in self.stack.values():
            if not other.has_interface("OS::Neutron::Subnet"):
                continue
            try:
                if network_of(other.properties) in networks():
                    deps += (self, other)
            except (TypeError, ValueError):
                # Wrong properties are reported by validation, which comes later.
                continue

    def new_row(self, records: Records, row_id: str) -> Row:
        """The row of a new resource; the records are locked."""
        return {"id": row_id, "name": self.display_name()}

    def add_row(self) -> Row:
        """Make the row and with it the resource's id."""
        row_id = str(uuid.uuid4())
        with state().edit() as records:
            row = self.new_row(records, row_id)
            row["stack_id"], row["resource"] = self.stack.id, self.name
            records[self.table][row_id] = row
        self.resource_id_set(row_id)
        return row

    def remove_row(self) -> None:
        """Forget the row; it may be gone already."""
        with state().edit() as records:
            records[self.table].pop(self.resource_id, None)

    def handle_create(self) -> HostCommand | None:
        self.add_row()
        return None

    def handle_update(
        self, json_snippet: Any, tmpl_diff: Any, prop_diff: Properties
    ) -> HostCommand | None:
        with state().edit() as records:
            row = records[self.table][self.resource_id]
            row.update({key: prop_diff[key] for key in prop_diff if key in row})
        return None

    def handle_delete(self) -> HostCommand | None:
        if self.resource_id is not None:
            self.remove_row()
        return None

    def handle_check(self) -> None:
        self.shown()

    def row(self, records: Records) -> Row:
        """This resource's row.

        :raises EntityNotFound: it was removed.
        """
        try:
            return records[self.table][self.resource_id]
        except KeyError:
            raise exception.EntityNotFound(
                entity=self.type(), name=self.resource_id
            ) from None

    def shown(self) -> Row:
        """What the service would show: attributes are taken from it."""
        return dict(self.row(state().read()))

    def _resolve_any_attribute(self, name: str) -> Any:
        if self.resource_id is None:
            return None
        shown = self.shown()
        return shown if name == "show" else shown.get(name)

    def get_live_resource_data(self) -> Row:
        return self.shown()

    def parse_live_resource_data(
        self, resource_properties: Any, resource_data: Any
    ) -> Row:
        return {}


class CommandedResource(LabResource):
    """One that the host command makes, changes and removes.

    :cvar verbs: of the command: what makes it, what removes it.
    """

    verbs = ("", "")

    def handle_create(self) -> HostCommand:
        return HostCommand(self.verbs[0], document=self.add_row())

    def check_create_complete(self, command: HostCommand) -> bool:
        return command.finished()

    def check_update_complete(self, command: HostCommand | None) -> bool:
        return command is None or command.finished()

    def handle_delete(self) -> HostCommand | None:
        if self.resource_id is None:
            return None
        return HostCommand(self.verbs[1], self.resource_id)

    def check_delete_complete(self, command: HostCommand | None) -> bool:
        if command is None:
            return True
        done = command.finished()
        if done:
            self.remove_row()
        return done
