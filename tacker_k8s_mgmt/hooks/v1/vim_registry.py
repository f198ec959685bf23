# SPDX-License-Identifier: Apache-2.0
"""The cluster as a Kubernetes VIM in Tacker's registry (v1 API), with its logins.

The cluster's VIM is identified by its id in the VNF instance's metadata or, if an
operation was interrupted before that was saved, by the mark in its description. Never
by its name: another project, or another VNF, may use the same one.

Tacker keeps the key of a VIM's login in Barbican, and reads the login for each
operation of a CNF. Its plugin refuses to change a VIM that a VNF uses
(``NfvoPlugin._get_vim``). The CNFs on a cluster need the login that it has now, so
:func:`update` leaves that check out.

The VIM also has the login with which Tacker's v1 API runs Helm
(``tacker/vnfm/infra_drivers/kubernetes/kubernetes_driver.py``, ``_get_helm_info``).
"""

import re
import secrets
from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import datetime
from functools import partial
from itertools import chain
from typing import Any, TypeVar

from oslo_log import log as logging
from pydantic import SecretStr
from tacker import manager, objects
from tacker.common import exceptions
from tacker.db.vnfm import vnfm_db
from tacker.extensions import nfvo
from tacker.plugins.common import constants
from tacker.vnfm import vim_client

from tacker_k8s_mgmt import errors
from tacker_k8s_mgmt.hooks.v1 import database, instance
from tacker_k8s_mgmt.hooks.v1.instance import VIM_TYPE, V1Instance
from tacker_k8s_mgmt.model.nodes import same_server
from tacker_k8s_mgmt.model.vim import (
    HELM_ADDRESSES,
    HELM_INFO,
    HELM_PASSWORD,
    HELM_USERNAME,
    USER,
    ClusterAccess,
    ClusterIdentity,
    Vim,
    VimSpec,
)
from tacker_k8s_mgmt.remote.kubernetes import api_login
from tacker_k8s_mgmt.text import Redactor

LOG = logging.getLogger(__name__)

_TOKEN, _CA = "bearer_token", "ssl_ca_cert"


def of(access: ClusterAccess) -> dict[str, Any]:
    """The attribute ``auth_cred`` of a VIM; a change of it has to name both."""
    return {_TOKEN: access.token.get_secret_value(), _CA: access.ca_certificate}


def is_current(context: Any, vim_id: str, access: ClusterAccess) -> bool:
    """Whether a VIM has this login; False also where its own cannot be read."""
    try:
        found = vim_client.VimClient().get_vim(context, vim_id)["vim_auth"]
    except Exception as error:
        # Barbican, its client and Tacker raise many kinds; a text may have the login.
        name = type(error).__name__
        LOG.warning("The login of VIM %s cannot be read: %s", vim_id, name)
        return False
    return {name: found.get(name) for name in (_TOKEN, _CA)} == of(access)


def read(context: Any, vim_id: str) -> ClusterAccess:
    """The login of a VIM.

    :raises VimError: it cannot be read.
    """
    try:
        found = vim_client.VimClient().get_vim(context, vim_id)["vim_auth"]
        return ClusterAccess(SecretStr(str(found[_TOKEN])), str(found[_CA]))
    except Exception as error:
        # As above.
        raise errors.VimError(
            detail=f"The login of VIM {vim_id} cannot be read from Tacker "
            f"({type(error).__name__})."
        ) from None


def update(plugin: Any, context: Any, vim_id: str, change: Mapping[str, Any]) -> None:
    """Change a VIM with Tacker's plugin, also while VNFs use it.

    :param plugin: Tacker's ``NfvoPlugin``.
    :param change: attributes of the VIM, merged into those that it has.
    """

    class Updater(type(plugin)):  # type: ignore[misc]
        """The plugin, for which no VIM is in use."""

        def is_vim_still_in_use(self, context: Any, vim_id: str) -> None:
            """None: it is not asked for."""

    updater = object.__new__(Updater)
    updater.__dict__.update(vars(plugin))
    updater.update_vim(context, vim_id, {"vim": dict(change)})


