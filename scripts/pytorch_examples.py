#!/usr/bin/env python3
"""Captures the scripts of pytorch/examples on the simulated device, unchanged, with small random data.

python scripts/pytorch_examples.py                  all whose packages are here
python scripts/pytorch_examples.py mnist gcn        some

`PYTORCH_EXAMPLES` names a checkout; nothing is fetched. Each example runs in a copy of its folder, by the
arguments that its own test script gives it, with few or small steps. Of each it is told whether it ran to its
end, what part of the device time is at lines of its own files, and what part was lowered natively. The exit
status is 1 where one fails.
"""

from __future__ import annotations

import os
import resource
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from pytorch_examples_data import (
    prepare_citations,
    prepare_digits,
    prepare_photographs,
    prepare_play,
    prepare_style,
    prepare_super_resolution,
    prepare_words,
)

import neuron_tools
from neuron_profile.analysis.hotspots import Hotspots, find_hotspots
from neuron_tools.frozen import frozen
from neuron_tools.profile.reader import Profile

FOLDER = "PYTORCH_EXAMPLES"
PROFILE = "run.nprof"
CPU_SECONDS = 600
"""What a process may take: a limit of the clock would depend on what else the machine does."""
LEAST_SHARE = 0.99
COMMAND = (sys.executable, "-m", "neuron_profile.cli", "capture")
CAPTURE = (*COMMAND, "-o", PROFILE, "--host-clock", "fixed", "--")
_CUSTOM_NS = """
SELECT CAST(coalesce(sum(end_ts - start_ts), 0) AS BIGINT) AS duration_ns
FROM HloInstruction WHERE hlo_opcode = 'custom_call'
"""


def torchrun(ranks: int) -> tuple[str, ...]:
    """What starts so many ranks."""
    return "-m", "torch.distributed.run", "--standalone", "--nproc-per-node", str(ranks)


@dataclass(frozen=True)
class Example:
    """A script, below the folder of its name or `folder`.

    Attributes:
        prepare: Writes its data; called in its folder.
        ranks: How many processes torchrun starts; 0 where it is started by Python.
    """

    script: str = "main.py"
    arguments: Sequence[str] = ()
    folder: str = ""
    prepare: Callable[[], None] = lambda: None
    ranks: int = 0


def _words(kind: str) -> Example:
    arguments = ("--model", kind, "--epochs", "1", "--dry-run", "--accel")
    return Example(arguments=arguments, folder="word_language_model", prepare=prepare_words)


ONE_PASS = ("--epochs", "1", "--dry-run")
PARALLEL = "distributed/tensor_parallelism"
EXAMPLES = {
    "dcgan": Example(arguments=("--dataset", "fake", "--accel", "--dry-run", "--batchSize", "8")),
    "fast_neural_style": Example(
        "neural_style/neural_style.py",
        (
            "eval", "--content-image", "0.jpg",
            "--model", "candy.pth", "--output-image", "candy.jpg", "--accel",
        ),
        prepare=prepare_style,
    ),
    "gat": Example(arguments=ONE_PASS, prepare=prepare_citations),
    "gcn": Example(arguments=ONE_PASS, prepare=prepare_citations),
    "imagenet": Example(
        arguments=("--epochs", "1", "--batch-size", "4", "--workers", "1", "sample/"),
        prepare=prepare_photographs,
    ),
    "mnist": Example(arguments=ONE_PASS, prepare=prepare_digits),
    "mnist_forward_forward": Example(
        arguments=("--epochs", "2", "--train_size", "256", "--test_size", "64"), prepare=prepare_digits
    ),
    "mnist_rnn": Example(arguments=(*ONE_PASS, "--accel"), prepare=prepare_digits),
    "siamese_network": Example(arguments=ONE_PASS, prepare=prepare_digits),
    "super_resolution": Example(
        arguments=(
            "--upscale_factor", "3", "--batchSize", "2", "--testBatchSize", "2", "--nEpochs", "1",
            "--accel", "--threads", "1",
        ),
        prepare=prepare_super_resolution,
    ),
    "vae": Example(arguments=("--epochs", "1"), prepare=prepare_digits),
    "words_lstm": _words("LSTM"),
    "words_gru": _words("GRU"),
    "words_tanh": _words("RNN_TANH"),
    "words_relu": _words("RNN_RELU"),
    "words_transformer": _words("Transformer"),
    "ddp": Example("example.py", folder="distributed/ddp", ranks=2),
    "fsdp2": Example("example.py", folder="distributed/FSDP2", ranks=2),
    "fsdp2_mixed": Example(
        "example.py", ("--explicit-prefetching", "--mixed-precision", "--dcp-api"), "distributed/FSDP2",
        ranks=2,
    ),
    "tensor_parallel": Example("tensor_parallel_example.py", folder=PARALLEL, ranks=2),
    "sequence_parallel": Example("sequence_parallel_example.py", folder=PARALLEL, ranks=2),
    "fsdp_tp": Example("fsdp_tp_example.py", folder=PARALLEL, ranks=4),
    "mingpt_ddp": Example(
        "main.py",
        (
            "data_config.path=play.txt", "data_config.block_size=16", "trainer_config.max_epochs=1",
            "trainer_config.batch_size=8", "trainer_config.data_loader_workers=1",
            "gpt_config.n_layer=2", "gpt_config.n_head=2", "gpt_config.n_embd=32",
        ),
        "distributed/minGPT-ddp/mingpt", prepare_play, 2,
    ),
}  # fmt: skip
"""By name: those that ask `torch.accelerator` for their device, and download nothing but data."""


