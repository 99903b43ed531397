"""`scan` is one loop of the program, with the values and gradients of calls one after the other."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch
from torch import nn

from neuron_tools.compiler.compile import compile_module
from neuron_tools.compiler.opcodes import ATTENTION_GRADIENT
from neuron_tools.frontends.torch_xla import XlaError, sync
from neuron_tools.frontends.torch_xla.scanning import scan
from tests.unit.compiler.modules import CORE

ROWS = 5


def line_of(comment):
    lines = Path(__file__).read_text().splitlines()
    return next(at for at, text in enumerate(lines, 1) if text.endswith(f"# line: {comment}"))


def running(carried, row):
    """Carries a sum and how many were added; reads a tensor from outside."""
    total, count = carried["total"], carried["count"]
    total = torch.tanh(total @ running.weight) * row[0] + row[1]  # line: running
    return {"total": total, "count": count + 1}, (total.exp(), None, [count])


def both_sums(carried, row):
    carried = carried + row
    return carried, carried


def squares(carried, row):
    return carried, row * row


def written_in_place(carried, row):
    changed = carried.clone().add_(row)
    changed.relu_()
    return changed, changed.t()[0]


def carried_written_in_place(carried, row):
    carried += row.sin()
    return carried, carried


def shares(carried, row):
    """Attention with what was carried as queries."""
    return nn.functional.scaled_dot_product_attention(carried, row, row), None


def by_hand(function, carried, tables):
    made = []
    for at in range(ROWS):
        carried, row = function(carried, tables(at))
        made.append(row)
    return carried, made


def tensors(device):
    generator = torch.Generator().manual_seed(0)
    made = [
        torch.randn(shape, generator=generator).to(device)
        for shape in ((3, 4), (4, 4), (ROWS, 4), (ROWS, 3, 4))
    ]
    return [each.requires_grad_() for each in made]


def run(device, call):
    """Values and gradients of `running`, by `call`."""
    start, weight, scales, added = tensors(device)
    running.weight = weight
    begin = {"total": start, "count": torch.zeros((), dtype=torch.int64).to(device)}
    last, (powers, nothing, (counts,)) = call(begin, scales, added)
    assert nothing is None
    (last["total"].sum() + (powers * powers).mean()).backward()
    sync()
    found = [
        last["total"],
        last["count"],
        powers,
        counts,
        *(each.grad for each in (start, weight, scales, added)),
    ]
    return [each.detach().cpu() for each in found]


def as_loop(begin, scales, added):
    return scan(running, begin, (scales, added))


def one_by_one(begin, scales, added):
    last, made = by_hand(running, begin, lambda at: (scales[at], added[at]))
    return last, (torch.stack([row[0] for row in made]), None, [torch.stack([row[2][0] for row in made])])


def test_values_and_gradients_are_those_of_calls_one_after_the_other(xla):
    for value, expected in zip(run(xla, as_loop), run("cpu", one_by_one), strict=True):
        torch.testing.assert_close(value, expected)


def test_tensors_that_are_not_on_the_device_go_the_same_way():
    for value, expected in zip(run("cpu", as_loop), run("cpu", one_by_one), strict=True):
        torch.testing.assert_close(value, expected)


@pytest.mark.parametrize("function", [both_sums, squares, written_in_place])
def test_what_is_carried_and_what_is_made_may_be_one_or_nothing_new(function, xla):
    def gradients(device, loop):
        start, rows = torch.ones(2, 2).to(device).requires_grad_(), torch.randn(ROWS, 2, 2).to(device)
        rows.requires_grad_()
        last, made = scan(function, start, rows) if loop else by_hand(function, start, lambda at: rows[at])
        made = made if loop else torch.stack(made)
        ((last * last).sum() + (3 * made).sin().sum()).backward()
        return [each.detach().cpu() for each in (last, made, start.grad, rows.grad)]

    torch.manual_seed(1)
    found = gradients(xla, True)
    torch.manual_seed(1)
    for value, expected in zip(found, gradients("cpu", False), strict=True):
        torch.testing.assert_close(value, expected)


@pytest.mark.parametrize("has_gradients", [False, True])
@pytest.mark.parametrize("device", ["cpu", "xla"])
def test_what_is_carried_may_be_written_in_place_and_stays_as_it_was_outside(device, has_gradients, xla):
    start, rows = torch.ones(2).to(device), torch.arange(ROWS * 2.0).view(ROWS, 2).to(device)
    for each in (start, rows):
        each.requires_grad_(has_gradients)
    last, made = scan(carried_written_in_place, start, rows)
    if has_gradients:
        (last.sum() + made.square().sum()).backward()
    expected = rows.detach().cpu().clone().requires_grad_()
    sums = 1 + expected.sin().cumsum(0)
    (sums[-1].sum() + sums.square().sum()).backward()
    assert start.tolist() == [1, 1]
    torch.testing.assert_close(last.detach().cpu(), sums[-1].detach())
    torch.testing.assert_close(made.detach().cpu(), sums.detach())
    if has_gradients:
        torch.testing.assert_close(rows.grad.cpu(), expected.grad)


def test_a_loop_is_compiled_once_however_many_rows_there_are(provider, xla):
    sizes = []
    for rows in (4, 40):
        kept = scan(both_sums, torch.zeros(8).to(xla), torch.ones(rows, 8).to(xla))
        sync()
        sizes.append(len(provider.last.operations))
    assert sizes[0] == sizes[1]
    assert kept[1].shape == (40, 8)
    assert [each.opcode for each in provider.last.operations].count("while") == 1


def test_equal_loops_are_one_graph(counter, xla):
    for _ in range(3):
        kept = scan(both_sums, torch.zeros(8).to(xla), torch.ones(4, 8).to(xla))
        sync()
    assert len(counter.modules) == 1
    assert kept[0].tolist() == [4.0] * 8


def test_numbers_within_a_function_are_no_data(xla):
    found = [scan(lambda total, row, by=by: (total + by * row, None), torch.zeros(2).to(xla),
                  torch.ones(3, 2).to(xla))[0].tolist() for by in (2.0, 5.0)]  # fmt: skip
    assert found == [[6.0, 6.0], [15.0, 15.0]]


def test_work_in_a_loop_stands_at_its_own_lines_in_both_directions(provider, xla):
    run(xla, as_loop)
    rows = provider.last.framework
    inside = [row for row in rows if row.stack and row.stack[0].line == line_of("running")]
    assert {"aten::mm", "aten::tanh"} <= {row.name for row in inside if not row.backward}
    assert any(row.backward for row in inside)
    assert all(row.stack for row in rows)


def test_operations_of_the_chip_stay_whole_in_a_loop(provider, xla):
    start = torch.randn(1, 2, 16, 8).to(xla).requires_grad_()
    last, _ = scan(shares, start, torch.randn(3, 1, 2, 16, 8).to(xla).requires_grad_())
    last.sum().backward()
    sync()
    loops = [each for each in provider.last.operations if each.opcode == "while"]
    inside = [operation for loop in loops for operation in loop.regions[1].operations]
    assert ATTENTION_GRADIENT in {each.opcode for each in inside}
    assert "custom_call" not in {each.opcode for each in inside}
    assert not provider.last.warnings
    assert len(compile_module(provider.last, CORE).instructions)


def test_values_from_before_belong_to_the_program_after_a_loop(xla):
    weight = torch.full((2,), 3.0).to(xla) * 2
    scan(lambda total, row: (total + row * weight, None), torch.zeros(2).to(xla), torch.ones(3, 2).to(xla))
    later = weight + 1
    sync()
    assert later.tolist() == [7.0, 7.0]


def test_a_loop_in_a_loop_gives_the_same(xla):
    def rows(device):
        return torch.arange(24.0).reshape(2, 3, 4).to(device)

    def outer(total, row):
        total, made = scan(both_sums, total, row)
        return total, made

    found = scan(outer, torch.zeros(4).to(xla), rows(xla))
    expected = rows("cpu").reshape(6, 4).cumsum(0)
    assert found[0].tolist() == expected[-1].tolist()
    assert found[1].reshape(6, 4).tolist() == expected.tolist()


WRONG = {
    "no rows": (both_sums, (0, 4), ValueError, "rows"),
    "another shape carried on": (lambda total, row: (total[:2], row), (2, 4), ValueError, r"\[4\].*\[2\]"),
    "another nest carried on": (lambda total, row: ([total], row), (2, 4), ValueError, "nest"),
    "one result": (lambda total, row: total, (2, 4), ValueError, "two values"),
    "a look at a value": (
        lambda total, row: (total + row.sum().item(), None), (2, 4), XlaError, "looks at a value",
    ),
}  # fmt: skip
"""Function, shape of the rows, and what is raised."""


@pytest.mark.parametrize("name", WRONG)
def test_a_wrong_use_gets_one_sentence(name, xla):
    function, shape, kind, text = WRONG[name]
    with pytest.raises(kind, match=text):
        scan(function, torch.zeros(4).to(xla), torch.zeros(shape).to(xla))
    assert (torch.ones(2).to(xla) + 1).tolist() == [2.0, 2.0]


def test_rows_of_different_numbers_and_other_devices_are_refused(xla):
    start, rows = torch.zeros(4).to(xla), torch.zeros(2, 4).to(xla)
    with pytest.raises(ValueError, match="same number of rows"):
        scan(lambda total, row: (total, None), start, [rows, torch.zeros(3, 4).to(xla)])
    with pytest.raises(XlaError, match="cpu"):
        scan(both_sums, torch.zeros(4), rows)


def first_place(carried, row):
    return carried + row, carried * row  # line: first place


def second_place(carried, row):
    return carried + row, carried * row  # line: second place


def test_equal_functions_at_two_places_have_lines_of_their_own(provider, xla):
    rows = torch.ones(ROWS, 8).to(xla)
    one, other = (scan(each, torch.zeros(8).to(xla), rows) for each in (first_place, second_place))
    sync()
    assert torch.equal(one[1].cpu(), other[1].cpu())
    loops = [each for each in provider.last.operations if each.opcode == "while"]
    rows_of = [{row for op in loop.regions[1].operations for row in op.framework} for loop in loops]
    lines = [{provider.last.framework[row].stack[0].line for row in each} for each in rows_of]
    assert line_of("first place") in lines[0]
    assert line_of("second place") in lines[1]
    assert line_of("first place") not in lines[1]


def test_a_graph_with_equal_functions_at_other_lines_is_the_same(provider, xla):
    for function in (first_place, second_place):
        kept = scan(function, torch.zeros(8).to(xla), torch.ones(ROWS, 8).to(xla))
        sync()
    assert kept[1].shape == (ROWS, 8)
    assert provider.executions == [1, 1]


def dropped(carried, row):
    return carried, nn.functional.dropout(row, 0.5)


def test_each_trip_draws_its_own_numbers_and_passes_gradients_by_them(provider, xla):
    rows = torch.ones(ROWS, 64).to(xla).requires_grad_()
    torch.manual_seed(0)
    _, made = scan(dropped, torch.zeros(()).to(xla), rows)
    made.sum().backward()
    sync()
    kept = made.detach().cpu()
    assert len({tuple(row.tolist()) for row in kept}) == ROWS
    assert set(kept.flatten().tolist()) == {0.0, 2.0}
    torch.testing.assert_close(rows.grad.cpu(), kept)
    assert [each.opcode for each in provider.last.operations].count("while") == 2
    assert not provider.last.warnings
