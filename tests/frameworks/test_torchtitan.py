"""TorchTitan's own train.py, unchanged, on real ranks of the device: losses of its CPU run with gloo.

Llama 3, and DeepSeek V3 with its experts on two ranks: their tokens go to and fro between these. And what one
rank alone, without values, tells of a run of four.

`NEURON_TOOLS_TORCHTITAN` names a checkout and `NEURON_TOOLS_TORCHTITAN_PACKAGES` a folder with the packages
that it asks for, as for `scripts/torchtitan_layouts.py`.
"""

from __future__ import annotations

import functools
import os
import re
import subprocess
import sys
from collections import defaultdict
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import mean

import pytest

import neuron_tools
from neuron_profile.analysis.hotspots import find_hotspots
from neuron_profile.analysis.job_step import JobStep, measure_job_step

sys.path.append(str(Path(__file__).parents[2] / "scripts"))

import torchtitan_layouts

CHECKOUT = os.environ.get(torchtitan_layouts.FOLDER, "")
PACKAGES = os.environ.get(torchtitan_layouts.PACKAGES, "")
ON_CPU = (str(Path(__file__).parent / "torchtitan_scripts" / "cpu_train.py"),)
TRAINING = ("-m", "torchtitan.train")
CAPTURE = (sys.executable, "-m", "neuron_profile.cli", "capture")
CPU = {"TORCH_DEVICE_BACKEND_AUTOLOAD": "0", "TORCHDYNAMO_DISABLE": "1"}
STEPS = 3
ARGUMENTS = (
    "--training.steps", str(STEPS), "--training.local_batch_size", "2", "--dataloader.dataset", "c4_test",
    "--hf-assets-path", "./tests/assets/tokenizer", "--profiler.no-enable-profiling",
    "--metrics.no-enable-tensorboard", "--metrics.disable_color_printing", "--checkpoint.enable",
    "--checkpoint.interval", "100",
)  # fmt: skip
Arguments = tuple[str, ...]


@dataclass(frozen=True)
class Model:
    """What is trained.

    Attributes:
        tolerance: Relative: parameters and activations are bfloat16, and products are split where ranks share
            them; in a mixture, each expert's products and the router's choices are.
    """

    arguments: Arguments
    tolerance: float


@dataclass(frozen=True)
class Layout:
    """How many ranks train it, and which part of it each has."""

    model: Model
    ranks: int
    arguments: Arguments = ()


LLAMA = Model(
    ("--module", "llama3", "--config", "llama3_debugmodel", "--training.seq_len", "256"), tolerance=2e-4
)
MIXTURE = Model(
    ("--module", "deepseek_v3", "--config", "deepseek_v3_debugmodel", "--training.seq_len", "128"),
    tolerance=1e-3,
)
FLOAT8 = Model(
    ("--module", "llama3", "--config", "llama3_debugmodel_float8_emulate_lora", "--training.seq_len", "256"),
    tolerance=1e-3,
)
"""Products of torchao's float8, in emulation as elsewhere than on CUDA, below low-rank adapters."""
TENSOR_OVER_TWO = ("--parallelism.tensor_parallel_degree", "2")
LAYOUTS = {
    "sharded": Layout(LLAMA, 2),
    "sharded_and_tensor": Layout(LLAMA, 4, TENSOR_OVER_TWO),
    "sharded_and_context": Layout(LLAMA, 4, ("--parallelism.context_parallel_degree", "2")),
    "sharded_and_pipeline": Layout(LLAMA, 4, ("--parallelism.pipeline_parallel_degree", "2")),
    "experts": Layout(MIXTURE, 2, ("--parallelism.expert_parallel_degree", "2")),
    "float8": Layout(FLOAT8, 2),
    "float8_and_tensor": Layout(FLOAT8, 4, TENSOR_OVER_TWO),
    "asynchronous_tensor": Layout(
        LLAMA, 4, (*TENSOR_OVER_TWO, "--parallelism.enable_async_tensor_parallel", "--compile.enable")
    ),
}
"""All train on the same texts, as two ranks share the parameters in each."""
REPLICATED = (
    "--parallelism.data_parallel_replicate_degree",
    "4",
    "--parallelism.data_parallel_shard_degree",
    "1",
)
ONE_FORWARD_ONE_BACKWARD = (
    "--parallelism.pipeline_parallel_degree", "2", "--parallelism.pipeline_parallel_schedule", "1F1B",
)  # fmt: skip
PREDICTED = {
    **{name: each for name, each in LAYOUTS.items() if each.ranks == 4},
    "sharded": Layout(LLAMA, 4),
    "tensor": Layout(LLAMA, 4, ("--parallelism.tensor_parallel_degree", "4")),
    "context": Layout(LLAMA, 4, ("--parallelism.context_parallel_degree", "4", "--training.seq_len", "512")),
    "replicated": Layout(LLAMA, 4, REPLICATED),
    "sharded_and_replicated": Layout(LLAMA, 4, ("--parallelism.data_parallel_replicate_degree", "2")),
    "one_forward_one_backward": Layout(LLAMA, 4, ONE_FORWARD_ONE_BACKWARD),
    "context_and_tensor": Layout(
        LLAMA,
        4,
        ("--parallelism.context_parallel_degree", "2", *TENSOR_OVER_TWO),
    ),
    "experts_on_two": Layout(MIXTURE, 4, ("--parallelism.expert_parallel_degree", "2")),
    "experts_on_four": Layout(MIXTURE, 4, ("--parallelism.expert_parallel_degree", "4")),
    "experts_and_tensor": Layout(
        MIXTURE,
        4,
        ("--parallelism.expert_parallel_degree", "2", *TENSOR_OVER_TWO),
    ),
}
PREDICTION_TOLERANCE = 0.03
"""Of the step and of bytes held: values choose how many tokens each expert gets."""
MOVED = """
SELECT rank, operation, len(string_split(replica_group, ',')) AS ranks, count(*) AS calls,
    CAST(sum(input_size) AS BIGINT) AS brought, CAST(sum(output_size) AS BIGINT) AS got
FROM CcOp JOIN ProcessInfo USING (process_idx) GROUP BY ALL
"""
LOGGED = re.compile(r"step: +(\d+) +loss: +(-?[\d.]+) +grad_norm: +([\d.]+)")

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(bool(torchtitan_layouts.missing()), reason=torchtitan_layouts.missing()),
]


