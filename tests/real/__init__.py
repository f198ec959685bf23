# SPDX-License-Identifier: Apache-2.0
"""Scenarios on the real kubespray and real Kubernetes; ``make test-real``."""
