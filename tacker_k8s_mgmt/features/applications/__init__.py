# SPDX-License-Identifier: Apache-2.0
"""Applications on the cluster, from manifests or charts."""