def train(
    ranks: int, folder: Path, *arguments: str, training: Sequence[str] = TRAINING,
    launcher: Sequence[str] = (), **variables: str,
) -> str:  # fmt: skip
    """What the ranks print."""
    torchrun = ("-m", "torch.distributed.run", "--standalone", "--nproc-per-node", str(ranks))
    return start([*launcher, sys.executable, *torchrun, *training], folder, *arguments, **variables)


def start(command: Sequence[str], folder: Path, *arguments: str, **variables: str) -> str:
    """What a command that starts TorchTitan prints."""
    path = os.pathsep.join(filter(None, (CHECKOUT, PACKAGES, os.environ.get("PYTHONPATH"))))
    own = {**os.environ, "PYTHONPATH": path, "OMP_NUM_THREADS": "1", **variables}
    whole = [*command, *ARGUMENTS, *arguments, "--dump_folder", str(folder)]
    ended = subprocess.run(whole, cwd=CHECKOUT, env=own, capture_output=True, text=True)
    assert ended.returncode == 0, ended.stdout[-2000:] + ended.stderr[-4000:]
    return ended.stdout + ended.stderr


def logged(output: str) -> list[tuple[float, float]]:
    """Loss and norm of the gradients in each step; ranks without the last stage say a loss below zero."""
    steps = {
        int(step): (float(loss), float(norm))
        for step, loss, norm in LOGGED.findall(output)
        if float(loss) > 0
    }
    assert sorted(steps) == list(range(1, STEPS + 1)), output[-4000:]
    return [steps[step] for step in sorted(steps)]


@dataclass(frozen=True)
class Reference:
    """A model's first parameters and its run on the CPU.

    Attributes:
        arguments: To begin with these parameters in each layout, by TorchTitan's seed checkpoint.
        steps: Of two ranks.
    """

    arguments: Arguments
    steps: list[tuple[float, float]]


@pytest.fixture(scope="module")
def reference(tmp_path_factory: pytest.TempPathFactory) -> Callable[[Model], Reference]:
    """Makes a model's, once."""

    @functools.cache
    def make(model: Model) -> Reference:
        folder = tmp_path_factory.mktemp("cpu")
        train(1, folder, *model.arguments, "--checkpoint.create_seed_checkpoint", training=ON_CPU, **CPU)
        path = str(folder / "checkpoint" / "step-0")
        begin = "--checkpoint.initial_load_path", path, "--checkpoint.last_save_model_only"
        output = train(2, folder / "run", *model.arguments, *begin, training=ON_CPU, **CPU)
        return Reference((*model.arguments, *begin), logged(output))

    return make


