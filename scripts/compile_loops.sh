#!/usr/bin/env bash
# Compiles for a wheel the loops that most programs use, into neuron_tools/compiled_loops of the current folder, which is an
# unpacked source archive: it runs small programs of each kind with numba's cache turned to that folder.
#   compile_loops.sh PYTHON     interpreter of an environment with the extra `all`
# The code is for x86-64-v3 (2013 and later); any other processor, Python or numba compiles its own, as does a changed source.
set -euo pipefail
source scripts/system_packages.sh

python=$1
root=$PWD
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
export PYTHONPATH="$root:$root/profiler:$root/explorer_ui:$root/monitor"
export NUMBA_CACHE_DIR="$scratch/cache" NUMBA_CPU_NAME=x86-64-v3 NUMBA_CPU_FEATURES=
PATH="$(dirname "$python"):$PATH"

profile() { "$python" -m neuron_profile.cli "$@" >"$scratch/log" 2>&1 || fail "neuron-profile $* failed: $(tail -3 "$scratch/log")"; }
capture() { local name=$1; shift; profile capture -o "$scratch/$name.nprof" -- "$python" "$@"; }

small=(--steps 2 --batch 2 --length 32 --width 64 --layers 1)
say "compiling loops for $("$python" --version)"
capture run examples/train_transformer.py "${small[@]}" --compile
capture base examples/train_transformer.py "${small[@]}"
capture kernel examples/nki/softmax.py
for format in summary-text summary-json perfetto chrome; do
    profile view "$scratch/run.nprof" --output-format "$format" --output-file "$scratch/run.$format"
done
profile advise "$scratch/run.nprof"
profile diff "$scratch/base.nprof" "$scratch/run.nprof"
profile import "$scratch/run.chrome" -o "$scratch/imported.nprof"
"$python" scripts/keep_loops.py "$scratch/cache" neuron_tools/compiled_loops
