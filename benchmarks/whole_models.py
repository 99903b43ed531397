"""Whole models against the times that AWS publishes for them, beside a roofline.

A call of a traced module is what the device does, what a call costs the runtime, and what crosses PCIe
beyond the outputs inside that figure. A token of a decoder is what one rank does with its cache's whole
bucket, the all-reduces in between, and the host's part: it embeds and samples there. The roofline is given
the same host's part, and counts of a weight no more than what is loaded: of an embedding some rows.

Each row is printed as soon as it is known. `python -m benchmarks.whole_models --keep rows.jsonl` keeps it,
too, and goes on from there when it is started again; `--only TEXT` takes rows whose name holds the text.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Iterator, Sequence
from dataclasses import asdict
from functools import partial
from pathlib import Path

import numpy as np

from benchmarks.figures import Figure
from benchmarks.whole_model_rows import decoder
from benchmarks.whole_model_rows.encoders import traced
from benchmarks.whole_model_rows.judged import Case, Prediction, row_figure, summary
from benchmarks.whole_model_rows.row import newest
from neuron_tools import hardware
from neuron_tools.compiler import compile_module
from neuron_tools.hardware import NeuronCore
from neuron_tools.records.program import Program, TensorKind
from neuron_tools.simulator import simulate

DRAWN_BYTES_PER_S = 272e9
"""What a core draws: 16 DMA engines of 17 GB/s (aws-neuron-sdk, nki-dma-bandwidth-guide.rst)."""
CALL_NS = {"trn1": 142e3, "inf2": 158e3}
"""A call beside its instructions: intercept over layers of published latencies, 0.39 MB of outputs inside."""
OUTPUTS_INSIDE_BYTES = 393_216
TOKEN_NS = 1.5e6
"""The host's part of a token. An estimate chosen on the four `tpot` rows: nobody publishes it."""
SAMPLED_LAYERS = (2, 4)
"""A decoder is as long as the line through two short ones: its layers are equal."""


def run(quick: bool = False) -> list[Figure]:
    """Errors of all rows; `quick` takes one encoder."""
    chosen = encoders()[:1] if quick else [*encoders(), *decoders()]
    return figures_of(list(predicted(chosen, None)))


def figures_of(predictions: Sequence[tuple[Case, Prediction]]) -> list[Figure]:
    """Errors of rows, and what holds of all."""
    return [*(row_figure(case, found) for case, found in predictions), *summary(predictions)]


def predicted(cases: Sequence[Case], keep: Path | None) -> Iterator[tuple[Case, Prediction]]:
    """Cases with their predictions, each printed on standard error when it is known.

    Args:
        keep: A file of predictions that are known already, to which new ones are added.
    """
    known = _kept(keep) if keep else {}
    for case in cases:
        found = known.get(case.row.label) or case.predict()
        if keep and case.row.label not in known:
            with keep.open("a", encoding="utf-8") as file:
                file.write(json.dumps({"row": case.row.label, **asdict(found)}) + "\n")
        figure = row_figure(case, found)
        print(f"{figure.name}: {figure.value:+.1f} % ({figure.note})", file=sys.stderr, flush=True)
        yield case, found


def _kept(keep: Path) -> dict[str, Prediction]:
    """Predictions by the row's name."""
    lines = keep.read_text(encoding="utf-8").splitlines() if keep.exists() else []
    found = [json.loads(line) for line in lines]
    return {item.pop("row"): Prediction(**item) for item in found}


def encoders() -> list[Case]:
    """Traced models. ResNet-50 at batch 8 keeps two workers a core busy, so that copies overlap with work."""
    latencies = [("bert", "trn1", 1), ("bert", "trn1", 16), ("bert", "inf2", 1), ("bert", "inf2", 8),
                 ("vit", "inf2", 1), ("resnet50", "inf2", 1)]  # fmt: skip
    cases = []
    for name, target, batch in latencies:
        row = newest(name, target, batch, "latency")
        cases.append(Case(row, partial(_call, name, batch, target, alone=True), row.value * 1e6))
    row = newest("resnet50", "inf2", 8, "throughput")
    cores = 2
    overlapped = partial(_call, "resnet50", 8, "inf2", alone=False)
    return [*cases, Case(row, overlapped, cores * row.batch / row.value * 1e9)]


