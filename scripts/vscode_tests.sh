#!/usr/bin/env bash
# Tests the extension in a real VS Code, on a real capture. Arguments go to pytest; VSCODE_TESTS_SECONDS limits the time (600).
set -euo pipefail
cd "$(dirname "$0")/.."

scripts/install_code_server.sh
export OMP_NUM_THREADS=${OMP_NUM_THREADS:-1}
run=(python -m pytest -m vscode tests/vscode)
# An editor, its servers and a browser start from nothing here, and on a loaded machine the editor now and then misses
# a change of a file or does not restore a view: what failed is tried again, alone.
timeout --foreground "${VSCODE_TESTS_SECONDS:-600}" "${run[@]}" "$@" && exit
for _ in 1 2; do
    timeout --foreground 240 "${run[@]}" --last-failed "$@" && exit
done
exec timeout --foreground 240 "${run[@]}" --last-failed "$@"
