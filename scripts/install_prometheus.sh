#!/usr/bin/env bash
# Makes sure that there are Prometheus and promtool for the monitor's tests: the system's, or Debian's package.
set -euo pipefail
cd "$(dirname "$0")/.."
source scripts/system_packages.sh

command -v prometheus >/dev/null && command -v promtool >/dev/null && exit 0
# In a subshell: without the package everything else still works.
(install_system_packages prometheus) ||
    say "tests with Prometheus will be skipped: install it once: sudo apt-get install -y prometheus"