def missing(vim: Mapping[str, Any], spec: VimSpec) -> dict[str, Any]:
    """What ``extra`` of a VIM lacks; an operator's login for Helm stays there."""
    extra = vim.get("extra") or {}
    is_foreign = HELM_INFO in extra and ours(vim) is None
    return {
        name: value
        for name, value in spec.extra.items()
        if extra.get(name) != value and not (is_foreign and name == HELM_INFO)
    }


def ours(vim: Mapping[str, Any]) -> dict[str, Any] | None:
    """The driver's login; an operator may have put another one there."""
    info = (vim.get("extra") or {}).get(HELM_INFO)
    is_ours = isinstance(info, dict) and info.get(HELM_USERNAME) == USER
    return info if is_ours else None


def _users(context: Any, vim_id: str) -> tuple[str, ...]:
    """The names of the VNFs for which Tacker keeps a VIM; their ids without a name."""
    rows = context.session.query(vnfm_db.VNF.name, vnfm_db.VNF.id)
    # The rows of VNFs that were deleted stay, with another date.
    present = rows.filter_by(vim_id=vim_id, deleted_at=datetime.min)
    return tuple(str(name or id_) for name, id_ in present)


# Seconds for Tacker, Barbican and the cluster's API, which Tacker asks without a limit.
_LIMIT = 180.0

T = TypeVar("T")


# Begins the description of a cluster's VIM; the id of its VNF instance follows.
_MARK = "Kubernetes cluster of VNF instance "
# Comes before it in that of a tenant's VIM, with the tenant's name.
_TENANT = "Tenant {} of "


def _plugin() -> Any:
    return manager.TackerManager.get_service_plugins()[constants.NFVO]


def all_vims(context: Any) -> dict[str, dict[str, Any]]:
    """Every VIM in the registry, by its id.

    :param context: of an administrator.
    """
    return {str(vim["id"]): dict(vim) for vim in _plugin().get_vims(context)}


def registered(context: Any) -> Iterator[tuple[str, str]]:
    """The clusters in the registry, of all projects.

    :param context: of an administrator.
    :returns: id of each one's VNF instance, and URL of its API.
    """
    objects.register_all()
    for vim in _plugin().get_vims(context):
        mark, _, vnf_id = str(vim.get("description") or "").rpartition(" ")
        if vim["type"] != VIM_TYPE or f"{mark} " != _MARK:
            continue
        try:
            known = instance.find(context, vnf_id)
        except exceptions.VnfInstanceNotFound:
            continue
        # Any project may use this description; the VIM's id is that of the driver.
        if known.vim_id == vim["id"]:
            yield vnf_id, str(vim["auth_url"])


def project_of(context: Any, vnf_id: str) -> str:
    """The project of a VNF instance.

    :param context: of an administrator.
    """
    return instance.find(context, vnf_id).project


def identity(context: Any, vnf_id: str) -> ClusterIdentity | None:
    """Which cluster a VNF instance is, by the login of its VIM.

    :param context: of an administrator.
    :returns: None if its VIM is not one that the driver can have made. Users of the v1
        API can give a VIM the driver's mark, and name it in metadata.
    :raises VimError: Tacker does not tell the login.
    :raises RemoteError: the cluster does not answer.
    """
    vim_id = instance.find(context, vnf_id).vim_id
    url = str(all_vims(context)[vim_id]["auth_url"])
    access = read(context, vim_id)
    entry = {
        "interfaceInfo": {"endpoint": url, "ssl_ca_cert": access.ca_certificate},
        "accessInfo": {"bearer_token": access.token.get_secret_value()},
    }
    return api_login.identify(entry)


