"""Runs PyTorch's tests of DTensor on neuron tensors.

`torchrun --nproc_per_node 4 dtensor_suite.py FOLDER [PATTERN...]`, FOLDER being `test/distributed/tensor` of
PyTorch's sources (once `_tensor`): those of its tests that take several processes.
"""

from __future__ import annotations

import sys
import unittest
from datetime import timedelta
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parents[3]))
import torch
import torch.distributed as dist
from torch.testing._internal.distributed._tensor import common_dtensor

from tests.integration.distributed.c10d_suite import TIMEOUT_S, chosen, load
from tests.integration.distributed.suite import FOLDER, RANK, SIZE, run_together

FILES = (
    "test_api", "test_common_rules", "test_convolution_ops", "test_dtensor", "test_embedding_ops",
    "test_experimental_ops", "test_init", "test_math_ops", "test_matrix_ops", "test_optimizers",
    "test_pointwise_ops", "test_random_ops", "test_redistribute", "test_tensor_ops", "test_utils",
)  # fmt: skip


class OnNeuron(common_dtensor.DTensorTestBase):  # type: ignore[misc]
    """What PyTorch's base class does for the back ends that it knows."""

    device_type = "neuron"
    world_size = SIZE

    def init_pg(self, *_: Any, **__: Any) -> None:
        """A group of the processes that are there."""
        dist.init_process_group(
            "neuron",
            init_method=f"file://{self.file_name}",
            rank=self.rank,
            world_size=self.world_size,
            timeout=timedelta(seconds=TIMEOUT_S),
        )

    def destroy_pg(self, *_: Any) -> None:
        """All come here."""
        dist.barrier()
        dist.destroy_process_group()


def run_one(kind: type, method: str, _store: dist.Store) -> None:
    """One test method on this rank."""
    test = kind(method)
    test.rank, test.file_name = RANK, str(FOLDER / f"{kind.__name__}.{method}")
    torch.manual_seed(0)
    if test.world_size > RANK:
        getattr(test, method)()


def main(folder: Path, patterns: list[str]) -> int:
    torch.set_num_threads(1)
    FOLDER.mkdir(parents=True, exist_ok=True)
    common_dtensor.DTensorTestBase = OnNeuron
    common_dtensor.DEVICE_TYPE, common_dtensor.NUM_DEVICES = "neuron", SIZE
    modules = [load(folder, name) for name in FILES if (folder / f"{name}.py").exists()]
    for module in modules:
        for name in [name for name, each in vars(module).items() if not _is_ours(each)]:
            delattr(module, name)
    run_together(chosen(modules, patterns, run_one))
    return 0


def _is_ours(each: object) -> bool:
    """Anything but the tests of one process and of threads."""
    is_test = isinstance(each, type) and issubclass(each, unittest.TestCase)
    return not is_test or issubclass(each, OnNeuron)  # type: ignore[arg-type]


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1]), sys.argv[2:]))
