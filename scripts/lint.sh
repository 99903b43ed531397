#!/usr/bin/env bash
# Runs every static check, also after one failed, and fails if any did.
set -uo pipefail
cd "$(dirname "$0")/.."

failed=()
check() {
    local name=$1 output
    shift
    if output=$("$@" 2>&1); then
        echo "ok      $name"
    else
        echo "FAILED  $name: $*"
        echo "$output"
        failed+=("$name")
    fi
}

check "style" ruff check .
check "format" ruff format --check .
check "types" mypy
check "TypeScript" scripts/front_ends.sh lint
check "layers" lint-imports --no-cache --no-logo
check "import circles and extras" python scripts/check_imports.py
[ ${#failed[@]} = 0 ]
