# Sourced: installs what only the system's package manager can, or says the one command that does.

say() { echo "neuron-tools: $*" >&2; }

fail() { say "$*"; exit 1; }

# Puts the words that make apt-get run as root into the array `as_root`; false where there is no way.
find_root() {
    as_root=()
    [ "$(id -u)" = 0 ] && return 0
    command -v sudo >/dev/null && sudo -n true 2>/dev/null && as_root=(sudo -n)
}

# install_system_packages PACKAGE... : all at once.
install_system_packages() {
    if ! command -v apt-get >/dev/null; then
        fail "this machine lacks $* (Debian's names): install them with your package manager, then run make again."
    fi
    if ! find_root; then
        fail "run this once, then make again: sudo apt-get install -y $*"
    fi
    say "installing $* with apt-get"
    "${as_root[@]}" env DEBIAN_FRONTEND=noninteractive apt-get update -qq >&2 || say "apt-get update failed; trying anyway"
    "${as_root[@]}" env DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends "$@" >&2 ||
        fail "apt-get could not install $*: see its message above."
}
