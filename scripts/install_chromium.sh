#!/usr/bin/env bash
# Makes sure that there is a Chromium for the browser tests: the system's, or Debian's package, or playwright's own.
set -euo pipefail
cd "$(dirname "$0")/.."
source scripts/system_packages.sh

VENV=${VENV:-.venv}

# Ubuntu's chromium packages only fetch a snap, which containers cannot run.
has_debian_package() {
    command -v apt-cache >/dev/null && grep -q '^ID=debian' /etc/os-release && find_root
}

install_playwright_chromium() {
    local with_deps=() path
    find_root && command -v apt-get >/dev/null && with_deps=(--with-deps)
    say "installing playwright's Chromium"
    "$VENV/bin/python" -m playwright install "${with_deps[@]}" chromium >&2 || return 1
    path=$("$VENV/bin/python" -c 'from playwright.sync_api import sync_playwright
with sync_playwright() as playwright:
    print(playwright.chromium.executable_path)')
    ln -sf "$path" "$VENV/bin/chromium"
}

for name in chromium chromium-browser google-chrome google-chrome-stable; do
    PATH="$VENV/bin:$PATH" command -v "$name" >/dev/null && exit 0
done
if has_debian_package; then
    install_system_packages chromium
elif ! install_playwright_chromium; then
    say "browser tests will be skipped: there is no Chromium. Install it once: sudo apt-get install -y chromium"
fi
