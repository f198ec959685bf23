# SPDX-License-Identifier: Apache-2.0
"""The tenants of the cluster: their objects, their VIMs, their rows, and their end.

What tenants there are is read from the cluster and from Tacker, so nothing else has to
be kept.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import NamedTuple

from oslo_log import log as logging

from tacker_k8s_mgmt import errors
from tacker_k8s_mgmt.features.tenants import tenant_objects
from tacker_k8s_mgmt.model.manifests import (
    Object,
    differing_paths,
    is_going,
    key,
    without,
)
from tacker_k8s_mgmt.model.nodes import Node, Role, same_server
from tacker_k8s_mgmt.model.plan import Difference
from tacker_k8s_mgmt.model.vim import ClusterAccess, Vim, VimSpec
from tacker_k8s_mgmt.operations import preconditions, readiness, registration
from tacker_k8s_mgmt.operations.cluster_check import ClusterInspection
from tacker_k8s_mgmt.operations.feature import Feature, Work
from tacker_k8s_mgmt.operations.state import ClusterState, NodeObjects, OperationContext
from tacker_k8s_mgmt.operations.step import Step
from tacker_k8s_mgmt.remote.kubernetes.owned_objects import Manifests
from tacker_k8s_mgmt.request.reader import TENANTS, ClusterRequest
from tacker_k8s_mgmt.request.tenants import Tenant
from tacker_k8s_mgmt.status.facts import (
    ABSENT,
    BLANK,
    UNKNOWN,
    Cell,
    Contribution,
    Finding,
    Remedy,
    Row,
    Source,
    differs,
)

_SEND_AGAIN = Remedy(
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


def rows(answers: Answers, params: ClusterRequest) -> Iterator[Row]:
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


LOG = logging.getLogger(__name__)

_APPLY_LIMIT = 120.0  # seconds, for the objects of one tenant
_DELETE_LIMIT = 300.0  # likewise; a namespace goes after all that is in it
_SELECTOR = "app.kubernetes.io/managed-by=tacker-k8s-mgmt"
_OWNER = "tacker-k8s-mgmt/owner"
# What goes with a tenant's namespace: configuration and rights, which have a meaning in
# it only. Anything else, of any kind, keeps the tenant.
_GOES_ALONG = frozenset(
    {
        *(("", kind) for kind in ("ConfigMap", "Secret", "ServiceAccount")),
        *(("rbac.authorization.k8s.io", kind) for kind in ("Role", "RoleBinding")),
        ("coordination.k8s.io", "Lease"),
    }
)
_SHOWN = 5


def _make(state: ClusterState) -> tuple[Step, ...]:
    return (
        Step(
            "create-tenants",
            "create the tenants' namespaces",
            lambda: apply(state),
            probe=lambda: is_applied(state),
            effects=lambda: _changed(state),
        ),
        Step(
            "register-tenant-vims",
            "register the tenants' VIMs",
            lambda: register(state),
            probe=lambda: are_registered(state),
            effects=lambda: _registered(state),
        ),
    )


def apply(state: ClusterState) -> None:
    """Make the objects of all tenants as wanted, and wait for the tokens."""
    manifests, tenants = state.manifests(), state.params.tenants
    if not tenants:
        return
    accounts, owner = tenant_objects.accounts(), tenant_objects.OF_ALL
    _wait_deleted(manifests, (accounts,))
    manifests.apply((accounts,), owner=owner, timeout=_APPLY_LIMIT)
    for tenant in tenants:
        owner = tenant_objects.owner(tenant.name)
        wanted = _wanted(manifests, tenant)
        _wait_deleted(manifests, wanted)
        manifests.apply(wanted, owner=owner, timeout=_APPLY_LIMIT)
        former = manifests.present(tenant_objects.unwanted(tenant))
        manifests.delete(former, _DELETE_LIMIT)

    def problem() -> str:
        lacking = [tenant for tenant in tenants if _access(state, tenant) is None]
        for tenant in lacking:
            # Again: the token controller deletes a Secret whose account it does not
            # know yet.
            token = tenant_objects.token(tenant.name)
            owner = tenant_objects.owner(tenant.name)
            manifests.apply((token,), owner=owner, timeout=_APPLY_LIMIT)
        return ", ".join(tenant.name for tenant in lacking)

    readiness.wait_until_healthy(
        state.deps,
        problem,
        "these tenants have no token: {left}.",
        "Look whether kube-controller-manager runs.",
    )


def _changed(state: ClusterState) -> Iterator[Difference]:
    """What :func:`apply` changes, for a plan."""
    manifests = state.manifests()
    there = known(manifests)
    for tenant in state.params.tenants:
        what = f"tenant {tenant.name}"
        if tenant.name not in there:
            yield Difference(what, None, "namespace with its rights and limits")
            continue
        for text in differences(manifests, tenant):
            yield Difference(what, text, "as wanted")
        if _access(state, tenant) is None:
            yield Difference(f"{what}: token", None, "a new one")


def _registered(state: ClusterState) -> Iterator[Difference]:
    """The VIMs that :func:`register` makes or changes, for a plan."""
    vims = state.site.vims.of_tenants() or {}
    url = state.endpoint()
    for tenant in state.params.tenants:
        former = vims.get(tenant.name)
        if former is None or not same_server(former.auth_url, url):
            before = f"{former.name} at {former.auth_url}" if former else None
            after = f"{vim_name(state.deps, tenant)} at {url}"
            yield Difference(f"tenant {tenant.name}: VIM", before, after)


def _removed(name: str) -> Difference:
    return Difference(f"tenant {name}", "namespace and VIM", None)


def _wait_deleted(manifests: Manifests, objects: Sequence[Object]) -> None:
    """Wait for the end of a removal that was cut off: what is applied ends with it."""
    present = manifests.present(objects)
    going = [one for one in present if is_going(one)]
    manifests.wait_gone(going, _DELETE_LIMIT)


def is_applied(state: ClusterState) -> bool:
    """Whether the objects of all tenants are as wanted, with their tokens."""
    manifests = state.manifests()
    return not any(
        list(differences(manifests, tenant)) or _access(state, tenant) is None
        for tenant in state.params.tenants
    )


def _wanted(manifests: Manifests, tenant: Tenant) -> tuple[Object, ...]:
    """The objects of a tenant, as far as this cluster can have them."""
    return tenant_objects.of(tenant, guarded=manifests.serves(*tenant_objects.POLICY))


def differences(manifests: Manifests, tenant: Tenant) -> Iterator[str]:
    """What the objects of a tenant differ in from what is wanted."""
    wanted = _wanted(manifests, tenant)
    present = {_key(one): one for one in manifests.present(wanted)}
    for one in wanted:
        actual = present.get(_key(one))
        if actual is None:
            yield f"{_title(one)} is missing"
            continue
        if is_going(actual):
            yield f"{_title(one)} is being deleted"
            continue
        for path in differing_paths(one, actual):
            yield f"{_title(one)} is otherwise in {path}"
    for former in manifests.present(tenant_objects.unwanted(tenant)):
        yield f"{_title(former)} is not wanted any more"


def objections(manifests: Manifests, tenant: Tenant) -> Sequence[str]:
    """What the API server has against the objects of a tenant; changes nothing."""
    wanted: Sequence[Object] = _wanted(manifests, tenant)
    if not manifests.present((tenant_objects.accounts(),)):
        # Before there is a first tenant, the namespace of the accounts is not there.
        others = (one for one in wanted if _key(one)[1] != tenant_objects.ACCOUNTS)
        wanted = tuple(others)
    return manifests.check(wanted, owner=tenant_objects.owner(tenant.name))


def register(state: ClusterState) -> None:
    """Register a VIM for each tenant at the cluster's current address."""
    for tenant in state.params.tenants:
        access = _access(state, tenant)
        if access is None:
            raise errors.ClusterError(detail=f"Tenant {tenant.name} has no token.")
        spec = VimSpec(
            name=vim_name(state.deps, tenant),
            auth_url=state.endpoint(),
            token=access.token,
            ca_certificate=access.ca_certificate,
            tenant=tenant.name,
        )
        state.site.vims.register(spec)


