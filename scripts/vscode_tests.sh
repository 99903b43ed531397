#!/usr/bin/env bash
# Tests the extension in a real VS Code, on a real capture, two editors at a time at most. Arguments go to pytest;
# VSCODE_TESTS_SECONDS limits the time of each try (900).
set -euo pipefail
cd "$(dirname "$0")/.."

scripts/install_code_server.sh
cores=$(nproc)
workers=${PYTEST_WORKERS:-$((cores < 2 ? cores : 2))}
export OMP_NUM_THREADS=${OMP_NUM_THREADS:-1}
run=(timeout --foreground "${VSCODE_TESTS_SECONDS:-900}" python -m pytest -m vscode tests/vscode)
"${run[@]}" -n "$workers" "$@" && exit
# An editor, its servers and a browser start from nothing here: on a machine that is busy beyond measure one may be
# too slow. What failed is tried again, once and alone.
exec "${run[@]}" --last-failed "$@"
