# SPDX-License-Identifier: Apache-2.0
"""The cluster as a Kubernetes VIM in Tacker's registry (v1 API).

The cluster's VIM is identified by its id in the VNF instance's metadata or, if an
operation was interrupted before that was saved, by the mark in its description. Never
by its name: another project, or another VNF, may use the same one.
"""

import secrets
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from typing import Any, TypeVar

from oslo_log import log as logging
from oslo_utils import uuidutils
from pydantic import SecretStr
from tacker import manager, objects
from tacker.common import exceptions
from tacker.extensions import nfvo
from tacker.plugins.common import constants
from tacker.vnflcm import utils as vnflcm_utils

from tacker_k8s_mgmt import errors
from tacker_k8s_mgmt.hooks.v1 import database
from tacker_k8s_mgmt.lifecycle import ports
from tacker_k8s_mgmt.model.helm import USER
from tacker_k8s_mgmt.model.redaction import Redactor
from tacker_k8s_mgmt.status.facts import Vim

LOG = logging.getLogger(__name__)

METADATA_KEY = "k8s_mgmt_vim_id"
_TYPE = "kubernetes"
# Seconds for Tacker, Barbican and the cluster's API, which Tacker asks without a limit.
_LIMIT = 180.0

T = TypeVar("T")


# Begins the description of a cluster's VIM; the id of its VNF instance follows.
_MARK = "Kubernetes cluster of VNF instance "


# What Tacker's v1 API needs to run Helm (kubernetes_driver.py, _get_helm_info).
_HELM = "helm_info"
_ADDRESSES = "masternode_ip"
_USERNAME, _PASSWORD = "masternode_username", "masternode_password"


def _extra(spec: ports.VimSpec) -> dict[str, Any]:
    if spec.helm is None:
        return {}
    info = {
        _ADDRESSES: list(spec.helm.hosts),
        _USERNAME: USER,
        _PASSWORD: spec.helm.password.get_secret_value(),
    }
    return {_HELM: info}


def _own_login(vim: Mapping[str, Any]) -> dict[str, Any] | None:
    """The driver's login for Helm; an operator may have put another one there."""
    info = (vim.get("extra") or {}).get(_HELM)
    ours = isinstance(info, dict) and info.get(_USERNAME) == USER
    return info if ours else None


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
        if vim["type"] != _TYPE or f"{mark} " != _MARK:
            continue
        try:
            instance = objects.VnfInstance.get_by_id(context, vnf_id)
        except exceptions.VnfInstanceNotFound:
            continue
        # Any project may use this description; the VIM's id is that of the driver.
        if (instance.vnf_metadata or {}).get(METADATA_KEY) == vim["id"]:
            yield vnf_id, str(vim["auth_url"])


