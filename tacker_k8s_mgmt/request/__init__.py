# SPDX-License-Identifier: Apache-2.0
"""``k8s_cluster_installation_param``: models, checks, changes and secrets; no I/O."""