def are_registered(state: ClusterState) -> bool:
    """Whether each tenant has its VIM with its token, as far as Tacker keeps any."""
    vims, urls = state.site.vims.of_tenants(), registration.endpoints(state)
    return vims is None or all(
        tenant.name in vims
        and any(same_server(vims[tenant.name].auth_url, url) for url in urls)
        and (access := _access(state, tenant)) is not None
        and state.site.vims.has_login(tenant.name, access)
        for tenant in state.params.tenants
    )


def known(manifests: Manifests) -> frozenset[str]:
    """The names of the tenants that have something in the cluster."""
    found = (
        *manifests.get("namespaces", selector=_SELECTOR),
        *manifests.get("serviceaccounts", tenant_objects.ACCOUNTS, _SELECTOR),
    )
    owners = (one["metadata"]["labels"].get(_OWNER, "") for one in found)
    return frozenset(filter(None, map(tenant_objects.tenant_of, owners)))


class Tenants(Feature):
    """Tenants: namespaces with rights, limits and a VIM each."""

    def owns(self, entry: str) -> bool:
        return entry == TENANTS

    def precondition_problems(self, deps: OperationContext) -> Iterator[str]:
        """A problem for each VIM of a tenant that cannot have its name."""
        return _names_taken(deps)

    def report(self, survey: ClusterInspection) -> Contribution:
        """A row for each tenant that is wanted or there."""
        vims = survey.ask(Source.VIM, lambda: survey.view.vims.of_tenants())
        found, logins = survey.ask_cluster(partial(_reported, survey)) or (None, {})
        both = logins.keys() & (vims or {}).keys()
        has_login = survey.view.vims.has_login
        former = survey.ask(
            Source.VIM,
            lambda: frozenset(n for n in both if not has_login(n, logins[n])),
        )
        answers = Answers(found, vims, former)
        return Contribution(tuple(rows(answers, survey.params)))

    def work(self, state: ClusterState) -> Work:
        return TenantsWork(state)