@pytest.mark.parametrize("captured", [False, True], ids=["alone", "captured"])
@pytest.mark.parametrize("layout", LAYOUTS)
def test_losses_are_the_cpus(
    layout: str, captured: bool, reference: Callable[[Model], Reference], tmp_path: Path
) -> None:
    model, ranks = LAYOUTS[layout].model, LAYOUTS[layout].ranks
    known = reference(model)
    path = tmp_path / "run.nprof"
    capture = (*CAPTURE, "-o", str(path), "--")
    arguments = (*known.arguments, *LAYOUTS[layout].arguments)
    output = train(ranks, tmp_path, *arguments, launcher=capture if captured else ())
    assert "NEURON capacity" in output
    assert "Peak FLOPS used for computing MFU: 1.580e+14" in output, "TorchTitan's of a logical core of trn2"
    for found, on_cpu in zip(logged(output), known.steps, strict=True):
        assert found == pytest.approx(on_cpu, rel=model.tolerance)
    if captured:
        assert_lines_are_torchtitans(path, ranks)


def assert_lines_are_torchtitans(path: Path, ranks: int) -> None:
    with neuron_tools.open_profile(path) as profile:
        hotspots = find_hotspots(profile)
        (row,) = profile.query(
            "SELECT count(DISTINCT rank) AS ranks FROM CcOp JOIN ProcessInfo USING (process_idx)"
        ).to_pylist()
    own = [line for line in hotspots.lines if line.place.file.startswith(("torchtitan", CHECKOUT))]
    assert sum(line.cost.device_ns for line in own) / hotspots.device_ns > 0.999
    assert row["ranks"] == ranks


@pytest.mark.parametrize("layout", PREDICTED)
def test_ranks_alone_predict_the_run_of_four(layout: str, tmp_path: Path) -> None:
    alone, together = tmp_path / "alone.nprof", tmp_path / "together.nprof"
    ranks, given = PREDICTED[layout].ranks, (*PREDICTED[layout].model.arguments, *PREDICTED[layout].arguments)
    capture = (*CAPTURE, "--host-clock", "fixed", "--detail", "operations")
    job = ("--world-size", str(ranks), "--values", "skip", "-o", str(alone), "--")
    given = (*given, "--checkpoint.no-enable")  # which lacks the shards of ranks that do not run
    start([*capture, *job, sys.executable, *TRAINING], tmp_path / "alone", *given)
    train(ranks, tmp_path / "together", *given, launcher=[*capture, "-o", str(together), "--"])
    (predicted, moved_alone), (found, moved) = step_and_moved(alone), step_and_moved(together)
    within = functools.partial(pytest.approx, rel=PREDICTION_TOLERANCE)
    assert predicted.step_ns == within(found.step_ns)
    by_rank = {each.rank: each for each in found.ranks}
    for each in predicted.ranks:
        assert each.peak_bytes == within(by_rank[each.rank].peak_bytes)
        exposed_ns = pytest.approx(by_rank[each.rank].exposed_ns, abs=PREDICTION_TOLERANCE * found.step_ns)
        assert each.exposed_ns == exposed_ns
    assert moved_alone == means(moved, [each.rank for each in predicted.ranks])


Moved = dict[tuple[int, str, int], tuple[float, ...]]


def means(moved: Moved, first: Sequence[int]) -> Moved:
    """Of each of these ranks and those that it stands for: one rank's experts get more tokens than another's.

    Args:
        first: One rank of each stage of the pipeline, in order.
    """
    alike: dict[tuple[int, str, int], list[tuple[float, ...]]] = defaultdict(list)
    for (rank, operation, ranks), each in moved.items():
        alike[max(one for one in first if one <= rank), operation, ranks].append(each)
    return {key: tuple(map(mean, zip(*each, strict=True))) for key, each in alike.items()}


def step_and_moved(path: Path) -> tuple[JobStep, Moved]:
    """A typical step; and calls and bytes of each rank's collectives, by operation and ranks of the group."""
    with neuron_tools.open_profile(path) as profile:
        step = measure_job_step(profile)
        rows = profile.query(MOVED).to_pylist()
    assert step is not None
    return step, {
        (row["rank"], row["operation"], row["ranks"]): (row["calls"], row["brought"], row["got"])
        for row in rows
    }
