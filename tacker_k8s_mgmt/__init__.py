"""Tacker management driver for Kubernetes cluster VNFs, built with kubespray."""