def compare(survey: ClusterInspection) -> TenantsReport:
    """Compare the tenants only."""
    rows = tuple(Tenants().report(survey).rows)
    asked, failures = (Source.CLUSTER, Source.VIM), survey.failures
    unread = {s: failures[s] for s in failures if s in asked}
    params = survey.params
    return TenantsReport(rows, params.tenants, params.metadata_problems, unread)


def _reported(
    survey: ClusterInspection, plane: Node
) -> tuple[Mapping[str, tuple[str, ...] | None], Mapping[str, ClusterAccess]]:
    """What differs of each tenant that is wanted or there; logins with a token."""
    manifests, wanted = survey.view.manifests(plane), survey.params.tenants
    there = known(manifests)
    found = {
        tenant.name: tuple(differences(manifests, tenant))
        for tenant in wanted
        if tenant.name in there
    }
    lost = {tenant.name for tenant in wanted} - there
    tenants = {**dict.fromkeys(there, ()), **dict.fromkeys(lost), **found}
    logins = {name: access(manifests, name) for name in sorted(tenants)}
    return tenants, {name: login for name, login in logins.items() if login}


def _names_taken(deps: OperationContext) -> Iterator[str]:
    for tenant in deps.params.tenants:
        name = vim_name(deps, tenant)
        yield from preconditions.name_taken(deps, name, tenant.name)


def vim_name(deps: OperationContext, tenant: Tenant) -> str:
    """The name of a tenant's VIM: the request's, or one made of the cluster's."""
    cluster = preconditions.vim_name(deps.params, deps.vnf_id)
    return tenant.vim_name or f"{cluster}_{tenant.name}"


