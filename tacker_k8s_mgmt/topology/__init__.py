# SPDX-License-Identifier: Apache-2.0
"""Which VMs, members and connection points there are, by identity; no I/O."""
