"""Ranks that disagree are told so, each with rank, collective and line, and can go on."""

from __future__ import annotations

import pytest

from tests.integration.distributed.jobs import run, torchrun

SCRIPT = """
import sys, torch, torch.distributed as dist
dist.init_process_group("neuron")
rank = dist.get_rank()
x = torch.ones(8, device="neuron")
cases = {
    "order": lambda: dist.all_reduce(x) if rank == 0 else dist.broadcast(x, 0),
    "size": lambda: dist.all_reduce(x[: 4 + rank]),
    "dtype": lambda: dist.all_reduce(x if rank == 0 else x.half()),
    "reduction": lambda: dist.all_reduce(x, op=dist.ReduceOp.SUM if rank == 0 else dist.ReduceOp.MAX),
    "root": lambda: dist.broadcast(x, rank),
    "splits": lambda: dist.all_to_all_single(torch.ones(8, device="neuron"), x, [4, 4], [3 + rank, 5 - rank]),
}
for name, case in cases.items():
    try:
        case()
    except RuntimeError as error:
        sys.stdout.write(f"{rank} {name}: {error}\\n")  # one write: both ranks share a pipe
dist.all_reduce(x)
sys.stdout.write(f"{rank} after: {x.tolist()}\\n")
dist.destroy_process_group()
"""


@pytest.fixture(scope="module")
def told(tmp_path_factory):
    """What each rank was told, by (rank, case)."""
    folder = tmp_path_factory.mktemp("mismatches")
    script = folder / "job.py"
    script.write_text(SCRIPT, encoding="utf-8")
    done = run(torchrun(script, 2), folder)
    assert done.returncode == 0, done.stderr[-2000:]
    lines = [line.partition(": ") for line in done.stdout.splitlines()]
    return {tuple(name.split()): text for name, _, text in lines}


@pytest.mark.parametrize(
    ("case", "line", "first", "second"),
    [
        ("order", 7, "all_reduce of 8 float32", "broadcast of 8 float32 from rank 0"),
        ("size", 8, "all_reduce of 4 float32", "all_reduce of 5 float32"),
        ("dtype", 9, "all_reduce of 8 float32", "all_reduce of 8 float16"),
        ("reduction", 10, "all_reduce of 8 float32", "all_reduce of 8 float32 with MAX"),
        ("root", 11, "broadcast of 8 float32 from rank 0", "broadcast of 8 float32 from rank 1"),
    ],
)
def test_both_sides_are_named_to_every_rank(told, case, line, first, second):
    for rank, other in ((0, 1), (1, 0)):
        text = told[str(rank), case]
        assert "of ranks [0, 1] does not match" in text
        mine, theirs = (first, second) if rank == 0 else (second, first)
        sides = f"rank {rank} calls {mine} at job.py:{line}, rank {other} calls {theirs} at job.py:{line}"
        assert sides in text


def test_an_all_to_all_tells_who_sends_what_is_not_taken(told):
    for rank in ("0", "1"):
        assert (
            "rank 0 (all_to_all_single of 8 float32 at job.py:12) sends 3 elements to rank 0"
            in told[rank, "splits"]
        )


def test_the_group_goes_on(told):
    assert told["0", "after"] == told["1", "after"] == str([2.0] * 8)
