"""Scenarios on the real kubespray and real Kubernetes; ``make test-real``."""
