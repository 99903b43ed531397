"""A recorded graph partitioned over cores: collectives, sizes of parts, and where results lie."""

from __future__ import annotations

import pytest
import torch

from neuron_tools.compiler.opcodes import ATTENTION_GRADIENT
from neuron_tools.compiler.passes.attention import find_attention
from neuron_tools.compiler.passes.pipeline import optimise
from neuron_tools.frontends.torch_xla import XlaTensor, spread, sync
from neuron_tools.frontends.torch_xla.barrier import put_barrier
from neuron_tools.frontends.torch_xla.marking import mark, move
from neuron_tools.frontends.torch_xla.sharding import Sharding

CORES = 2
ROWS, COLUMNS = Sharding.of((CORES, 1), range(CORES)), Sharding.of((1, CORES), range(CORES))


@pytest.fixture
def spread_over_two(provider, xla, monkeypatch):
    monkeypatch.setattr(spread, "_on", [True])
    monkeypatch.setattr(spread, "core_count", lambda: CORES)
    yield provider
    sync()


def marked(values, sharding, device="xla"):
    tensor = values.to(device)
    assert isinstance(tensor, XlaTensor)
    mark(tensor, sharding)
    return tensor


def shapes(module):
    return [module.values[value].type.shape for value in module.parameters]


def opcodes(module):
    return [operation.opcode for operation in module.operations]


def test_gradients_of_rows_on_each_core_are_added_up(spread_over_two):
    weight = torch.nn.Parameter(torch.rand(4, 6).to("xla"))
    rows = marked(torch.rand(8, 4), ROWS)
    (rows @ weight).square().sum().backward()
    sync()
    module = spread_over_two.last
    assert sorted(shapes(module)) == [(4, 4), (4, 6)]
    assert "all_reduce" in opcodes(module)
    assert weight.grad.lazy.sharding == Sharding()
    expected = rows.cpu().t() @ (2 * rows.cpu() @ weight.detach().cpu())
    assert torch.allclose(weight.grad.cpu(), expected)


def test_results_lie_as_the_partitioner_chose_and_so_does_the_next_graph(spread_over_two):
    rows, weight = torch.rand(8, 4).to("xla"), marked(torch.rand(4, 6), COLUMNS)
    product = rows @ weight
    sync()
    assert product.lazy.sharding == COLUMNS
    assert [part.shape for part in product.lazy.parts] == [(8, 3)] * CORES
    total = product + 1
    sync()
    assert shapes(spread_over_two.last) == [(8, 3)]
    assert total.lazy.sharding == COLUMNS


def test_a_weight_that_is_written_keeps_its_place(spread_over_two):
    weight, rows = marked(torch.rand(4, 6), COLUMNS), marked(torch.rand(4, 6), ROWS)
    parts = [part.data_ptr() for part in weight.lazy.parts or []]
    weight.add_(rows)
    sync()
    assert spread_over_two.last.aliases == ((0, 0),)
    assert shapes(spread_over_two.last) == [(4, 3), (2, 6)]
    assert weight.lazy.sharding == COLUMNS
    assert parts == []  # it was copied to the cores when the graph needed it


def test_a_mark_in_the_graph_moves_a_result(spread_over_two):
    rows = marked(torch.rand(8, 4), ROWS)
    result = rows.exp()
    mark(result, COLUMNS)
    after = result * 2
    sync()
    assert "all_to_all" in opcodes(spread_over_two.last)
    assert after.lazy.sharding == COLUMNS
    assert torch.equal(after.cpu(), rows.cpu().exp() * 2)


def test_a_tensor_from_before_the_graph_is_moved_by_it(spread_over_two):
    rows = marked(torch.rand(8, 4), ROWS)
    move(rows, COLUMNS)
    after = rows * 2
    sync()
    assert shapes(spread_over_two.last) == [(4, 4)]
    assert "all_to_all" in opcodes(spread_over_two.last)
    assert rows.lazy.sharding == after.lazy.sharding == COLUMNS


def test_what_torch_mlir_must_not_see_stands_where_it_belongs(spread_over_two):
    rows = marked(torch.rand(8, 4), ROWS)
    first = torch.erf(torch.erf(rows) + 1)
    put_barrier([first])
    last = torch.erf(first @ torch.ones(4, 4).to("xla"))
    sync()
    module = spread_over_two.last
    assert not module.warnings
    functions = [each for each in opcodes(module) if each in ("erf", "activation", "optimization_barrier")]
    assert len(functions) == 4
    assert last.lazy.sharding == ROWS


