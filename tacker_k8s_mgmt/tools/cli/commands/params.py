# SPDX-License-Identifier: Apache-2.0
"""``tacker-k8s-mgmt params check``: check parameters before they are sent."""

import argparse
import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from pydantic import BaseModel, SecretStr

from tacker_k8s_mgmt.model import network_plugins
from tacker_k8s_mgmt.request.profile_document import ResolvedProfile
from tacker_k8s_mgmt.request.reader import ClusterRequest
from tacker_k8s_mgmt.tools.cli import base, request_input
from tacker_k8s_mgmt.tools.cli.base import Outcome, Report
from tacker_k8s_mgmt.tools.cli.request_input import RESOLVED_LATER, CheckedRequest


class ParamsCheck(Report):
    """List every problem of a request, or how it is understood; never a secret."""

    examples = (
        "tacker-k8s-mgmt params check instantiate.json",
        "tacker-k8s-mgmt params check - --json <instantiate.json",
        "tacker-k8s-mgmt params check heal.json --stored instantiate.json",
    )

    def get_parser(self, prog_name: str) -> argparse.ArgumentParser:
        parser = super().get_parser(prog_name)
        request_input.add_request(parser)
        return parser

    def find(self, parsed_args: argparse.Namespace) -> Outcome:
        checked = request_input.read_request(parsed_args)
        params = checked.params
        entries = _entries(request_input.masked(params)) if params else []
        expansion = params.expansion if params else None

        def show() -> None:
            request_input.print_findings(checked)
            if entries:
                _summarise(entries, expansion)
            elif checked.absent:
                base.show(checked.absent)

        code = base.PROBLEMS if checked.problems else base.OK
        document = {
            **_document(checked, entries),
            "profile": request_input.document(expansion),
        }
        return Outcome(document, show, code)


@dataclass(frozen=True)
class _Entry:
    """One attribute as it is understood.

    :param is_secret: whether the value is a reference to a secret.
    """

    name: str
    value: Any
    is_default: bool
    is_secret: bool = False


def _summarise(entries: Sequence[_Entry], expansion: ResolvedProfile | None) -> None:
    if expansion:
        base.show(f"\nprofile {expansion.profile.name}: {expansion.profile.source}")
    base.show("\nUnderstood as:")
    width = max(len(entry.name) for entry in entries)
    for entry in entries:
        value, note = entry.value, ""
        if entry.is_secret:
            note = f"  ({RESOLVED_LATER})"
        elif value is None:
            value = "(not given)"
        elif entry.is_default:
            note = "  (default)"
        of_profile = request_input.note(expansion, entry.name)
        if of_profile and not entry.is_default:
            note = f"  ({of_profile})"
        text = value if isinstance(value, str) else json.dumps(value)
        base.show(f"  {entry.name:<{width}}  {text}{note}")


def _entries(shown: ClusterRequest) -> list[_Entry]:
    """Every attribute, with references in place of secrets."""
    references = {".".join(use.location): use.reference for use in shown.references}
    hidden = "ansible." if shown.operators_server else None
    return [
        _Entry(name, references[name].as_given(), is_default, is_secret=True)
        if name in references
        else _Entry(name, value, is_default)
        for name, value, is_default in _attributes(shown)
        if hidden is None or not name.startswith(hidden)
    ]


def _attributes(model: BaseModel, prefix: str = "") -> Iterator[tuple[str, Any, bool]]:
    """Dotted name, value, and whether it is the default; depth first."""
    for name, info in type(model).model_fields.items():
        if info.exclude:
            continue
        dotted = f"{prefix}{info.alias or name}"
        value = getattr(model, name)
        if isinstance(value, BaseModel):
            yield from _attributes(value, f"{dotted}.")
        elif isinstance(value, tuple) and value and isinstance(value[0], BaseModel):
            for number, item in enumerate(value):
                yield from _attributes(item, f"{dotted}.{number}.")
        else:
            yield dotted, _plain(value), name not in model.model_fields_set


def _plain(value: Any) -> Any:
    if isinstance(value, SecretStr):
        return value.get_secret_value()  # already masked
    if isinstance(value, network_plugins.Network):
        return str(value)
    return list(value) if isinstance(value, tuple) else value


def _document(checked: CheckedRequest, entries: Sequence[_Entry]) -> dict[str, Any]:
    return {
        "request": checked.name,
        "problems": checked.problems,
        "warnings": checked.warnings,
        "parameters": {entry.name: entry.value for entry in entries},
        "defaults": [entry.name for entry in entries if entry.is_default],
    }
