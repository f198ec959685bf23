# The two commands that matter are `make demo` and `make test`; see README.rst.
SUDO := $(shell [ "$$(id -u)" = 0 ] || command -v sudo)
# Without byte code: what root leaves in somebody's tree, its owner cannot remove.
PYTHON := /usr/bin/python3 -B

.PHONY: help demo test docs lab-up lab-down lab-status lab-shell

help:
	@echo 'make demo        start the lab and instantiate a Kubernetes cluster VNF in it'
	@echo 'make test        lint, unit, contract and integration tests, one summary'
	@echo 'make docs        build the documentation into doc/build'
	@echo 'make lab-up      start the lab only     make lab-status  what runs in it'
	@echo 'make lab-shell   a shell inside it      make lab-down    stop and remove it'

demo:
	@$(SUDO) $(PYTHON) -m lab demo

test:
	@$(PYTHON) -m tests

docs:
	@sphinx-build -W -b html doc/source doc/build

lab-up:
	@$(SUDO) $(PYTHON) -m lab up

lab-down:
	@$(SUDO) $(PYTHON) -m lab down

lab-status:
	@$(SUDO) $(PYTHON) -m lab status

lab-shell:
	@$(SUDO) $(PYTHON) -m lab shell