def decoders() -> list[Case]:
    """Tokens after the first, and the first of prompts whose attention the software of the row fused."""
    cases = []
    for name in decoder.CONFIGURATIONS:
        for batch in (1, 8):
            row = newest(name, "trn1", batch, "tpot")
            cases.append(Case(row, partial(_token, name, batch, prefill=False), row.value * 1e6))
    for batch in (1, 8):
        row = newest("llama-3-8b", "trn1", batch, "ttft")
        cases.append(Case(row, partial(_token, "llama-3-8b", batch, prefill=True), row.value * 1e6))
    return cases


def _call(name: str, batch: int, target: str, *, alone: bool) -> Prediction:
    core, program = hardware.get(target), traced(name, batch, target)
    host_ns = 0.0
    if alone:
        moved = _byte_count(program, TensorKind.INPUT, TensorKind.OUTPUT)
        host_ns = CALL_NS[target] + max(moved - OUTPUTS_INSIDE_BYTES, 0) / core.host_link_bandwidth * 1e9
    time_ns = simulate(program, core).duration_ps / 1000
    return Prediction(time_ns + host_ns, roofline_ns(program, core) + host_ns)


def _token(name: str, batch: int, *, prefill: bool) -> Prediction:
    core, layers = hardware.get("trn1.32xlarge"), decoder.CONFIGURATIONS[name].layers
    found = []
    for count in SAMPLED_LAYERS:
        module = decoder.step(name, batch, layers=count, prefill=prefill)
        program = compile_module(module, core)  # the host hands the weights over
        found.append((simulate(program, core).duration_ps / 1000, roofline_ns(program, core)))
    times, roofs = zip(*found)
    return Prediction(_line(times, layers) + TOKEN_NS, _line(roofs, layers) + TOKEN_NS)


def _line(values: tuple[float, ...], layers: int) -> float:
    (few, many), (first, second) = SAMPLED_LAYERS, values
    return first + (layers - few) * (second - first) / (many - few)


def roofline_ns(program: Program, core: NeuronCore) -> float:
    """max(FLOPs / peak, bytes of weights, inputs and outputs / what a core draws)."""
    flops = sum(operation.model_flops for operation in program.hlo)
    kinds = (TensorKind.WEIGHT, TensorKind.CONSTANT, TensorKind.INPUT, TensorKind.OUTPUT)
    tensors, dmas = program.tensors, program.dmas
    known = dmas["tensor"] >= 0
    loaded = np.bincount(dmas["tensor"][known], dmas["bytes"][known].astype(float), len(tensors))
    moved = sum(min(item.byte_count, most) for item, most in zip(tensors, loaded) if item.kind in kinds)
    return max(flops / core.peak_tensor_flops, moved / DRAWN_BYTES_PER_S) * 1e9


def _byte_count(program: Program, *kinds: TensorKind) -> int:
    return sum(tensor.byte_count for tensor in program.tensors if tensor.kind in kinds)


def main(arguments: Sequence[str] | None = None) -> None:
    """Predict rows, and print their errors and what holds of them."""
    from benchmarks.__main__ import print_table

    parser = argparse.ArgumentParser(description="Predict whole models, row by row.")
    parser.add_argument("--keep", type=Path, help="file that keeps each row as soon as it is known")
    parser.add_argument("--only", default="", help="take rows whose name holds this text")
    chosen = parser.parse_args(arguments)
    cases = [case for case in (*encoders(), *decoders()) if chosen.only in case.row.label]
    if not cases:
        parser.error(f"No row's name holds '{chosen.only}': leave --only out to see all.")
    print_table("whole_models", figures_of(list(predicted(cases, chosen.keep))))


if __name__ == "__main__":
    main()
