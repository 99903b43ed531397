"""What collectives refuse at the call."""

from __future__ import annotations

import pytest
import torch
import torch.distributed as dist

from neuron_tools.device.distributed import checks
from neuron_tools.device.distributed.errors import InvalidCallError

ONE, TWO, DOUBLE = torch.zeros(1), torch.zeros(2), torch.zeros(1, dtype=torch.float64)
SPARSE = torch.sparse_coo_tensor([[0]], [1.0], size=(1,))


@pytest.mark.parametrize(
    ("check", "told"),
    [
        (lambda: checks.check_root("gather", -1, 4), "gather: invalid root rank -1"),
        (lambda: checks.check_root("gather", 4, 4), "ranks are 0 to 3"),
        (lambda: checks.check_root_tensor("broadcast", 1, [ONE]), "invalid root tensor 1"),
        (lambda: checks.check_alike("all_reduce", []), "requires non-empty tensor list"),
        (lambda: checks.check_alike("all_reduce", [ONE, DOUBLE]), "invalid tensor type torch.float64"),
        (lambda: checks.check_alike("all_reduce", [ONE, TWO]), r"invalid tensor size \[2\], not \[1\]"),
        (lambda: checks.check_alike("all_reduce", [ONE, SPARSE]), "invalid tensor layout torch.sparse_coo"),
        (lambda: checks.check_reduction("all_reduce", [SPARSE], dist.ReduceOp.MAX), "only SUM"),
        (lambda: checks.check_coalesced("all_reduce_coalesced", [ONE, DOUBLE]), "all have the same type"),
        (lambda: checks.check_coalesced("all_reduce_coalesced", [ONE, SPARSE]), "layout at index 1"),
        (lambda: checks.check_coalesced("all_reduce_coalesced", [SPARSE]), "unsupported layout"),
        (
            lambda: checks.check_single("scatter", "output tensor list", []),
            "single-element output tensor list",
        ),
        (lambda: checks.check_gathered("all_gather", [], [], 2), "non-empty input tensor list"),
        (lambda: checks.check_gathered("all_gather", [], [ONE], 2), "to have the same length"),
        (
            lambda: checks.check_gathered("all_gather", [[ONE]], [ONE], 2),
            "invalid output tensor list at index 0",
        ),
        (lambda: checks.check_gathered("all_gather", [[ONE, TWO]], [ONE], 2), "invalid tensor size"),
        (lambda: checks.check_gathered_lists("g", [[ONE]], [ONE], 2), "equal to world size: 1 for 2 ranks"),
        (lambda: checks.check_gathered_lists("g", [[TWO]], [ONE], 1), "size of output tensor at index 0"),
        (lambda: checks.check_gathered_lists("g", [[DOUBLE]], [ONE], 1), "tensor type at index 0"),
    ],
)
def test_what_cannot_be_done_is_refused_with_the_reason(check, told):
    with pytest.raises(InvalidCallError, match=told):
        check()


def test_the_root_alone_has_a_tensor_for_each_rank():
    def check(lists, *, is_root):
        checks.check_at_root("scatter", "input", lists, ONE, is_root=is_root, size=2)

    check([[ONE, ONE]], is_root=True)
    check([], is_root=False)
    for lists, is_root, told in (
        ([[ONE]], True, "Incorrect input list size 1. Input list size should be 2"),
        ([], True, "single-element input list"),
        ([[ONE, DOUBLE]], True, "invalid tensor type"),
        ([[ONE, ONE]], False, "requires empty input on non-root"),
    ):
        with pytest.raises(InvalidCallError, match=told):
            check(lists, is_root=is_root)


def test_what_can_be_done_passes():
    checks.check_root("gather", 3, 4)
    checks.check_root_tensor("broadcast", 1, [ONE, ONE])
    checks.check_alike("all_reduce", [SPARSE, SPARSE])
    checks.check_reduction("all_reduce", [SPARSE], dist.ReduceOp.SUM)
    checks.check_coalesced("all_reduce_coalesced", [ONE, TWO])
    checks.check_gathered("all_gather", [[ONE] * 4, [ONE] * 4], [ONE, ONE], 2)
    checks.check_gathered_lists("all_gather_coalesced", [[ONE, TWO]] * 3, [ONE, TWO], 3)
