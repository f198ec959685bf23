# SPDX-License-Identifier: Apache-2.0
"""The OpenStack that VMs will be in: its facts, and whether a request fits them."""
