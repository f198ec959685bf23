# SPDX-License-Identifier: Apache-2.0
"""Effects: the only code that touches other hosts and services."""
