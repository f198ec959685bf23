# SPDX-License-Identifier: Apache-2.0
"""kubespray: its releases and checkouts, its inputs, and the runs of its playbooks."""
