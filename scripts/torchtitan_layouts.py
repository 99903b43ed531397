#!/usr/bin/env python3
"""Trains Llama 3 with TorchTitan's own train.py as one rank of many, and compares with the closed form.

python scripts/torchtitan_layouts.py                 all layouts
python scripts/torchtitan_layouts.py llama3_70b      one

`NEURON_TOOLS_TORCHTITAN` names a checkout of pytorch/torchtitan that fits the installed PyTorch, with texts
in `tests/assets/c4_test/data.json`; `NEURON_TOOLS_TORCHTITAN_PACKAGES` may name a folder with the packages
that it asks for. Nothing is fetched, and TorchTitan is as it is. The shapes of the parameters and the layout
tell what a rank keeps and what it brings to collectives: the profile must say the same, or the exit status
is 1.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from collections import Counter
from dataclasses import dataclass
from math import ceil
from pathlib import Path

import neuron_tools
from neuron_profile.analysis.memory_holders import by_category, find_memory_holders
from neuron_tools.errors import NeuronToolsError
from neuron_tools.frozen import frozen
from neuron_tools.profile.reader import Profile

FOLDER, PACKAGES = "NEURON_TOOLS_TORCHTITAN", "NEURON_TOOLS_TORCHTITAN_PACKAGES"
EDITS = "torchtitan_edits"
BF16, FP32 = 2, 4
STEPS = 2
ARGUMENTS = (
    "--training.local_batch_size", "1", "--training.steps", str(STEPS),
    "--activation_checkpoint.mode", "full", "--dataloader.dataset", "c4_test",
    "--hf-assets-path", "./tests/assets/tokenizer", "--profiler.no-enable-profiling",
    "--metrics.no-enable-tensorboard", "--compile.no-enable",
)  # fmt: skip
"""Of train.py: data and tokenizer of its own tests, one sequence, no compiler."""
_COLLECTIVES = """
SELECT operation, len(string_split(replica_group, ',')) AS ranks, input_size, output_size, count(*) AS calls
FROM CcOp WHERE operation IN ('AllGather', 'ReduceScatter') GROUP BY ALL
"""
# Gradients that nothing gave back: those of the last step.
_GRADIENTS = """
SELECT CAST(coalesce(sum(size), 0) AS BIGINT) AS byte_count
FROM MemoryEvent AS taken WHERE category = 'gradient' AND NOT EXISTS (
    SELECT 1 FROM MemoryEvent AS given
    WHERE given.kind = 'free' AND given.address = taken.address AND given.event_idx > taken.event_idx
)
"""
# Inputs of checkpointed blocks that are held when a backward pass begins: what the embedding or a block gave.
_BLOCK_INPUTS = """
WITH begin AS (
    SELECT min(event_idx) AS event_idx FROM MemoryEvent WHERE category = 'gradient'
), held AS (
    SELECT * FROM MemoryEvent AS taken, begin
    WHERE category = 'activation' AND taken.event_idx < begin.event_idx AND NOT EXISTS (
        SELECT 1 FROM MemoryEvent AS given WHERE given.kind = 'free' AND given.address = taken.address
            AND given.event_idx BETWEEN taken.event_idx AND begin.event_idx
    )
)
SELECT CAST(coalesce(sum(size), 0) AS BIGINT) AS byte_count FROM held
WHERE regexp_matches(layer, '/tok_embeddings$|/layers/[0-9]+/_checkpoint_wrapped_module$')
"""


@dataclass(frozen=True, order=True, slots=True)
class Exchange:
    """What a rank brings to a collective, and gets from it."""

    operation: str
    ranks: int
    input_bytes: int
    output_bytes: int


@frozen
class Layout:
    """A model, and how ranks share it: sharded by FSDP2, each product split by tensor parallelism.

    Attributes:
        config: TorchTitan's name of it.
        module: Where TorchTitan finds that name: its own, or `torchtitan_edits` beside this script.
        key_width: Of all heads of keys together.
        sharded: Ranks that share each parameter.
        tensor: Ranks that share each product.
    """

    config: str
    module: str
    width: int
    hidden: int
    key_width: int
    layers: int
    vocabulary: int
    sequence: int
    sharded: int
    tensor: int

    @property
    def ranks(self) -> int:
        """Of the job."""
        return self.sharded * self.tensor

    @property
    def tokens(self) -> int:
        """Of a step of the job: one sequence for the ranks that share its products."""
        return self.sharded * self.sequence

    @property
    def block(self) -> list[tuple[int, int]]:
        """Rows and columns of a block's parameters on one rank of a product; norms are whole on each."""
        width, tensor = self.width, self.tensor
        attention = [
            (width // tensor, width),
            *[(self.key_width // tensor, width)] * 2,
            (width, width // tensor),
        ]
        forward = [*[(self.hidden // tensor, width)] * 2, (width, self.hidden // tensor)]
        return [*attention, *forward, (width, 1), (width, 1)]

    @property
    def embedding(self) -> list[tuple[int, int]]:
        """The same of the embedding, and of the head."""
        return [(self.vocabulary // self.tensor, self.width)]

    def gathered(self, parameters: list[tuple[int, int]]) -> int:
        """Elements of parameters whose rows are padded to a multiple of the ranks that share them."""
        return self.sharded * sum(ceil(rows / self.sharded) * columns for rows, columns in parameters)

    def exchanges(self) -> Counter[Exchange]:
        """The large collectives of one step, with how many there are.

        Each block's parameters are gathered forward and backward. Each of its two halves gathers the sequence
        and scatters it again: forward, when all of it is computed again, and the other way round backward.
        The embedding and the loss do so once.
        """
        block, embedding = self.gathered(self.block), self.gathered(self.embedding)
        activations = BF16 * self.sequence * self.width
        part = activations // self.tensor
        return Counter(
            {
                self._gather(block): 2 * self.layers,
                self._scatter(block): self.layers,
                self._gather(embedding): 2,
                self._scatter(embedding): 2,
                Exchange("AllGather", self.tensor, part, activations): 6 * self.layers + 2,
                Exchange("ReduceScatter", self.tensor, activations, part): 6 * self.layers + 2,
            }
        )

    def _gather(self, elements: int) -> Exchange:
        return Exchange("AllGather", self.sharded, BF16 * elements // self.sharded, BF16 * elements)

    def _scatter(self, elements: int) -> Exchange:
        return Exchange("ReduceScatter", self.sharded, FP32 * elements, FP32 * elements // self.sharded)

    def parameter_bytes(self, rank: int = 0) -> int:
        """A rank's elements of all parameters, which are kept in single precision."""
        return FP32 * self._elements(rank)

    def optimizer_bytes(self, rank: int = 0) -> int:
        """Two moments of each of a rank's elements, and a count of steps for each parameter."""
        return FP32 * (2 * self._elements(rank) + len(self._parameters))

    def gradient_bytes(self) -> int:
        """A rank's part of all gradients, in single precision, with the rows that fill the last shards."""
        norm = self.gathered([(self.width, 1)])
        elements = self.layers * self.gathered(self.block) + 2 * self.gathered(self.embedding) + norm
        return FP32 * elements // self.sharded

    def block_input_bytes(self) -> int:
        """What full checkpointing keeps for the backward pass: each block's input, a part of the sequence."""
        return self.layers * (BF16 * self.sequence * self.width // self.tensor)

    @property
    def _parameters(self) -> list[tuple[int, int]]:
        """Rows and columns of every parameter on one rank of a product."""
        return [*self.block * self.layers, *self.embedding * 2, (self.width, 1)]

    def _elements(self, rank: int) -> int:
        place = rank // self.tensor
        return sum(self._rows(rows, place) * columns for rows, columns in self._parameters)

    def _rows(self, rows: int, place: int) -> int:
        each = ceil(rows / self.sharded)
        return max(0, min(each, rows - place * each))


LAYOUTS = {
    each.config: each
    for each in (
        Layout("llama3_debugmodel", "llama3", 256, 768, 256, 6, 2_048, 2_048, sharded=4, tensor=2),
        Layout("llama3_70b", "llama3", 8_192, 28_672, 1_024, 80, 128_256, 8_192, sharded=128, tensor=8),
        Layout("llama3_405b_bf16", EDITS, 16_384, 53_248, 1_024, 126, 128_256, 8_192, sharded=128, tensor=8),
    )
}


def missing() -> str:
    """Why nothing can run here; empty where it can."""
    folder = os.environ.get(FOLDER)
    return "" if folder and Path(folder, "torchtitan/train.py").is_file() else f"{FOLDER} names no checkout"


class TrainingError(NeuronToolsError):
    """TorchTitan's train.py, or its capture, failed."""


def capture(layout: Layout, profile: Path) -> None:
    """Train as rank 0 of the layout.

    Raises:
        TrainingError: It failed.
    """
    options = ["--world-size", str(layout.ranks), "--run-ranks", "0", "--values", "skip"]
    options += ["--tokens-per-step", str(layout.tokens)]
    options += ["--host-clock", "fixed", "--target", "trn2.48xlarge", "-o", str(profile)]
    training = [sys.executable, "-m", "torchtitan.train", *ARGUMENTS, "--config", layout.config]
    training += ["--module", layout.module, "--parallelism.tensor_parallel_degree", str(layout.tensor)]
    training += ["--dump_folder", str(profile.parent / "outputs")]
    folder = os.environ[FOLDER]
    own = os.environ.get("PYTHONPATH")
    folders = (folder, os.environ.get(PACKAGES), own, str(Path(__file__).parent))
    path = os.pathsep.join(filter(None, folders))
    command = [sys.executable, "-m", "neuron_profile.cli", "capture", *options, "--", *training]
    status = subprocess.run(command, cwd=folder, env={**os.environ, "PYTHONPATH": path}).returncode
    if status:
        message = f"{layout.config} was not trained (exit status {status}): its last lines above say why"
        raise TrainingError(f"{message}; {FOLDER} and {PACKAGES} must fit the installed PyTorch.")


def differences(layout: Layout, profile: Profile) -> list[str]:
    """What the profile says otherwise than the closed form."""
    found: Counter[Exchange] = Counter()
    for row in profile.query(_COLLECTIVES).to_pylist():
        exchange = Exchange(row["operation"], row["ranks"], row["input_size"], row["output_size"])
        found[exchange] = row["calls"]
    wrong = [
        f"{exchange}: {found[exchange]} calls, not {STEPS * calls}"
        for exchange, calls in sorted(layout.exchanges().items())
        if found[exchange] != STEPS * calls
    ]
    return [*wrong, *memory_differences(layout, profile)]


def memory_differences(layout: Layout, profile: Profile) -> list[str]:
    """What the profile says otherwise of what a rank keeps.

    Parameters and the optimizer's state are held when most is, in the backward pass of the second step;
    inputs of blocks when a backward pass begins, and gradients when it has ended.
    """
    holders = find_memory_holders(profile)
    held = {each.category: each.byte_count for each in by_category(holders)}
    for category, query in (("gradient", _GRADIENTS), ("block input", _BLOCK_INPUTS)):
        held[category] = profile.query(query).to_pylist()[0]["byte_count"]
    expected = {
        "parameter": layout.parameter_bytes(),
        "optimizer": layout.optimizer_bytes(),
        "gradient": layout.gradient_bytes(),
        "block input": layout.block_input_bytes(),
    }
    return [
        f"{category}: {held.get(category, 0)} bytes, not {bytes_}"
        for category, bytes_ in expected.items()
        if held.get(category, 0) != bytes_
    ]


def check(layout: Layout) -> list[str]:
    """Capture a layout, and tell what is otherwise than the closed form."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, f"{layout.config}.nprof")
        capture(layout, path)
        with neuron_tools.open_profile(path) as profile:
            return differences(layout, profile)


def main() -> int:
    """Check the layouts named, or all."""
    if reason := missing():
        print(f"Skipped: {reason}.")
        return 0
    names = sys.argv[1:] or [*LAYOUTS]
    if unknown := [name for name in names if name not in LAYOUTS]:
        print(f"Error: there is no layout {unknown[0]}; choose from {', '.join(LAYOUTS)}.", file=sys.stderr)
        return 2
    try:
        results = [tell(name) for name in names]
    except TrainingError as error:
        print(f"Error: {error}", file=sys.stderr)
        return 1
    return int(not all(results))


def tell(name: str) -> bool:
    """Print how a layout compares with the closed form; whether it is the same."""
    wrong = check(LAYOUTS[name])
    print("\n".join([f"{name}: {'differs' if wrong else 'as the closed form'}", *wrong]), flush=True)
    return not wrong


if __name__ == "__main__":
    sys.exit(main())
