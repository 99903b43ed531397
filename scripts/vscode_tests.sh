#!/usr/bin/env bash
# Tests the extension in a real VS Code, on a real capture: --quick leaves out what starts an editor, window or server
# of its own. Further arguments go to pytest; VSCODE_TESTS_SECONDS limits the time of each try (1200).
set -euo pipefail
cd "$(dirname "$0")/.."

marks=vscode
if [ "${1:-}" = --quick ]; then
    marks="vscode and not thorough"
    shift
fi
scripts/install_code_server.sh
export OMP_NUM_THREADS=${OMP_NUM_THREADS:-1}
# One after another: an editor, its servers and its browser keep two cores busy.
run=(timeout --foreground "${VSCODE_TESTS_SECONDS:-1200}" python -m pytest -m "$marks" tests/vscode)
"${run[@]}" "$@" && exit
# They start from nothing here: on a machine that is busy beyond measure one may be too slow. What failed is tried
# again, once.
exec "${run[@]}" --last-failed "$@"
