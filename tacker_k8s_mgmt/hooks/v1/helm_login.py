# SPDX-License-Identifier: Apache-2.0
"""The login with which Tacker's v1 API runs Helm, as a VIM in its registry has it.

``tacker/vnfm/infra_drivers/kubernetes/kubernetes_driver.py``, ``_get_helm_info``.
"""

from collections.abc import Mapping
from typing import Any

from tacker_k8s_mgmt.lifecycle import ports
from tacker_k8s_mgmt.model.helm import USER

#: In ``extra`` of the VIM.
KEY = "helm_info"
ADDRESSES = "masternode_ip"
PASSWORD = "masternode_password"  # noqa: S105
_USERNAME = "masternode_username"


def kept(spec: ports.VimSpec) -> dict[str, Any]:
    """``extra`` of a VIM with this login; empty without one."""
    if spec.helm is None:
        return {}
    info = {
        ADDRESSES: list(spec.helm.hosts),
        _USERNAME: USER,
        PASSWORD: spec.helm.password.get_secret_value(),
    }
    return {KEY: info}


def missing(vim: Mapping[str, Any], spec: ports.VimSpec) -> dict[str, Any]:
    """What ``extra`` of a VIM lacks of this login; empty where it has an operator's."""
    extra, wanted = vim.get("extra") or {}, kept(spec)
    foreign = KEY in extra and ours(vim) is None
    return {} if foreign or extra.get(KEY) == wanted.get(KEY) else wanted


def ours(vim: Mapping[str, Any]) -> dict[str, Any] | None:
    """The driver's login; an operator may have put another one there."""
    info = (vim.get("extra") or {}).get(KEY)
    is_ours = isinstance(info, dict) and info.get(_USERNAME) == USER
    return info if is_ours else None
