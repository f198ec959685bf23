# SPDX-License-Identifier: Apache-2.0
"""The rows of the comparison for tenants."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import NamedTuple

from tacker_k8s_mgmt.model.nodes import Role
from tacker_k8s_mgmt.model.vim import Vim
from tacker_k8s_mgmt.request.reader import InstallParams
from tacker_k8s_mgmt.request.tenants import Tenant
from tacker_k8s_mgmt.status.columns import ABSENT, BLANK, UNKNOWN, differs
from tacker_k8s_mgmt.status.facts import Cell, Finding, Row, Source

_SEND_AGAIN = (
    "Modify the VNF instance again with k8s_tenants in its metadata, even an unchanged "
    "list."
)


@dataclass(frozen=True)
class TenantsReport:
    """The tenants, for ``tenant list``.

    :param tenants: those that are wanted.
    :param problems: of the metadata.
    :param failures: why a source could not be read.
    """

    rows: tuple[Row, ...]
    tenants: tuple[Tenant, ...]
    problems: tuple[str, ...]
    failures: Mapping[Source, str]

    @property
    def differs(self) -> bool:
        """Whether there is any difference."""
        found = any(True for row in self.rows for _ in row.findings)
        return bool(self.problems) or found


class Answers(NamedTuple):
    """What the sources report of tenants; None where one could not be read.

    :ivar tenants: what differs of each one in the cluster; None for one that is not
        there.
    :ivar vims: by the tenants' names; None also where Tacker keeps none.
    :ivar former_logins: those whose VIM has not their present token.
    """

    tenants: Mapping[str, tuple[str, ...] | None] | None
    vims: Mapping[str, Vim] | None
    former_logins: frozenset[str] | None


def rows(answers: Answers, params: InstallParams) -> Iterator[Row]:
    """A row for each tenant that is wanted or there."""
    wanted = {tenant.name for tenant in params.tenants}
    vims = answers.vims or {}
    for name in sorted({*wanted, *(answers.tenants or ()), *vims}):
        cells = {
            **dict.fromkeys(Source, BLANK),
            Source.CLUSTER: _in_cluster(name, name in wanted, answers),
        }
        if answers.vims is not None:
            is_former = name in (answers.former_logins or ())
            cells[Source.VIM] = _as_vim(vims.get(name), name in wanted, is_former)
        yield Row(f"tenant {name}", Role.CONTROL_PLANE, "", "", cells)


def _in_cluster(name: str, wanted: bool, answers: Answers) -> Cell:
    if answers.tenants is None:
        return UNKNOWN
    found = answers.tenants.get(name)
    if found is None:
        text = "it has no namespace of the driver's"
        return differs("-", text, _SEND_AGAIN) if wanted else ABSENT
    if not wanted:
        text = "it is in the cluster, and no request wants it any more"
        return differs("namespace", text, _SEND_AGAIN)
    return Cell("namespace", tuple(Finding(text, _SEND_AGAIN) for text in found))


def _as_vim(vim: Vim | None, wanted: bool, is_former: bool) -> Cell:
    if vim is None:
        return differs("-", "it has no VIM", _SEND_AGAIN) if wanted else ABSENT
    if not wanted:
        text = "it has a VIM, and no request wants it any more"
        return differs(vim.name, text, _SEND_AGAIN)
    if is_former:
        text = "its VIM has not the token of its account, so CNFs cannot use it"
        return differs(vim.name, text, _SEND_AGAIN)
    return Cell(vim.name)