class VimRegistry:
    """The entry of one VNF instance's cluster in Tacker's registry.

    :param context: of the request.
    :param instance: Tacker's ``VnfInstance``.
    """

    def __init__(self, context: Any, instance: Any) -> None:
        self._context = context
        self._instance = instance
        self._plugin = _plugin()
        self._mark = f"{_MARK}{instance.id}"

    def name_taken(self, name: str) -> bool:
        """Whether a VIM in this project that is not ours has this *name*."""
        own = self._find()
        return any(
            vim["name"] == name and vim["id"] != own
            for vim in self._ask(self._plugin.get_vims)
            if vim["tenant_id"] == self._instance.tenant_id
        )

    def helm_password(self) -> SecretStr:
        """The password of Tacker's login for Helm: the registered one, or a new one.

        A CNF keeps a copy of it, so it never changes while there is the VIM.
        """
        vim = self._ask(self._look) or {}
        if info := _own_login(vim):
            return SecretStr(info[_PASSWORD])
        return SecretStr(secrets.token_urlsafe(24))

    def register(self, spec: ports.VimSpec) -> str:
        """Get or create the VIM, and name it in the VNF instance.

        A VIM with another address is that of a former cluster, and is replaced. The
        instance is saved at once, so that a later failure cannot lose the id.

        :returns: the VIM's id.
        :raises VimError: Tacker refused, e.g. it cannot reach the API.
        """
        if self._find("auth_url") not in (None, spec.auth_url):
            self.remove()
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
        self._remember(vim_id, spec.auth_url)
        return vim_id

    def move_helm(self, hosts: Sequence[str]) -> bool:
        """Write the addresses at which Tacker logs in for Helm, used or not.

        :returns: whether they were others.
        :raises VimError: Tacker refused.
        """
        try:
            return self._ask(partial(self._move_helm, list(hosts)), _LIMIT)
        except Exception as exc:
            # The text may have the VIM, and so the password.
            raise errors.VimError(
                detail="Tacker did not write the control planes' addresses into "
                f"extra.{_HELM} of the cluster's VIM ({type(exc).__name__})."
            ) from None

    def in_use(self) -> bool:
        """Whether a VNF runs on the cluster.

        Tacker's ``NfvoPlugin.delete_vim`` refuses then, even for a terminated VNF that
        has not been deleted.
        """
        vim_id = self._find()
        if vim_id is None:
            return False
        try:
            self._ask(lambda own: self._plugin.is_vim_still_in_use(own, vim_id))
        except nfvo.VimInUseException:
            return True
        return False

    def remove(self) -> bool:
        """Remove the VIM from the registry and from the VNF instance.

        :returns: False when there was none.
        :raises VimError: it is still used.
        """
        vim_id = self._find()
        if vim_id is not None:
            try:
                self._ask(self._delete, _LIMIT)
            except nfvo.VimInUseException:
                raise errors.VimError(
                    detail=f"The VIM {vim_id} of the cluster is still used by a VNF.",
                    hint="Terminate and delete the VNFs that run on it.",
                ) from None
            except Exception as exc:
                raise errors.VimError(
                    detail=f"Tacker did not delete the VIM {vim_id}: {exc}"
                ) from exc
        self._forget()
        return vim_id is not None

    def registered(self) -> tuple[Vim, ...]:
        """The cluster's VIM, if there is one. Changes nothing."""
        vim = self._ask(self._look)
        if vim is None:
            return ()
        # The first one is the OpenStack VIM of the VNF.
        others = (self._instance.vim_connection_info or [])[1:]
        named = any(info.vim_id == vim["id"] for info in others)
        return (Vim(vim["id"], vim["name"], vim["auth_url"], named),)

    def _find(self, attribute: str = "id") -> str | None:
        vim = self._ask(self._look)
        return None if vim is None else str(vim[attribute])

    def _ask(self, question: Callable[[Any], T], limit: float | None = None) -> T:
        return database.ask(self._context, question, limit)

    def _look(self, context: Any) -> dict[str, Any] | None:
        stored = (self._instance.vnf_metadata or {}).get(METADATA_KEY)
        for vim in self._plugin.get_vims(context):
            # Any project may use this description, and an administrator sees all VIMs.
            is_marked = (
                vim["tenant_id"] == self._instance.tenant_id
                and vim.get("description") == self._mark
            )
            if vim["type"] == _TYPE and (vim["id"] == stored or is_marked):
                return dict(vim)
        return None

    def _create(self, spec: ports.VimSpec, context: Any) -> str:
        # After a lost connection, a first attempt may have succeeded.
        if known := self._look(context):
            return str(known["id"])
        body = {
            "name": spec.name,
            "description": self._mark,
            "type": _TYPE,
            "tenant_id": self._instance.tenant_id,
            "auth_url": spec.auth_url,
            "vim_project": {"name": "default"},
            "auth_cred": {
                "bearer_token": spec.token.get_secret_value(),
                "ssl_ca_cert": spec.ca_certificate,
            },
            "is_default": False,
            "extra": _extra(spec),
        }
        vim = self._plugin.create_vim(context, {"vim": body})
        LOG.info("Registered VIM %s for %s", vim["id"], spec.auth_url)
        return str(vim["id"])

    def _move_helm(self, hosts: list[str], context: Any) -> bool:
        vim = self._look(context) or {}
        info = _own_login(vim)
        if info is None or info.get(_ADDRESSES) == hosts:
            return False
        # Tacker merges it into what the VIM has.
        change = {"extra": {_HELM: {_ADDRESSES: hosts}}}
        self._plugin.update_vim(context, vim["id"], {"vim": change})
        LOG.info("VIM %s: Tacker logs in for Helm at %s", vim["id"], ", ".join(hosts))
        return True

    def _delete(self, context: Any) -> None:
        if known := self._look(context):
            self._plugin.delete_vim(context, known["id"])

    def _remember(self, vim_id: str, auth_url: str) -> None:
        # A new dict: Tacker does not notice a change inside the old one.
        metadata = self._instance.vnf_metadata or {}
        self._instance.vnf_metadata = {**metadata, METADATA_KEY: vim_id}
        others = self._without(vim_id) or [self._default_vim()]
        info = objects.VimConnectionInfo(
            id=uuidutils.generate_uuid(),
            vim_id=vim_id,
            vim_type=_TYPE,
            access_info={"auth_url": auth_url},
            interface_info={},
            extra={},
        )
        # Appended: Tacker uses the first one as the VIM of the VNF.
        self._instance.vim_connection_info = [*others, info]
        self._instance.save()

    def _default_vim(self) -> Any:
        """The VIM that Tacker uses when none is named.

        Tacker names it in a new VNF instance, but not after a rollback.
        """
        vim = self._ask(lambda own: vnflcm_utils._get_vim(own, None))
        return objects.VimConnectionInfo(
            id=uuidutils.generate_uuid(),
            vim_id=vim["vim_id"],
            vim_type=vim["vim_type"],
            access_info={},
            interface_info={},
            extra=vim["extra"],
        )

    def _forget(self) -> None:
        metadata = dict(self._instance.vnf_metadata or {})
        vim_id = metadata.pop(METADATA_KEY, None)
        if vim_id is None:
            return
        self._instance.vnf_metadata = metadata
        self._instance.vim_connection_info = self._without(vim_id)
        self._instance.save()

    def _without(self, vim_id: str) -> list[Any]:
        infos = self._instance.vim_connection_info or []
        return [info for info in infos if info.vim_id != vim_id]
