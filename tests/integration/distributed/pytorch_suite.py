"""Runs PyTorch's own distributed tests on the neuron back end, many tests in one set of processes.

`torchrun --nproc_per_node 3 pytorch_suite.py [PATTERN...]`. The tests are those of
`torch.testing._internal.distributed.distributed_test`, taken as for gloo: tests for other back ends skip
themselves. Their tensors are made on the neuron device. Rank 0 prints one JSON line for each test.
"""

from __future__ import annotations

import fnmatch
import json
import os
import sys
import tempfile
import traceback
import unittest
from datetime import timedelta
from pathlib import Path
from typing import Any

RANK, SIZE = int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"])
TIMEOUT_S = 20
FOLDER = Path(tempfile.gettempdir()) / f"neuron-distributed-{os.getppid()}"
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


def outcome_of(name: str, store: dist.Store) -> str:
    """Run one test in a process group of its own: "pass", "skip ..." or "fail ..."."""
    test = NeuronDistributed(name)
    test.rank = RANK
    test.file_name = str(FOLDER / name)
    prefix = dist.PrefixStore(name, store)
    os.environ["TORCH_DISTRIBUTED_DEBUG"] = "OFF"
    dist.set_debug_level(dist.DebugLevel.OFF)
    on_host = any(fnmatch.fnmatch(name, pattern) for pattern in HOST_TESTS)
    try:
        dist.init_process_group(
            "neuron", store=prefix, rank=RANK, world_size=SIZE, timeout=timedelta(seconds=TIMEOUT_S)
        )
        torch.set_default_device("cpu" if on_host else "neuron")
        getattr(test, name)()
        return "pass"
    except unittest.SkipTest as skip:
        return f"skip {skip}"
    except SystemExit as skip:
        return f"skip exit {skip.code}"
    except BaseException as error:
        if RANK == 0 or os.environ.get("VERBOSE"):
            traceback.print_exc()
        lines = str(error).splitlines() or [""]
        return f"fail {type(error).__name__}: {lines[0]}"
    finally:
        torch.set_default_device("cpu")
        leave()


def leave() -> None:
    """End the test's groups, whatever state they are in."""
    try:
        if dist.is_initialized():
            dist.destroy_process_group()
    except Exception as error:
        print(f"rank {RANK}: leaving: {error}", file=sys.stderr)


def meet(store: dist.Store, name: str, outcome: str) -> list[str]:
    """All ranks' outcomes."""
    store.set(f"outcome/{name}/{RANK}", outcome)
    return [store.get(f"outcome/{name}/{rank}").decode() for rank in range(SIZE)]


def worst(outcomes: list[str]) -> str:
    """The outcome of a test: a failure of any rank is one."""
    order: dict[str, int] = {"fail": 0, "pass": 1, "skip": 2}
    return min(outcomes, key=lambda outcome: order[outcome.split()[0]])


def main(patterns: list[str]) -> int:
    torch.set_num_threads(1)
    distributed_test.default_pg_timeout = TIMEOUT_S
    store = dist.TCPStore("127.0.0.1", int(os.environ["MASTER_PORT"]) + 1, SIZE, RANK == 0)
    store.set_timeout(timedelta(seconds=300))
    names = [name for name in dir(NeuronDistributed) if name.startswith("test_")]
    wanted = [name for name in names if any(fnmatch.fnmatch(name, p) for p in patterns or ["*"])]
    chosen = [name for name in wanted if not any(fnmatch.fnmatch(name, p) for p in NOT_FOR_US)]
    results: dict[str, Any] = {}
    for name in chosen:
        outcomes = meet(store, name, outcome_of(name, store))
        results[name] = worst(outcomes)
        if RANK == 0:
            print(json.dumps({"test": name, "outcome": results[name]}), flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
