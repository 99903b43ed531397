#!/usr/bin/env bash
# Runs pytest once over all tests, two processes at a time at most; arguments go to pytest.
set -euo pipefail
cd "$(dirname "$0")/.."

cores=$(nproc)
workers=${PYTEST_WORKERS:-$((cores < 2 ? cores : 2))}
# A worker is one process among several: threads of its own would only take turns.
export OMP_NUM_THREADS=${OMP_NUM_THREADS:-1}
# The tests of vLLM run where `make test-all` has put it.
vllm=${VENV:-.venv}/vllm
[ ! -d "$vllm" ] || export NEURON_TOOLS_VLLM=${NEURON_TOOLS_VLLM-$(realpath "$vllm")}
# Files in the order of the tree: browser and integration tests, which take longest, come first.
exec python -m pytest -n "$workers" --no-loadscope-reorder "$@"
