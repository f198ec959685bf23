# SPDX-License-Identifier: Apache-2.0
"""The tests: unit, contract (the installed Tacker) and integration (in the lab)."""
