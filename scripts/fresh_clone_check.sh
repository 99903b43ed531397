#!/usr/bin/env bash
# Before a release: clones what is committed into an empty folder and runs the README's commands there, cold.
#   scripts/fresh_clone_check.sh [TARGET...]     targets of make [demo lint test]
# KEEP=1 keeps the clone; the device is built anew too, in a cache folder of the clone's own.
set -euo pipefail
cd "$(dirname "$0")/.."

targets=("${@:-demo lint test}")
read -r -a targets <<<"${targets[*]}"
folder=$(mktemp -d "${TMPDIR:-/tmp}/neuron-tools-clone.XXXXXX")
[ -n "${KEEP:-}" ] || trap 'rm -rf "$folder"' EXIT

git clone --quiet --no-local . "$folder/clone"
cd "$folder/clone"
export NEURON_TOOLS_CACHE="$folder/cache" CI=true
unset VIRTUAL_ENV PYTHONPATH VENV
for target in "${targets[@]}"; do
    started=$SECONDS
    echo "== make $target, in $PWD"
    make --no-print-directory "$target" </dev/null
    echo "== make $target took $((SECONDS - started)) s"
done
[ -z "$(git status --porcelain)" ] || { echo "make left files that git does not ignore:"; git status --short; exit 1; }
echo "== the fresh clone passes: ${targets[*]}"
