# SPDX-License-Identifier: Apache-2.0
"""Ports of CNFs on the load balancer."""
