"""Trains a small transformer by parallel schemes and compares each with the same training in one process.

Run by torchrun: `torchrun --nproc_per_node 2 schemes.py ddp fsdp2`. Every rank trains the reference on the
host itself, on the whole batch; it exits with 1 where losses, gradients or parameters differ.
"""

from __future__ import annotations

import sys
import traceback
from collections.abc import Callable
from functools import partial
from pathlib import Path

import torch
import torch.distributed as dist

sys.path.insert(0, str(Path(__file__).parents[3]))
from tests.integration.distributed.training import data_parallel as data, model_parallel as parts, pipelines
from tests.integration.distributed.training.model import BLOCKS, Tensors, Training, reference

Scheme = Callable[[], Training]
SCHEMES: dict[str, Scheme] = {
    "ddp": data.ddp,
    "ddp_static": data.ddp_static,
    "ddp_unused": data.ddp_unused,
    "fsdp1": data.fsdp1,
    "fsdp2": data.fsdp2,
    "fsdp2_not_resharded": data.fsdp2_not_resharded,
    "fsdp2_checkpointed": partial(data.fsdp2, checkpointed=True),
    "fsdp2_mixed": partial(data.fsdp2, mp_policy=data.MIXED),
    "fsdp2_mixed_checkpointed": partial(data.fsdp2, checkpointed=True, mp_policy=data.MIXED),
    "hsdp": data.hsdp,
    "simple_fsdp": partial(data.simply_sharded, compiled=False),
    "tensor_parallel": parts.tensor_parallel,
    "sequence_parallel": parts.sequence_parallel,
    "two_dimensional": parts.two_dimensional,
    "context_parallel_allgather": partial(parts.context_parallel, "allgather"),
    "context_parallel_alltoall": partial(parts.context_parallel, "alltoall"),
    "ring_attention": parts.ring_attention,
    "attention_of_dtensors": parts.attention_of_dtensors,
    "checkpointed": data.checkpointed,
    "compiled_ddp": data.compiled_ddp,
    "compiled_fsdp2": partial(data.fsdp2, compiled=True),
    "compiled_simple_fsdp": partial(data.simply_sharded, compiled=True),
    "compiled_tensor_parallel": partial(parts.tensor_parallel, compiled=True),
}
PIPELINES: dict[str, Scheme] = {
    "gpipe": partial(pipelines.pipeline, "ScheduleGPipe"),
    "1f1b": partial(pipelines.pipeline, "Schedule1F1B"),
    "interleaved_1f1b": partial(pipelines.pipeline, "ScheduleInterleaved1F1B"),
    "looped_breadth_first": partial(pipelines.pipeline, "ScheduleLoopedBFS"),
    "interleaved_zero_bubble": partial(pipelines.pipeline, "ScheduleInterleavedZeroBubble"),
    "v_zero_bubble": partial(pipelines.pipeline, "ScheduleZBVZeroBubble"),
    "dual_pipe_v": partial(pipelines.pipeline, "ScheduleDualPipeV"),
}
TOLERANCE, MIXED_TOLERANCE = 2e-5, 2e-2


def compare(scheme: str, got: Training, wanted: Training) -> None:
    tolerance = MIXED_TOLERANCE if "mixed" in scheme else TOLERANCE
    torch.testing.assert_close(
        torch.tensor(got.losses), torch.tensor(wanted.losses), rtol=tolerance, atol=tolerance
    )
    _compare_tensors("parameter", got.parameters, wanted.parameters, tolerance)
    for step, (found, expected) in enumerate(zip(got.gradients, wanted.gradients, strict=True)):
        _compare_tensors(f"gradient of step {step}, ", found, expected, tolerance)


def _compare_tensors(what: str, found: Tensors, expected: Tensors, tolerance: float) -> None:
    if not found:
        raise AssertionError(f"no {what} at all")
    for name, tensor in found.items():
        at = f"{what} {name}"
        torch.testing.assert_close(
            tensor, expected[name], rtol=tolerance, atol=tolerance, msg=lambda text, at=at: f"{at}: {text}"
        )


def outcome_of(scheme: str) -> str:
    is_pipeline = scheme in PIPELINES
    try:
        trained = (PIPELINES if is_pipeline else SCHEMES)[scheme]()
        compare(scheme, trained, reference(pipelines.BLOCKS if is_pipeline else BLOCKS))
    except Exception as error:
        traceback.print_exc()
        return f"FAILED {type(error).__name__}: {str(error).splitlines()[0]}"
    return "equal"


def main(schemes: list[str]) -> int:
    torch.set_num_threads(1)
    dist.init_process_group("neuron")
    failed = 0
    for scheme in schemes or [*SCHEMES, *PIPELINES]:
        outcome = outcome_of(scheme)
        failed |= outcome != "equal"
        if dist.get_rank() == 0:
            print(f"{scheme}: {outcome}", flush=True)
        dist.barrier()
    dist.destroy_process_group()
    return failed


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
