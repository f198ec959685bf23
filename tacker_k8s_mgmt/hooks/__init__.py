# SPDX-License-Identifier: Apache-2.0
"""Tacker's world to ours and back; the only code that imports tacker."""
