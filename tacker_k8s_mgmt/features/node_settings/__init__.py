# SPDX-License-Identifier: Apache-2.0
"""Settings of nodes: labels, annotations, taints and maintenance."""
