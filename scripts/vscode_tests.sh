#!/usr/bin/env bash
# Tests the VS Code extension: types, unit tests, and a real VS Code in Chromium on a real capture. Arguments go to pytest.
set -euo pipefail
cd "$(dirname "$0")/.."

scripts/install_code_server.sh
export OMP_NUM_THREADS=${OMP_NUM_THREADS:-1}
exec python -m pytest -m vscode tests/vscode "$@"
