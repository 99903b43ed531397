"""Runs PyTorch's tests of c10d with gloo (`test_c10d_common.py`, `test_c10d_gloo.py`) on the neuron back end.

`torchrun --nproc_per_node 4 c10d_suite.py FOLDER [PATTERN...]`, FOLDER being `test/distributed` of PyTorch's
sources. The files are read with "neuron" in the place of "gloo", and of "cuda" in the tests for GPUs; the
other tests make their tensors on the neuron device.
"""

from __future__ import annotations

import fnmatch
import os
import re
import sys
import types
from collections.abc import Callable, Iterator
from contextlib import nullcontext
from datetime import timedelta
from functools import partial
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parents[3]))
import torch
import torch.distributed as dist
from torch.testing._internal.common_distributed import MultiProcessTestCase
from torch.testing._internal.common_utils import TestCase

from tests.integration.distributed.suite import FOLDER, RANK, run_together

TIMEOUT_S = 30
REPLACED = (
    (r"@skip_if_lt_x_gpu\(\d+\)", ""),
    (r"\.cuda\([^)]*\)", '.to("neuron")'),
    (r'"cuda:%d" % (self\.rank|0|int_devices\[0\])', 'f"neuron:{torch.neuron.current_device()}"'),
    (r'torch\.device\("cuda:" \+ str\(i\)\)', 'torch.device("neuron", i)'),
    (r'f"cuda:\{[^}]*\}"', 'f"neuron:{torch.neuron.current_device()}"'),
    (r"/cuda:\{self\.rank\}", "/neuron:{torch.neuron.current_device()}"),
    (r'device="cuda"', 'device="neuron"'),
    (r"device=self\.rank\b", 'device="neuron"'),
    (r"\.to\(self\.rank\)", '.to("neuron")'),
    (r"device_ids=\[self\.rank\]", "device_ids=None"),
    (r"gpus_for_rank\(self\.world_size\)\[self\.rank\]\[0\]", "torch.neuron.current_device()"),
    (r"gpus_for_rank\(self\.world_size\)\[self\.rank\]\[:1\]", "[torch.neuron.current_device()]"),
    (r"torch\.cuda\.set_device\([^)]*\)", "None"),
    (r"torch\.cuda\.current_device\(\)", '"neuron"'),
    (r"torch\.cuda\.", "torch.neuron."),
    (r'"gloo"', '"neuron"'),
    (r"backend\.create_device\([^)]*\)", "None"),  # gloo's choice of a network interface
)
HOST_TESTS = (
    "*sparse*", "*.test_allreduce_coalesced_checks",  # no neuron tensor is sparse
    "ReducerTest.*", "*_cpu_module*", "*.test_ignored_output*",  # some tensors are always on the host
)  # fmt: skip
NOT_FOR_US = {
    "PythonProcessGroupExtensionTest.*": "a back end of the test's own",
    "LocalRankTest.*": "needs no back end",
    "*sparse*_cuda*": "no neuron tensor is sparse",
    "*.test_set_gloo_pg_timeout": "asks gloo for its own options",
    "*.test_sequence_num_*": "torch.distributed refuses it for any back end that it does not know",
    "*.test_gloo_backend_[24]gpu_module": "several devices in one process",
    "*.test_monitored_barrier": "torch.distributed refuses it for any back end not named gloo",
    "*.test_init_process_group_for_all_backends": "goes through all back ends; PyTorch's `fake` fails",
}


class DefaultDevice:
    """New tensors go to the neuron device inside."""

    def __enter__(self) -> None:
        torch.set_default_device("neuron")

    def __exit__(self, *_: object) -> None:
        torch.set_default_device(None)


def load(folder: Path, name: str) -> types.ModuleType:
    """A test file as a module, with the back end exchanged."""
    text = (folder / f"{name}.py").read_text(encoding="utf-8")
    for pattern, instead in REPLACED:
        text = re.sub(pattern, instead, text)
    module = types.ModuleType(name)
    module.__file__ = str(folder / f"{name}.py")
    sys.modules[name] = module
    exec(compile(text, module.__file__, "exec", dont_inherit=True), module.__dict__)
    return module


def create_group(test: Any, store: dist.Store, *_: object) -> Any:
    """The back end itself, in the place of a ProcessGroupGloo; the group where functions of c10d take it."""
    dist.init_process_group(
        "neuron",
        store=store,
        rank=test.rank,
        world_size=test.world_size,
        timeout=timedelta(seconds=TIMEOUT_S),
    )
    dist.barrier()
    takes_group = "allgather_coalesced_checks" in test.id()
    return dist.group.WORLD if takes_group else dist.group.WORLD._get_backend(torch.device("neuron"))


def run_one(kind: type, method: str, _store: dist.Store) -> None:
    """One test method on this rank."""
    test = kind(method)
    on_host = any(fnmatch.fnmatch(f"{kind.__name__}.{method}", pattern) for pattern in HOST_TESTS)
    if not issubclass(kind, MultiProcessTestCase):
        if RANK == 0:
            run_alone(test, method, on_host=on_host)
        return
    test.rank, test.file_name = RANK, str(FOLDER / f"{kind.__name__}.{method}")
    if test.rank < test.world_size:
        with nullcontext() if on_host else DefaultDevice():
            getattr(test, method)()


def run_alone(test: Any, method: str, *, on_host: bool) -> None:
    """A test that needs one process."""
    os.environ.pop("TORCHELASTIC_USE_AGENT_STORE", None)  # it may begin a job of its own
    test.setUp()
    try:
        with nullcontext() if on_host else DefaultDevice():
            getattr(test, method)()
    finally:
        test.tearDown()


def chosen(
    modules: list[types.ModuleType], patterns: list[str], run: Callable[[type, str, dist.Store], None]
) -> Iterator[tuple[str, Callable[[dist.Store], object]]]:
    """Names of the modules' tests that fit one of the patterns, and how to run them."""
    for module in modules:
        own = [each for each in vars(module).values() if getattr(each, "__module__", "") == module.__name__]
        for kind in own:
            for method in dir(kind) if isinstance(kind, type) and issubclass(kind, TestCase) else ():
                name = f"{kind.__name__}.{method}"
                wanted = any(fnmatch.fnmatch(name, pattern) for pattern in patterns or ["*"])
                refused = any(fnmatch.fnmatch(name, pattern) for pattern in NOT_FOR_US)
                if method.startswith("test") and wanted and not refused:
                    yield name, partial(run, kind, method)


def main(folder: Path, patterns: list[str]) -> int:
    torch.set_num_threads(1)
    FOLDER.mkdir(parents=True, exist_ok=True)
    dist.distributed_c10d.default_pg_timeout = timedelta(seconds=TIMEOUT_S)
    modules = [load(folder, name) for name in ("test_c10d_common", "test_c10d_gloo")]
    modules[1].ProcessGroupGlooTest._create_process_group_gloo = create_group
    run_together(chosen(modules, patterns, run_one))
    return 0


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1]), sys.argv[2:]))
