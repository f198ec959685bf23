# SPDX-License-Identifier: Apache-2.0
"""Values that all other packages use: nodes, pods, drains, quorum, playbook runs."""
