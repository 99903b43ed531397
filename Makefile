# Two commands for a fresh machine: `make demo` and `make test`. `make help` lists all; the work is in scripts/.

SHELL := /bin/bash
VENV ?= .venv
export VENV
export PATH := $(abspath $(VENV))/bin:$(PATH)
# Packages are installed uncompiled (bootstrap.sh): without bytecode kept, each of the tests' many processes compiles them anew.
unexport PYTHONDONTWRITEBYTECODE

INSTALL_INPUTS := pyproject.toml constraints.txt scripts/bootstrap.sh scripts/system_packages.sh setup.py monitor/neuron_monitor/api/_kernels.c
TIMELINE_SOURCES := package-lock.json $(shell find explorer_ui/timeline/src -type f) $(wildcard explorer_ui/timeline/*.*)
EXTENSION_SOURCES := $(shell find vscode-extension/src vscode-extension/webview -type f) $(wildcard vscode-extension/*.*)
DEVICE_SOURCES := neuron_tools/device/build.py $(wildcard neuron_tools/device/csrc/*) \
    $(wildcard neuron_tools/device/distributed/csrc/*)
# What fails here does not keep Python's tests from running after it.
TYPESCRIPT_TESTS = scripts/front_ends.sh test || failed=1; scripts/vscode_tests.sh $(1) || failed=1;

.DEFAULT_GOAL := help
.PHONY: help demo test test-all lint bench fuzz audit coverage-models dist docs clean

help:  ## List the targets
	@sed -n -E 's/^([a-z-]+):.*## (.*)/make \1\t\2/p' $(firstword $(MAKEFILE_LIST)) | expand -t 18

demo test test-all bench: export DEVICE_AHEAD := 1
demo: $(VENV)/.device $(VENV)/.timeline  ## Profile a PyTorch training script without the chip, compiled and eager
	@scripts/demo.sh

test: $(VENV)/.front_ends $(VENV)/.distributed  ## Run the tests, browser and VS Code tests included; PYTEST_ARGS="..." chooses among Python's
	@failed=; $(if $(PYTEST_ARGS),,$(call TYPESCRIPT_TESTS,--quick)) scripts/test.sh -m "not slow" $(PYTEST_ARGS) && [ -z "$$failed" ]

test-all: $(VENV)/.front_ends $(VENV)/.distributed $(VENV)/.frameworks  ## Run the tests, the slow ones too
	@failed=; $(if $(PYTEST_ARGS),,$(call TYPESCRIPT_TESTS)) scripts/test.sh -m "not vscode" $(PYTEST_ARGS) && [ -z "$$failed" ]

lint: $(VENV)/.front_ends  ## Style, format, types and the layer rule
	@scripts/lint.sh

bench: $(VENV)/.front_ends $(VENV)/.distributed  ## Run the benchmarks; BENCH="capture simulator" chooses
	@for name in $(or $(BENCH),all); do python -m benchmarks $$name $(BENCH_ARGS) || exit 1; done

fuzz: $(VENV)/.development  ## Fuzz all that is read of others for an hour, led by coverage; SECONDS=600 KINDS="traces profile"
	@python -c "import atheris" 2>/dev/null || python -m pip install --quiet atheris
	@scripts/fuzz.py --seconds $(or $(SECONDS),3600) --corpus .cache/fuzz $(KINDS)

audit: $(VENV)/.development  ## Ask the advisory databases about the versions of dependencies (needs the internet)
	@python -m pip install --quiet pip-audit && python -m pip_audit --no-deps --requirement constraints.txt
	@npm audit --audit-level=high

coverage-models: $(VENV)/.development $(VENV)/.device  ## Print what is lowered natively of common models; MODELS="llama t5" chooses
	@python -m benchmarks.zoo.table $(MODELS)

dist: $(VENV)/.development  ## Build the source archive, and a wheel with the device built for this Python and PyTorch
	@scripts/build_wheels.sh

docs: $(VENV)/.development  ## Write the reference pages again from the code, and build the site into build/site
	@python scripts/write_reference_docs.py
	@python scripts/build_site.py

clean:  ## Remove what make made, the virtual environment too
	rm -rf $(VENV) demo build dist *.egg-info .pytest_cache .mypy_cache .ruff_cache .import_linter_cache .hypothesis
	rm -rf node_modules */node_modules */*/node_modules .cache explorer_ui/neuron_explorer/timeline/static
	find . -name __pycache__ -type d -prune -exec rm -rf {} +

$(VENV)/.runtime: $(INSTALL_INPUTS)
	@scripts/bootstrap.sh runtime
	@touch $@

$(VENV)/.development: $(VENV)/.runtime
	@scripts/bootstrap.sh development
	@touch $@

$(VENV)/.frameworks: $(VENV)/.development scripts/vllm_packages.txt
	@scripts/bootstrap.sh frameworks
	@touch $@

# The explorer's timeline; the rest of what is written in TypeScript only where it is tested.
$(VENV)/.timeline: $(VENV)/.runtime $(TIMELINE_SOURCES)
	@scripts/front_ends.sh timeline
	@touch $@

$(VENV)/.front_ends: $(VENV)/.development $(TIMELINE_SOURCES) $(EXTENSION_SOURCES)
	@scripts/front_ends.sh development
	@touch $@ $(VENV)/.timeline

$(VENV)/.device: $(VENV)/.runtime $(DEVICE_SOURCES)
	@python -m neuron_tools.device.build device
	@touch $@

# The process group, which only programs with many ranks need.
$(VENV)/.distributed: $(VENV)/.device
	@python -m neuron_tools.device.build distributed
	@touch $@
