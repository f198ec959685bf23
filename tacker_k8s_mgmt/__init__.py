# SPDX-License-Identifier: Apache-2.0
"""Tacker management driver for Kubernetes cluster VNFs, built with kubespray."""
