# SPDX-License-Identifier: Apache-2.0
"""Tacker's v2 API: the script of a VNF package and what it stands on."""

from tacker_k8s_mgmt.hooks.v2.program import main, main_of_cnf

__all__ = ["main", "main_of_cnf"]
