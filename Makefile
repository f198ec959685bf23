# SPDX-License-Identifier: Apache-2.0
# The two commands that matter are `make demo` and `make test`; see README.rst.
SUDO := $(shell [ "$$(id -u)" = 0 ] || command -v sudo)
# Without byte code: what root leaves in somebody's tree, its owner cannot remove.
PYTHON := /usr/bin/python3 -B

.PHONY: help demo demo-real test test-quick test-real chaos lint docs changelog lab-up lab-down lab-status lab-shell

help:
	@echo 'make demo        start the lab and instantiate a Kubernetes cluster VNF in it: API=v1'
	@echo 'make test        lint, unit, contract and integration tests, one summary'
	@echo 'make test-quick  the same without laboratories and lowest versions'
	@echo 'make demo-real   the same with the real kubespray: KUBESPRAY=v2.31.0 MIRROR=/dir'
	@echo 'make test-real   a whole life with the real kubespray; takes hours'
	@echo 'make chaos       faults in the operations of clusters: SEED=1 MINUTES=60 CLUSTERS=v1,v2'
	@echo 'make lint        only what looks at the source: ruff, mypy and others'
	@echo 'make docs        build the documentation into doc/build, look at each page'
	@echo 'make changelog   write the release notes into CHANGELOG.rst'
	@echo 'make lab-up      start the lab only     make lab-status  what runs in it'
	@echo 'make lab-shell   a shell inside it      make lab-down    stop and remove it'

demo:
	@$(SUDO) $(PYTHON) -m lab demo $(if $(API),--api $(API))

# A checkout or release, and files and images: a directory, or where they come from.
REAL := $(if $(KUBESPRAY),--kubespray $(KUBESPRAY)) $(if $(MIRROR),--mirror $(MIRROR)) \
    $(if $(ARTIFACTS),--artifacts $(ARTIFACTS))

demo-real:
	@$(SUDO) $(PYTHON) -m lab --state /var/lib/tacker-k8s-lab-real demo --real $(REAL) \
	    $(if $(API),--api $(API))

test:
	@$(PYTHON) -m tests

test-quick:
	@$(PYTHON) -m tests quick

test-real:
	@$(SUDO) $(PYTHON) -m tests.real $(REAL) $(SCENARIOS)

chaos:
	@$(SUDO) $(PYTHON) -m lab chaos $(if $(SEED),--seed $(SEED)) \
	    --minutes $(or $(MINUTES),60) $(if $(CLUSTERS),--clusters $(CLUSTERS))

lint:
	@$(PYTHON) -m tests lint

docs:
	@$(PYTHON) -m tests docs

changelog:
	@$(PYTHON) -m tests changelog

lab-up:
	@$(SUDO) $(PYTHON) -m lab up

lab-down:
	@$(SUDO) $(PYTHON) -m lab down

lab-status:
	@$(SUDO) $(PYTHON) -m lab status

lab-shell:
	@$(SUDO) $(PYTHON) -m lab shell
