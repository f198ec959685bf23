# SPDX-License-Identifier: Apache-2.0
"""Tacker's v1 API: the management driver class and what it stands on."""

from tacker_k8s_mgmt.hooks.v1.driver import MgmtDriver

__all__ = ["MgmtDriver"]
