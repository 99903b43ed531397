#!/usr/bin/env bash
# Captures the example training script on the simulated device, eager and compiled, and shows both summaries.
#   demo.sh [FOLDER]     where the profiles go [demo]; STEPS=N trains for N steps [3]
set -euo pipefail
cd "$(dirname "$0")/.."
source scripts/system_packages.sh

STEPS=${STEPS:-3}
script=examples/train_transformer.py
folder=${1:-demo}
VENV=${VENV:-.venv}

# capture NAME [OPTION...]: the command's own summary goes to NAME.log; both stand side by side below.
capture() {
    local name=$1
    shift
    say "capturing $script ($name, $STEPS steps) on a simulated Trainium2 NeuronCore"
    if ! neuron-profile capture -o "$folder/$name.nprof" -- python "$script" --device neuron --steps "$STEPS" "$@" \
        2>"$folder/$name.log"; then
        cat "$folder/$name.log" >&2
        fail "the capture failed: see the message above."
    fi
}

# The Explorer's drawing code is compiled meanwhile, so that its first page need not wait for it.
python -c "from neuron_explorer.warm_up import compile_loops; compile_loops()" &

mkdir -p "$folder"
rm -rf "$folder"/{eager,compiled}.{nprof,log}
capture eager
capture compiled --compile
wait
echo
neuron-profile view "$folder/eager.nprof" "$folder/compiled.nprof" --output-format summary-text
cat <<END
Open in the browser:    $VENV/bin/neuron-profile view $folder/compiled.nprof
One profile in depth:   $VENV/bin/neuron-profile view $folder/compiled.nprof --output-format summary-text
Ask with SQL:           $VENV/bin/neuron-profile query $folder/compiled.nprof "SELECT opcode, count(*) FROM Instruction GROUP BY 1"
For the Perfetto UI:    $VENV/bin/neuron-profile view $folder/compiled.nprof --output-format perfetto --output-file $folder/compiled.pftrace
END
