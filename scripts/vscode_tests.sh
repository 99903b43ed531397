#!/usr/bin/env bash
# Tests the extension in a real VS Code, on a real capture. Arguments go to pytest;
# VSCODE_TESTS_SECONDS limits the time (600); VSCODE_TESTS=vscode takes the unsteady ones too.
set -euo pipefail
cd "$(dirname "$0")/.."

scripts/install_code_server.sh
export OMP_NUM_THREADS=${OMP_NUM_THREADS:-1}
run=(timeout --foreground "${VSCODE_TESTS_SECONDS:-600}" python -m pytest -m "${VSCODE_TESTS:-vscode and not unsteady}" tests/vscode)
# An editor, a server and a browser start from nothing here: what failed because that was slow is tried again, alone.
"${run[@]}" "$@" && exit
for _ in 1 2 3 4; do
    "${run[@]}" --last-failed "$@" && exit
done
exec "${run[@]}" --last-failed "$@"
