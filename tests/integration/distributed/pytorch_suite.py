"""Runs PyTorch's own distributed tests on the neuron back end, many tests in one set of processes.

`torchrun --nproc_per_node 4 pytorch_suite.py [PATTERN...]`. The tests are those of
`torch.testing._internal.distributed.distributed_test`, taken as for gloo: tests for other back ends skip
themselves. Their tensors are made on the neuron device. Rank 0 prints one JSON line for each test.
"""

from __future__ import annotations

import fnmatch
import os
import sys
from datetime import timedelta
from functools import partial
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[3]))
from tests.integration.distributed.suite import FOLDER, RANK, SIZE, run_together

TIMEOUT_S = 20
for name in ("barrier", "test_dir", "init_dir"):
    (FOLDER / name).mkdir(parents=True, exist_ok=True)
os.environ.update(BACKEND="gloo", TEMP_DIR=str(FOLDER), INIT_METHOD="env://")

import torch  # noqa: E402
import torch.distributed as dist  # noqa: E402
from torch.testing._internal.distributed import distributed_test  # noqa: E402

HOST_TESTS = (
    # Their tensors must stay on the host: checkpoints of it, its own device given by name, sparse layouts.
    "*sparse*",
    "*object*",
)
NOT_FOR_US = {
    "*_cuda*": "takes tensors to CUDA",
    "*nccl*": "NCCL only",
    "test_batch_isend_irecv_op_err": "NCCL only, not marked so",
    "test_batch_isend_irecv_mixed_backend_err": "NCCL only, not marked so",
    "test_SyncBatchNorm_process_group": "needs torchvision",
    "*monitored_barrier*": "torch.distributed refuses it for any back end not named gloo",
    "test_get_backend": "compares the back end's name with gloo",
}


class NeuronDistributed(distributed_test.DistributedTest._DistTestBase, distributed_test.TestDistBackend):  # type: ignore[misc]
    """PyTorch's tests with the processes that are there."""

    def setUp(self) -> None:
        """No processes are started."""

    def tearDown(self) -> None:
        """Nor ended."""


def run_one(name: str, store: dist.Store) -> None:
    """One test in a process group of its own."""
    test = NeuronDistributed(name)
    test.rank = RANK
    test.file_name = str(FOLDER / name)
    on_host = any(fnmatch.fnmatch(name, pattern) for pattern in HOST_TESTS)
    backend = "cpu:gloo,neuron:neuron" if on_host else "neuron"
    timeout = timedelta(seconds=TIMEOUT_S)
    dist.init_process_group(backend, store=store, rank=RANK, world_size=SIZE, timeout=timeout)
    torch.set_default_device("cpu" if on_host else "neuron")
    try:
        getattr(test, name)()
    finally:
        torch.set_default_device("cpu")


def main(patterns: list[str]) -> int:
    torch.set_num_threads(1)
    distributed_test.default_pg_timeout = TIMEOUT_S
    names = [name for name in dir(NeuronDistributed) if name.startswith("test_")]
    wanted = [name for name in names if any(fnmatch.fnmatch(name, p) for p in patterns or ["*"])]
    chosen = [name for name in wanted if not any(fnmatch.fnmatch(name, p) for p in NOT_FOR_US)]
    run_together((name, partial(run_one, name)) for name in chosen)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