@frozen
class Outcome:
    """What one example did.

    Attributes:
        problem: Why it did not run, in its last words; empty where it did.
        device_ns: Time on the device.
        own_share: The part of it at lines of the example's files.
        native_share: The part of it in operations with a lowering.
    """

    name: str
    problem: str = ""
    device_ns: float = 0.0
    own_share: float = 0.0
    native_share: float = 0.0

    @property
    def passed(self) -> bool:
        """Whether it ran on the device and its time is at its own lines."""
        return not self.problem and self.device_ns > 0 and self.own_share >= LEAST_SHARE


def run(name: str, checkout: Path) -> Outcome:
    """Capture one example in a copy of its folder."""
    example = EXAMPLES[name]
    with tempfile.TemporaryDirectory() as folder:
        own = Path(folder) / "example"
        shutil.copytree(checkout / (example.folder or name), own)
        ended = _capture(example, own)
        if ended.returncode:
            return Outcome(name, _last_error(ended.stderr))
        with neuron_tools.open_profile(own / PROFILE) as profile:
            return _judge(name, profile, own)


def _capture(example: Example, folder: Path) -> subprocess.CompletedProcess[str]:
    before = Path.cwd()
    os.chdir(folder)
    try:
        example.prepare()
    finally:
        os.chdir(before)
    launcher = torchrun(example.ranks) if example.ranks else ()
    return subprocess.run(
        [*CAPTURE, sys.executable, *launcher, example.script, *example.arguments],
        cwd=folder,
        env={**os.environ, "OMP_NUM_THREADS": "1"},
        capture_output=True,
        text=True,
        preexec_fn=_limit,
    )


def _last_error(text: str) -> str:
    """The last line of a program's errors that names one."""
    lines = [line.strip() for line in text.splitlines() if "Error" in line]
    return lines[-1] if lines else text.strip()[-500:] or "it said nothing"


def _limit() -> None:
    resource.setrlimit(resource.RLIMIT_CPU, (CPU_SECONDS, CPU_SECONDS))


def _judge(name: str, profile: Profile, folder: Path) -> Outcome:
    hotspots = find_hotspots(profile)
    (row,) = profile.query(_CUSTOM_NS).to_pylist()
    whole_ns = max(hotspots.device_ns, 1.0)
    return Outcome(
        name,
        device_ns=hotspots.device_ns,
        own_share=own_ns(hotspots, folder) / whole_ns,
        native_share=1 - row["duration_ns"] / whole_ns,
    )


def own_ns(hotspots: Hotspots, folder: Path) -> float:
    """Device time at lines of files of this folder."""
    places = [(folder / line.place.file, line.cost.device_ns) for line in hotspots.lines]
    return sum(device_ns for file, device_ns in places if file.is_relative_to(folder))


def main(names: Sequence[str]) -> int:
    """Print a line for each; 1 where one fails."""
    if FOLDER not in os.environ:
        print(f"Set {FOLDER} to a checkout of pytorch/examples.", file=sys.stderr)
        return 2
    checkout, passed = Path(os.environ[FOLDER]), 0
    chosen = list(names or EXAMPLES)
    for name in chosen:
        outcome = run(name, checkout)
        passed += outcome.passed
        print(_line(outcome), flush=True)
    print(f"{passed} of {len(chosen)} run, with their time at their own lines")
    return int(passed < len(chosen))


def _line(outcome: Outcome) -> str:
    if outcome.problem:
        return f"{outcome.name:22} failed: {outcome.problem}"
    shares = f"{outcome.own_share:7.2%} at its lines  {outcome.native_share:7.2%} native"
    return f"{outcome.name:22} {outcome.device_ns / 1e6:9.3f} ms  {shares}"


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
