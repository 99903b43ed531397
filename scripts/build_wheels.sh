#!/usr/bin/env bash
# Builds what a release publishes into dist/: the source archive and, from it alone, a wheel for x86-64 Linux that has the
# device and the process group built ahead for each Python given.
#   build_wheels.sh [PYTHON...]     interpreters of environments that have the torch to build for [.venv's]
# Each finds its own library in the wheel by its tag, PyTorch's version and C++ ABI; any other builds from source.
set -euo pipefail
cd "$(dirname "$0")/.."
source scripts/system_packages.sh

VENV=${VENV:-.venv}
DIST=${DIST:-dist}
pythons=("$@")
[ ${#pythons[@]} -gt 0 ] || pythons=("$VENV/bin/python")
for index in "${!pythons[@]}"; do
    pythons[index]=$(command -v "${pythons[index]}") || fail "there is no ${pythons[index]}: name interpreters that have torch."
    [[ ${pythons[index]} = /* ]] || pythons[index]=$PWD/${pythons[index]}
done
builder=${pythons[0]}
mkdir -p "$DIST"
dist=$(cd "$DIST" && pwd)
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT

# run KIND TARGET [OPTION...]: one step of the build back end in the current folder; prints the name of what it made.
run() {
    "$builder" - "$@" <<'END' | tail -1
import sys
from setuptools import build_meta
kind, target, *options = sys.argv[1:]
print(getattr(build_meta, f"build_{kind}")(target, config_settings={"--build-option": options} if options else None))
END
}

say "building the source archive"
archive=$(run sdist "$dist" 2>"$scratch/sdist.log") || fail "the source archive could not be built: $(tail -3 "$scratch/sdist.log")"
tar -xzf "$dist/$archive" -C "$scratch"
cd "$scratch"/neuron_tools-*/
for python in "${pythons[@]}"; do
    say "building the device for $("$python" -c 'import os, sys; os.environ["TORCH_DEVICE_BACKEND_AUTOLOAD"] = "0"; import torch; print(f"Python {sys.version_info[0]}.{sys.version_info[1]} and torch {torch.__version__}")')"
    "$python" -m neuron_tools.device.build --ship neuron_tools/device/built
    scripts/compile_loops.sh "$python"
done
say "building the wheel"
tag=$("$builder" scripts/platform_tag.py neuron_tools/device/built/*/*.so)
wheel=$(run wheel "$dist" "--plat-name=$tag" 2>"$scratch/wheel.log") || fail "the wheel could not be built: $(tail -3 "$scratch/wheel.log")"
say "built $dist/$archive and $dist/$wheel"
