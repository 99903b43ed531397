"""Lines of a backward pass in which tensor subclasses, hooks and the program's own thread take part."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

import neuron_tools
from tests.integration.commands.capturing import Workplace

SCRIPT = """\
import torch
import torch.distributed as dist
from torch.distributed.tensor import Replicate, distribute_tensor, init_device_mesh

dist.init_process_group("neuron", rank=0, world_size=1, store=dist.HashStore())
mesh = init_device_mesh("neuron", (1,))
torch.autograd.set_multithreading_enabled(False)
plain = torch.randn(64, 64, device="neuron", requires_grad=True)
shared = distribute_tensor(torch.randn(64, 64, device="neuron"), mesh, [Replicate()]).requires_grad_()
first = plain.exp().sum()  # PLAIN
product = shared @ shared  # PRODUCT
shared.register_hook(lambda grad: grad.to_local().sinh())  # HOOK
(first + product.to_local().sum()).backward()  # CALL
dist.destroy_process_group()
"""


def line_of(mark: str) -> int:
    return next(number for number, text in enumerate(SCRIPT.splitlines(), 1) if text.endswith(f"# {mark}"))


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("lines")
    workplace = Workplace(folder)
    workplace.script("lines.py", SCRIPT)
    answer = workplace.capture(sys.executable, "lines.py", options=("-o", "run.nprof"))
    assert answer.returncode == 0, answer.stderr
    return folder


@pytest.mark.parametrize(("operation", "mark"), [("aten::mm", "PRODUCT"), ("aten::sinh", "HOOK")])
@pytest.mark.parametrize("table", ["HloInstruction", "MemoryEvent"])
def test_work_of_a_backward_pass_stands_at_its_line(
    folder: Path, table: str, operation: str, mark: str
) -> None:
    with neuron_tools.open_profile(folder / "run.nprof") as profile:
        rows = profile.query(
            f"SELECT DISTINCT source_line FROM {table} WHERE framework_name = '{operation}' AND is_backward"
        ).to_pylist()
    assert [row["source_line"] for row in rows] == [line_of(mark)]
