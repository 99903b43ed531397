# Two commands for a fresh machine: `make demo` and `make test`. `make help` lists all; the work is in scripts/.

SHELL := /bin/bash
VENV ?= .venv
export VENV
export PATH := $(abspath $(VENV))/bin:$(PATH)

INSTALL_INPUTS := pyproject.toml constraints.txt scripts/bootstrap.sh scripts/system_packages.sh
DEVICE_SOURCES := neuron_tools/device/build.py $(wildcard neuron_tools/device/csrc/*)

.DEFAULT_GOAL := help
.PHONY: help demo test test-all lint bench coverage-models docs clean

help:  ## List the targets
	@sed -n -E 's/^([a-z-]+):.*## (.*)/make \1\t\2/p' $(firstword $(MAKEFILE_LIST)) | expand -t 18

demo: $(VENV)/.device  ## Profile a PyTorch training script without the chip, compiled and eager
	@scripts/demo.sh

test: $(VENV)/.development $(VENV)/.device  ## Run the tests, browser tests included; PYTEST_ARGS="..." chooses
	@scripts/test.sh -m "not slow" $(PYTEST_ARGS)

test-all: $(VENV)/.development $(VENV)/.device  ## Run the tests, the slow ones too
	@scripts/test.sh $(PYTEST_ARGS)

lint: $(VENV)/.development  ## Style, format, types and the layer rule
	@scripts/lint.sh

bench: $(VENV)/.development $(VENV)/.device  ## Run the benchmarks; BENCH="capture simulator" chooses
	@for name in $(or $(BENCH),all); do python -m benchmarks $$name $(BENCH_ARGS) || exit 1; done

coverage-models: $(VENV)/.development $(VENV)/.device  ## Print what is lowered natively of common models; MODELS="llama t5" chooses
	@python -m benchmarks.zoo.table $(MODELS)

docs: $(VENV)/.development  ## Write the reference pages again from the code
	@python scripts/write_reference_docs.py

clean:  ## Remove what make made, the virtual environment too
	rm -rf $(VENV) demo build dist *.egg-info .pytest_cache .mypy_cache .ruff_cache .import_linter_cache .hypothesis
	find . -name __pycache__ -type d -prune -exec rm -rf {} +

$(VENV)/.runtime: $(INSTALL_INPUTS)
	@scripts/bootstrap.sh runtime
	@touch $@

$(VENV)/.development: $(VENV)/.runtime
	@scripts/bootstrap.sh development
	@touch $@

$(VENV)/.device: $(VENV)/.runtime $(DEVICE_SOURCES)
	@python -m neuron_tools.device.build
	@touch $@
