#!/usr/bin/env bash
# Installs a wheel as on a new machine, in a Debian 12 that has python3-venv and no compiler, and runs the README's commands there.
#   bare_debian.sh WHEEL     as root, with debootstrap and unshare
# ROOT_FOLDER keeps the system for the next time; WHEELS names a folder of more wheels, such as PyTorch's CPU wheel.
# Fails where the first capture needs more than LIMIT seconds of processor time before the script's first line [20].
set -euo pipefail
cd "$(dirname "$0")/.."
source scripts/system_packages.sh

wheel=$(realpath "${1:?usage: scripts/bare_debian.sh WHEEL}")
limit=${LIMIT:-20}
[ "$(id -u)" = 0 ] || fail "debootstrap needs root."
command -v debootstrap >/dev/null || fail "debootstrap is not installed: apt-get install debootstrap"
if [ -z "${IN_NAMESPACE:-}" ]; then # what is mounted below is gone when it ends, however it ends
    exec env IN_NAMESPACE=1 unshare --mount "$0" "$wheel"
fi
if [ -n "${ROOT_FOLDER:-}" ]; then
    root=$ROOT_FOLDER
else
    root=$(mktemp -d "${TMPDIR:-/tmp}/bare-debian.XXXXXX")
    trap 'umount --recursive --lazy "$root/wheels" "$root/proc" "$root/dev" 2>/dev/null || true; rm -rf --one-file-system "$root"' EXIT
fi

if [ ! -e "$root/usr/bin/python3" ]; then
    say "making a bare Debian 12 in $root"
    log=$(mktemp)
    debootstrap --variant=minbase --include=python3-venv,ca-certificates bookworm "$root" >"$log" 2>&1 ||
        fail "debootstrap failed: $(tail -1 "$log")"
    rm -f "$log"
fi
for compiler in cc gcc g++ clang; do
    [ ! -e "$root/usr/bin/$compiler" ] || fail "$root has a compiler, $compiler: it is not bare."
done
mkdir -p "$root/wheels" "$root/proc" "$root/dev"
mount -t proc proc "$root/proc"
mount --rbind /dev "$root/dev"
[ -z "${WHEELS:-}" ] || mount --bind "$WHEELS" "$root/wheels"
cp --dereference /etc/resolv.conf "$root/etc/resolv.conf"
cp /etc/ssl/certs/ca-certificates.crt "$root/etc/ssl/certs/" # those that this machine trusts, of a proxy too
rm -rf "$root/work" "$root/root/.cache"
mkdir -p "$root/work"
cp "$wheel" "$root/work/"

# inside COMMAND: in the system, in the folder of the examples, with nothing of this environment but pip's index.
inside() {
    chroot "$root" /usr/bin/env -i HOME=/root PATH=/work/venv/bin:/usr/bin:/bin PIP_FIND_LINKS=/wheels \
        PIP_DISABLE_PIP_VERSION_CHECK=1 ${PIP_INDEX_URL:+PIP_INDEX_URL="$PIP_INDEX_URL"} \
        PIP_CERT=/etc/ssl/certs/ca-certificates.crt bash -euc "cd /work; $1"
}

say "installing $(basename "$wheel")[all]"
inside "python3 -m venv venv; pip install --quiet './$(basename "$wheel")[all]'"
installed=$(date +%s.%N)
inside "neuron-profile examples"
say "capturing for the first time"
inside 'printf "import torch\nx = torch.ones(4, device=\"neuron\")\nimport time, resource\nbefore = resource.getrusage(resource.RUSAGE_SELF)\nprint(\"CPU\", before.ru_utime + before.ru_stime)\nprint(\"CLOCK\", time.time())\nx.add(1).sum().item()\n" >first.py
    TIMEFORMAT="%U %S"; { time neuron-profile capture -o first.nprof -- python first.py >first.out 2>first.err; } 2>first.time || { cat first.err; exit 1; }'
begun=$(sed -n 's/^CPU //p' "$root/work/first.out")
waited=$(awk -v installed="$installed" '/^CLOCK / { printf "%.1f", $2 - installed }' "$root/work/first.out")
read -r user system <"$root/work/first.time"
say "the first capture took $begun s of processor time until the script's work began, $waited s after the end of the install; $user s and $system s (system) in all"
awk -v begun="$begun" -v limit="$limit" 'BEGIN { exit begun > limit }' || fail "the first capture begins after $begun s, later than $limit s."
[ -z "$(find "$root/root/.cache/neuron-tools" -name '*.so' 2>/dev/null)" ] || fail "the device was built from source: the wheel holds none that fits."

mapfile -t commands < <(grep -E '^neuron-profile ' README.md | sed 's/ *#.*//' | grep -v -x 'neuron-profile view run.nprof')
for command in "${commands[@]}"; do
    say "$command"
    inside "$command" >"$root/work/log" 2>&1 </dev/null || fail "$command failed: $(tail -3 "$root/work/log")"
done
say "the README's commands work in a bare Debian 12"
