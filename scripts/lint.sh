#!/usr/bin/env bash
# Runs every static check, also after one failed, and fails if any did. The types take as long as all others together:
# they are checked beside them.
set -uo pipefail
cd "$(dirname "$0")/.."

failed=()
types=$(mktemp)
trap 'rm -f "$types"' EXIT
mypy >"$types" 2>&1 &
checking_types=$!

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
check "TypeScript" scripts/front_ends.sh lint
check "layers" lint-imports --no-cache --no-logo
check "import circles and extras" python scripts/check_imports.py
if wait "$checking_types"; then echo "ok      types"; else echo "FAILED  types: mypy"; cat "$types"; failed+=("types"); fi
[ ${#failed[@]} = 0 ]