def test_an_operator_without_a_lowering_is_named(spread_over_two):
    inverse = torch.linalg.inv_ex(marked(torch.eye(4), ROWS))[0]
    sync()
    assert any("aten::linalg_inv_ex" in warning for warning in spread_over_two.last.warnings)
    assert torch.equal(inverse.cpu(), torch.eye(4))


def test_on_one_core_a_program_is_what_it_would_be_without(spread_over_two, monkeypatch):
    monkeypatch.setattr(spread, "core_count", lambda: 1)
    rows = marked(torch.rand(8, 4), Sharding.of((1, 1), [0]))
    result = rows.exp()
    mark(result, Sharding.of((1, 1), [0]))
    after = result + 1
    sync()
    assert "custom_call" not in opcodes(spread_over_two.last)
    assert [row.name for row in spread_over_two.last.framework] == ["aten::exp", "aten::add"]
    assert result.lazy.sharding == Sharding()
    assert torch.equal(after.cpu(), rows.cpu().exp() + 1)


def attended(sharding, dtype=torch.float32, mask=None, batches=4):
    """Attention and its gradients on the device, and on the CPU: (batches, 4, 48, 16)."""
    torch.manual_seed(0)
    given = [torch.randn(batches, 4, 48, 16, dtype=dtype) for _ in range(3)]
    on_device = [marked(tensor, sharding).requires_grad_() for tensor in given]
    on_host = [tensor.clone().requires_grad_() for tensor in given]
    attend = torch.nn.functional.scaled_dot_product_attention
    for tensors, hides in ((on_device, None if mask is None else mask.to("xla")), (on_host, mask)):
        attend(*tensors, attn_mask=hides, is_causal=mask is None).square().sum().backward()
    sync()
    return [tensor.grad for tensor in on_device], [tensor.grad for tensor in on_host]


@pytest.mark.parametrize("counts", [(CORES, 1, 1, 1), (1, CORES, 1, 1)], ids=["batch", "heads"])
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
@pytest.mark.parametrize("mask", [None, torch.randn(4, 1, 48, 48)], ids=["causal", "mask of all heads"])
def test_attention_stays_whole_on_each_core(spread_over_two, counts, dtype, mask):
    sharding = Sharding.of(counts, range(CORES))
    gradients, expected = attended(sharding, dtype, mask=None if mask is None else mask.to(dtype))
    module = spread_over_two.last
    (backward,) = [each for each in module.operations if each.opcode == ATTENTION_GRADIENT]
    part = (4 // counts[0], 4 // counts[1], 48, 16)
    assert {module.shape_of(result) for result in backward.results[:3]} == {part}
    assert [row.name for row in (module.framework[at] for at in backward.framework)] == [
        "aten::_scaled_dot_product_fused_attention_overrideable_backward"
    ]
    assert len(find_attention(optimise(module))) == 1
    assert not {"all_gather", "all_to_all"} & set(opcodes(module))
    assert gradients[0].lazy.sharding == sharding
    for gradient, right in zip(gradients, expected):
        assert torch.allclose(gradient.cpu(), right, atol=1e-2 if dtype is torch.bfloat16 else 1e-5)


def test_attention_of_batches_that_the_cores_do_not_divide_is_padded(spread_over_two):
    gradients, expected = attended(Sharding.of((CORES, 1, 1, 1), range(CORES)), batches=3)
    module = spread_over_two.last
    (backward,) = [each for each in module.operations if each.opcode == ATTENTION_GRADIENT]
    assert {module.shape_of(result) for result in backward.results[:3]} == {(2, 4, 48, 16)}
    assert all(torch.allclose(one.cpu(), other, atol=1e-5) for one, other in zip(gradients, expected))


def test_attention_whose_rows_are_cut_gathers_them(spread_over_two):
    gradients, expected = attended(Sharding.of((1, 1, CORES, 1), range(CORES)))
    module = spread_over_two.last
    (backward,) = [each for each in module.operations if each.opcode == ATTENTION_GRADIENT]
    assert {module.shape_of(result) for result in backward.results} == {(4, 4, 48, 16)}
    assert all(torch.allclose(one.cpu(), other, atol=1e-5) for one, other in zip(gradients, expected))