class VimRegistry:
    """The entry of one VNF instance's cluster in Tacker's registry."""

    def __init__(self, instance: V1Instance) -> None:
        self._instance = instance
        self._plugin = _plugin()
        self._mark = f"{_MARK}{instance.vnf_id}"

    def name_taken(self, name: str, tenant: str = "") -> bool:
        """Whether a VIM in this project that is not this one has this *name*.

        :param tenant: whose VIM is meant; "" for the cluster's.
        """
        own = self._find(tenant)
        return any(
            vim["name"] == name and vim["id"] != own
            for vim in self._ask(self._plugin.get_vims)
            if vim["tenant_id"] == self._instance.project
        )

    def helm_password(self) -> SecretStr:
        """The password of Tacker's login for Helm: the registered one, or a new one.

        A CNF keeps a copy of it, so it never changes while there is the VIM.
        """
        vim = self._ask(self._look) or {}
        if info := ours(vim):
            return SecretStr(info[HELM_PASSWORD])
        return SecretStr(secrets.token_urlsafe(24))

    def register(self, spec: VimSpec) -> str:
        """Get or create the VIM, and name it in the VNF instance.

        A VIM with another address, or with a login for Helm that this cluster has not,
        is that of a former cluster, and is replaced. At the same address there may have
        been another cluster, too: the VIM gets the present token and certificate, even
        while it is in use. The instance is saved at once, so that a later failure
        cannot lose the id. That of a tenant is found by its description alone, and not
        named in the VNF instance.

        :returns: the VIM's id.
        :raises VimError: Tacker refused, e.g. it cannot reach the API.
        """
        former = self._ask(partial(self._look, tenant=spec.tenant))
        if former and (
            not same_server(former["auth_url"], spec.auth_url)
            or (ours(former) and spec.helm is None)
        ):
            self._remove(spec.tenant)
        try:
            vim_id = self._ask(partial(self._create, spec), _LIMIT)
        except Exception as exc:
            # Not chained: Tacker logs the chain, and the client's error may quote the
            # token.
            known = [spec.token, *([spec.helm.password] if spec.helm else [])]
            reason = Redactor(one.get_secret_value() for one in known)(str(exc))
            raise errors.VimError(
                detail=f"Tacker did not register the cluster at {spec.auth_url} as VIM "
                f"{spec.name!r}: {reason}",
                hint="The conductor must reach that address and [k8s_vim] use_barbican "
                "must be True.",
            ) from None
        if not spec.tenant:
            self._instance.remember_vim(vim_id, spec.auth_url)
        return vim_id

    def update_helm_hosts(self, hosts: Sequence[str]) -> bool:
        """Write the addresses at which Tacker logs in for Helm, used or not.

        :returns: whether they were others.
        :raises VimError: Tacker refused.
        """
        try:
            return self._ask(partial(self._update_helm_hosts, list(hosts)), _LIMIT)
        except Exception as exc:
            # The text may have the VIM, and so the password.
            raise errors.VimError(
                detail="Tacker did not write the control planes' addresses into "
                f"extra.{HELM_INFO} of the cluster's VIM ({type(exc).__name__})."
            ) from None

    def users(self, tenant: str | None = None) -> tuple[str, ...]:
        """The VNFs that run on the cluster, by their names.

        Tacker's ``NfvoPlugin.delete_vim`` refuses then, even for a terminated VNF that
        has not been deleted.

        :param tenant: of whose VIM that is asked; None: of the cluster's and of all.
        """
        if tenant is None:
            every = map(self.users, ("", *self.of_tenants()))
            return tuple(dict.fromkeys(chain.from_iterable(every)))
        vim_id = self._find(tenant)
        if vim_id is None:
            return ()
        try:
            self._ask(lambda own: self._plugin.is_vim_still_in_use(own, vim_id))
        except nfvo.VimInUseException:
            return self._ask(partial(_users, vim_id=vim_id)) or ("another VNF",)
        return ()

    def remove(self) -> bool:
        """Remove the VIMs from the registry and from the VNF instance.

        :returns: False when the cluster had none.
        :raises VimError: one is still used.
        """
        for tenant in self.of_tenants():
            self.remove_tenant(tenant)
        return self._remove("")

    def remove_tenant(self, tenant: str) -> None:
        """Remove a tenant's VIM, if there is one.

        :raises VimError: it is still used.
        """
        self._remove(tenant)

    def _remove(self, tenant: str) -> bool:
        vim_id = self._find(tenant)
        if vim_id is not None:
            whose = f"tenant {tenant}" if tenant else "the cluster"
            try:
                self._ask(partial(self._delete, tenant), _LIMIT)
            except nfvo.VimInUseException:
                raise errors.VimError(
                    detail=f"The VIM {vim_id} of {whose} is still used by "
                    f"{', '.join(self.users(tenant))}.",
                    hint="Terminate and delete the VNFs that run on it.",
                ) from None
            except Exception as exc:
                raise errors.VimError(
                    detail=f"Tacker did not delete the VIM {vim_id}: {exc}"
                ) from exc
        if not tenant:
            self._instance.forget_vim()
        return vim_id is not None

    def registered(self) -> tuple[Vim, ...]:
        """The cluster's VIM, if there is one. Changes nothing."""
        vim = self._ask(self._look)
        if vim is None:
            return ()
        named = self._instance.names_vim(vim["id"])
        return (Vim(vim["id"], vim["name"], vim["auth_url"], named),)

    def of_tenants(self) -> Mapping[str, Vim]:
        """The VIMs of tenants, by the tenants' names. Changes nothing."""
        pattern = re.compile(_TENANT.format(r"(\S+)") + re.escape(self._mark))
        vims: dict[str, Vim] = {}
        for vim in self._ask(self._plugin.get_vims):
            found = pattern.fullmatch(vim.get("description") or "")
            if found and self._can_be_own(vim):
                vims[found[1]] = Vim(vim["id"], vim["name"], vim["auth_url"], False)
        return vims

    def has_login(self, tenant: str, access: ClusterAccess) -> bool:
        """Whether a tenant's VIM has this login. Changes nothing."""
        vim_id = self._find(tenant)
        return vim_id is not None and self._ask(
            lambda own: is_current(own, vim_id, access), _LIMIT
        )

    def _can_be_own(self, vim: Mapping[str, Any]) -> bool:
        # Any project may use our descriptions, and an administrator sees all VIMs.
        is_of_project = vim["tenant_id"] == self._instance.project
        return bool(is_of_project and vim["type"] == VIM_TYPE)

    def _mark_of(self, tenant: str) -> str:
        return f"{_TENANT.format(tenant)}{self._mark}" if tenant else self._mark

    def _find(self, tenant: str = "") -> str | None:
        vim = self._ask(partial(self._look, tenant=tenant))
        return None if vim is None else str(vim["id"])

    def _ask(self, question: Callable[[Any], T], limit: float | None = None) -> T:
        return database.ask(self._instance.context, question, limit)

    def _look(self, context: Any, tenant: str = "") -> dict[str, Any] | None:
        mark = self._mark_of(tenant)
        stored = "" if tenant else self._instance.vim_id
        for vim in self._plugin.get_vims(context):
            # Users write metadata, too: those of another project name none of theirs.
            if self._can_be_own(vim) and (
                vim["id"] == stored or vim.get("description") == mark
            ):
                return dict(vim)
        return None

    def _create(self, spec: VimSpec, context: Any) -> str:
        # After a lost connection, a first attempt may have succeeded.
        access = ClusterAccess(spec.token, spec.ca_certificate)
        if known := self._look(context, spec.tenant):
            vim_id, change = str(known["id"]), {}
            if not is_current(context, vim_id, access):
                change["auth_cred"] = of(access)
            if extra := missing(known, spec):
                change["extra"] = extra
            if change:
                update(self._plugin, context, vim_id, change)
                LOG.info("VIM %s has the present login", vim_id)
            return vim_id
        body = {
            "name": spec.name,
            "description": self._mark_of(spec.tenant),
            "type": VIM_TYPE,
            "tenant_id": self._instance.project,
            "auth_url": spec.auth_url,
            "vim_project": {"name": spec.tenant or "default"},
            "auth_cred": of(access),
            "is_default": False,
            "extra": spec.extra,
        }
        vim = self._plugin.create_vim(context, {"vim": body})
        LOG.info("Registered VIM %s for %s", vim["id"], spec.auth_url)
        return str(vim["id"])

    def _update_helm_hosts(self, hosts: list[str], context: Any) -> bool:
        vim = self._look(context) or {}
        info = ours(vim)
        if info is None or info.get(HELM_ADDRESSES) == hosts:
            return False
        # Tacker merges it into what the VIM has.
        change = {"extra": {HELM_INFO: {HELM_ADDRESSES: hosts}}}
        update(self._plugin, context, vim["id"], change)
        LOG.info("VIM %s: Tacker logs in for Helm at %s", vim["id"], ", ".join(hosts))
        return True

    def _delete(self, tenant: str, context: Any) -> None:
        if known := self._look(context, tenant):
            self._plugin.delete_vim(context, known["id"])