class TenantsWork(Work):
    """The tenants of a new cluster, at another address, and in a modification."""

    def __init__(self, state: ClusterState) -> None:
        super().__init__(state)
        self._leaving: tuple[str, ...] = ()

    def built(self) -> Sequence[Step]:
        """The steps that make them; none without tenants."""
        return _make(self._state) if self._state.params.tenants else ()

    def follow_api(self) -> None:
        """Register their VIMs at the cluster's address."""
        register(self._state)

    def follows_api(self) -> bool:
        """Whether each has its VIM there."""
        return are_registered(self._state)

    def inspect(self, seen: NodeObjects) -> None:
        """Find the tenants that are not wanted any more."""
        vims = self._state.site.vims.of_tenants() or {}
        there = known(self._state.manifests()) | vims.keys()
        wanted = {tenant.name for tenant in self._state.params.tenants}
        self._leaving = tuple(sorted(there - wanted))
        if self._leaving:
            LOG.info("These tenants are to leave: %s", ", ".join(self._leaving))

    def problems(self) -> Iterator[str]:
        """What the tenants cannot be, with the cluster and Tacker as they are."""
        state = self._state
        manifests = state.manifests()
        classes = {one["metadata"]["name"] for one in manifests.get("storageclasses")}
        yield from preconditions.names_taken(state.deps)
        yield from _names_taken(state.deps)
        yield from self._renamed()
        for tenant in state.params.tenants:
            for text in objections(manifests, tenant):
                yield f"tenant {tenant.name}: {text}"
            for storage in tenant.storage:
                if storage.name not in classes:
                    has = ", ".join(sorted(classes)) or "none"
                    yield (
                        f"tenant {tenant.name}: the cluster has no StorageClass "
                        f"{storage.name}; it has {has}"
                    )
        for name in self._leaving:
            yield from self._kept(name)

    def changes(self) -> Sequence[Step]:
        return (
            *_make(self._state),
            Step(
                "remove-tenant-vims",
                "remove VIMs of removed tenants",
                self._deregister,
                probe=lambda: not self._leaving,
            ),
            Step(
                "remove-tenants",
                "remove namespaces of removed tenants",
                self._remove,
                probe=lambda: not self._leaving,
                effects=lambda: (_removed(name) for name in self._leaving),
            ),
        )

    def _renamed(self) -> Iterator[str]:
        """A problem for each tenant whose VIM would need another name."""
        state = self._state
        vims = state.site.vims.of_tenants() or {}
        for tenant in state.params.tenants:
            name = vim_name(state.deps, tenant)
            present = vims[tenant.name].name if tenant.name in vims else name
            if present != name:
                yield (
                    f"tenant {tenant.name}: vim_name cannot change while the tenant is "
                    f"there; its VIM is {present!r}"
                )

    def _kept(self, name: str) -> Iterator[str]:
        """Why a tenant cannot leave."""
        if users := self._state.site.vims.users(name):
            yield (
                f"tenant {name} cannot leave: VNFs use its VIM ({', '.join(users)}); "
                "terminate and delete them first"
            )
        manifests = self._state.manifests()
        content = manifests.content(name)
        own = manifests.owned(tenant_objects.owner(name)).objects
        others = [
            one for one in without(content.objects, own) if key(one) not in _GOES_ALONG
        ]
        if others:
            yield (
                f"tenant {name} cannot leave: its namespace has {_listed(others)}; "
                "terminate its CNFs first, and delete what they leave"
            )
        if content.unlisted:
            yield (
                f"tenant {name} cannot leave: its namespace may have objects of kinds "
                f"that the API server cannot list: {content.unknown}; repair or delete "
                "their CustomResourceDefinition or APIService first"
            )

    def _deregister(self) -> None:
        problems = [text for name in self._leaving for text in self._kept(name)]
        if problems:
            # After the check, or in a rollback, which checks nothing.
            raise errors.ClusterError(detail=f"{'; '.join(problems)}.")
        for name in self._leaving:
            self._state.site.vims.remove_tenant(name)

    def _remove(self) -> None:
        manifests = self._state.manifests()
        for name in self._leaving:
            owned = manifests.owned(tenant_objects.owner(name)).objects
            # Accounts last: by them a tenant is found again after a failure.
            ordered = sorted(owned, key=lambda one: one["kind"] != "ServiceAccount")
            manifests.delete(ordered, _DELETE_LIMIT)
        if not self._state.params.tenants:
            manifests.delete((tenant_objects.accounts(),), _DELETE_LIMIT)


def access(manifests: Manifests, tenant: str) -> ClusterAccess | None:
    """The login of a tenant's account; None while it has no token."""
    secrets = manifests.present((tenant_objects.token(tenant),))
    return ClusterAccess.read(secrets[0]) if secrets else None


def _access(state: ClusterState, tenant: Tenant) -> ClusterAccess | None:
    return access(state.manifests(), tenant.name)


def _key(one: Object) -> tuple[str, str, str]:
    metadata = one["metadata"]
    return one["kind"], metadata.get("namespace", ""), metadata["name"]


def _title(one: Object) -> str:
    kind, namespace, name = _key(one)
    return f"{kind} {namespace}/{name}" if namespace else f"{kind} {name}"


def _listed(content: Sequence[Object]) -> str:
    names = [_title(one) for one in content[:_SHOWN]]
    more = len(content) - len(names)
    return ", ".join(names) + (f" and {more} more" if more > 0 else "")
