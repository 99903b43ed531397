"""A training step is one graph: compiled once, with its operations' lines, modules and directions."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch
from torch import nn
from torch.utils.checkpoint import checkpoint

from neuron_tools.compiler.opcodes import ATTENTION_GRADIENT
from neuron_tools.compiler.passes.attention import find_attention
from neuron_tools.compiler.passes.pipeline import optimise
from neuron_tools.frontends.torch_hooks import modules
from neuron_tools.frontends.torch_xla import METRICS, execution, sync
from neuron_tools.neff import read_neff

OPTIMIZERS = {
    "SGD": lambda parameters: torch.optim.SGD(parameters, lr=0.1, momentum=0.9),
    "Adam": torch.optim.Adam,
    "AdamW": torch.optim.AdamW,
}


class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.first = nn.Linear(8, 16)
        self.last = nn.Linear(16, 4)

    def forward(self, value):
        hidden = torch.relu(self.first(value))  # line: hidden
        return self.last(hidden)


class Doubled(torch.autograd.Function):
    @staticmethod
    def forward(ctx, value):
        return value.exp() * 2  # line: forward

    @staticmethod
    def backward(ctx, gradient):
        return gradient.sin() * 2  # line: backward


def doubled(value):
    return Doubled.apply(value)  # line: apply


def doubled_sine(value):
    value = value.exp()  # line: exponential
    return value.sin()  # line: sine


def train(device, make_optimizer, end_step, sizes=(6, 6, 6)):
    generator = torch.Generator().manual_seed(0)
    torch.manual_seed(0)
    model = Model().to(device)
    optimizer = make_optimizer(model.parameters())
    losses = []
    for size in sizes:
        inputs = torch.randn(size, 8, generator=generator).to(device)
        targets = torch.randint(0, 4, (size,), generator=generator).to(device)
        optimizer.zero_grad()
        loss = nn.functional.cross_entropy(model(inputs), targets)
        loss.backward()
        optimizer.step()
        end_step()
        losses.append(loss.detach())
    return [loss.item() for loss in losses]


@pytest.mark.parametrize("name", OPTIMIZERS)
def test_losses_are_the_cpus(name, xla):
    expected = train(torch.device("cpu"), OPTIMIZERS[name], lambda: None)
    assert train(xla, OPTIMIZERS[name], sync) == expected


def test_equal_steps_are_one_graph_that_runs_each_time(counter, xla):
    train(xla, OPTIMIZERS["SGD"], sync, sizes=(6,) * 4)
    assert counter.executions[-3:] == [counter.executions[-1]] * 3
    assert len(counter.modules) <= 2  # momentum begins in the first step


def test_a_step_compiled_again_tells_the_cause(counter, xla):
    train(xla, OPTIMIZERS["SGD"], sync, sizes=(6, 6, 7, 8))
    assert METRICS.causes[-1] == "new shape: input 2 is float32[8,8], not float32[7,8]"


def test_a_new_number_is_data_and_a_new_index_is_a_new_graph(counter, xla):
    tensor = torch.ones(8, 8).to(xla)
    for number in (2.0, 3.0):
        result = tensor * number
        sync()
    assert len(counter.modules) == 1
    for index in (2, 3):
        result = tensor[index] + 1
        sync()
    assert result.shape == (8,)
    assert len(counter.modules) == 3
    assert METRICS.causes[-1] == "new constant: aten::select.int has 3, not 2"


def test_operations_have_line_module_and_direction(provider, xla, device):
    remove = modules.install(device, device.define_module)
    try:
        train(xla, OPTIMIZERS["SGD"], sync, sizes=(6,))
    finally:
        remove()
    rows = provider.last.framework
    hidden = [row for row in rows if row.stack and row.stack[0].line == line_of("hidden")]
    assert {row.backward for row in hidden} == {False, True}
    assert {row.module_path for row in hidden} == {"Model", "Model.first"}
    assert all(row.stack for row in rows)


def test_gradients_of_a_function_stand_at_its_own_lines(provider, xla):
    value = torch.ones(4, 4).to(xla).requires_grad_()
    doubled(value).sum().backward()
    sync()
    stacks = {row.name: [frame.line for frame in row.stack] for row in provider.last.framework}
    assert stacks["aten::exp"][:2] == [line_of("forward"), line_of("apply")]
    assert stacks["aten::sin"][:2] == [line_of("backward"), line_of("apply")]


def test_gradients_of_what_is_computed_again_stand_at_its_lines(provider, xla):
    before = torch.ones(4).to(xla).requires_grad_()
    for _ in range(64):  # its operations have the numbers that those of a backward pass begin with
        before = before + 1
    value = torch.ones(4, 4).to(xla).requires_grad_()
    checkpoint(doubled_sine, value, use_reentrant=True).sum().backward()
    sync()
    rows = [row for row in provider.last.framework if row.backward]
    lines = {row.name: row.stack[0].line for row in rows}
    assert before.shape == (4,)
    assert lines["aten::cos"] == line_of("sine")
    assert lines["aten::exp"] == line_of("exponential")


def test_rows_chosen_by_number_are_part_of_the_graph_and_by_a_mask_end_it(provider, xla):
    table = torch.arange(12.0).reshape(4, 3).to(xla)
    rows = table[torch.tensor([2, 0]).to(xla)] + 1
    assert not provider.modules
    sync()
    assert {row.name for row in provider.last.framework} == {"aten::index", "aten::add"}
    assert rows.tolist() == [[7, 8, 9], [1, 2, 3]]
    assert table[table[:, 0] > 5].tolist() == [[6, 7, 8], [9, 10, 11]]
    assert METRICS.counters["aten::index"] == 1


@pytest.mark.parametrize(
    ("name", "make", "shape"),
    [
        ("aten::histc", lambda xla: torch.histc(torch.ones(4, dtype=torch.int32).to(xla), 4, 0, 3), 4),
        (
            "aten::_grouped_mm",
            lambda xla: torch._grouped_mm(
                torch.ones(8, 16).to(xla), torch.ones(2, 16, 8).to(xla),
                offs=torch.tensor([3, 8], dtype=torch.int32).to(xla),
            ),
            8,
        ),
    ],
)  # fmt: skip
def test_what_the_cpu_has_no_kernel_for_is_part_of_the_graph(provider, xla, name, make, shape):
    result = make(xla)
    sync()
    assert result.shape[0] == shape
    assert {row.name for row in provider.last.framework} == {name}
    assert not provider.last.warnings


def line_of(mark):
    """The line of this file that ends with a mark."""
    lines = Path(__file__).read_text(encoding="utf-8").splitlines()
    return next(number for number, text in enumerate(lines, 1) if text.endswith(f"# line: {mark}"))


def test_what_nobody_holds_is_not_computed(provider, xla):
    tensor = torch.ones(4, 4).to(xla)
    tensor.exp()
    kept = tensor.sin()
    sync()
    assert [row.name for row in provider.last.framework] == ["aten::sin"]
    assert kept.shape == (4, 4)


def test_a_look_runs_what_was_recorded(counter, xla):
    tensor = torch.ones(4).to(xla) + 1
    assert not counter.executions
    assert tensor.sum().item() == 8.0
    assert counter.executions == [1]


def test_graphs_are_compiled_into_the_folder_that_is_named(xla, tmp_path, monkeypatch):
    monkeypatch.setenv("NEURON_COMPILE_CACHE_URL", str(tmp_path))
    for _ in range(2):
        value = torch.ones(128, 384).to(xla)
        (value @ value.T).sum().item()
    (kept,) = tmp_path.glob("MODULE_*/model.neff")
    assert read_neff(kept).program.instructions.size


def test_graphs_are_not_compiled_without_a_folder(xla, monkeypatch):
    monkeypatch.delenv("NEURON_COMPILE_CACHE_URL", raising=False)
    METRICS.clear()
    torch.ones(96, 32).to(xla).sum().item()
    assert "CompiledGraphs" not in METRICS.counters


def test_a_graph_that_cannot_be_compiled_is_a_warning(xla, tmp_path, monkeypatch):
    (tmp_path / "file").touch()
    monkeypatch.setenv("NEURON_COMPILE_CACHE_URL", str(tmp_path / "file"))
    with pytest.warns(RuntimeWarning, match="cannot be written"):
        assert torch.full((4, 7), 2.0).to(xla).sum().item() == 56


def test_a_graph_that_cannot_be_lowered_is_a_warning(xla, tmp_path, monkeypatch):
    def refuse(*_):
        raise ValueError("no such operator")

    monkeypatch.setenv("NEURON_COMPILE_CACHE_URL", str(tmp_path))
    monkeypatch.setattr(execution, "lower_recorded", refuse)
    with pytest.warns(RuntimeWarning, match="could not be compiled.*no such operator"):
        assert torch.full((4, 5), 2.0).to(xla).sum().item() == 40


@pytest.mark.parametrize(
    "mask", [torch.ones(48, 48).tril() > 0, torch.zeros(48, 48), torch.ones(4, 48, 48) > 0]
)
def test_attention_with_a_mask_of_few_dimensions_is_one_operation_each_way(xla, provider, mask):
    tensors = [torch.rand(2, 4, 48, 32).to(xla).requires_grad_() for _ in range(3)]
    mask = mask.to(xla)
    nn.functional.scaled_dot_product_attention(*tensors, attn_mask=mask).square().sum().backward()
    sync()
    assert [each.opcode for each in provider.last.operations].count(ATTENTION_GRADIENT) == 1
    assert len(find_attention(optimise(provider.last))) == 1
    on_host = [tensor.detach().cpu().requires_grad_() for tensor in tensors]
    nn.functional.scaled_dot_product_attention(*on_host, attn_mask=mask.cpu()).square().sum().backward()
    for tensor, right in zip(tensors, on_host):
        assert torch.allclose(tensor.grad.cpu(), right.grad, atol=1e-5)


@pytest.mark.parametrize(
    ("query", "key", "value"),
    [
        ((1, 4, 2, 8), (5, 4, 3, 8), (5, 4, 3, 8)),
        ((5, 1, 2, 8), (5, 4, 3, 8), (5, 4, 3, 8)),
        ((5, 4, 2, 8), (5, 1, 3, 8), (5, 1, 3, 8)),
        ((5, 4, 2, 8), (5, 4, 3, 8), (1, 4, 3, 8)),
        ((5, 4, 2, 8), (4, 3, 8), (4, 3, 8)),
    ],
)
def test_attention_broadcasts_batches_and_heads(xla, query, key, value):
    on_host = [torch.rand(shape).requires_grad_() for shape in (query, key, value)]
    tensors = [tensor.detach().to(xla).requires_grad_() for tensor in on_host]
    made = [nn.functional.scaled_dot_product_attention(*operands) for operands in (tensors, on_host)]
    for each in made:
        each.square().sum().backward()
    assert torch.allclose(made[0].cpu(), made[1], atol=1e-5)
    for tensor, right in zip(tensors, on_host):
        assert torch.allclose(tensor.grad.cpu(), right.grad, atol=1e-5)


def test_attention_whose_heads_are_joined_without_a_copy_is_compiled(xla, provider):
    """As in transformers: `contiguous` copies nothing where the CPU's kernel lays heads out side by side."""
    query, *others = torch.rand(2, 64, 3 * 128).to(xla).requires_grad_().split(128, dim=2)
    query = query.view(2, 64, 4, 32).transpose(1, 2)
    cached = (other.view(2, 64, 4, 32).transpose(1, 2).contiguous() for other in others)
    attended = nn.functional.scaled_dot_product_attention(query, *cached, is_causal=True)
    attended.transpose(1, 2).contiguous().view(2, 64, 128).sum().backward()
    sync()
    assert provider.last.operations


def test_compilations_are_counted_once_and_those_of_eager_mode_by_themselves(xla, provider):
    for _ in range(3):
        torch.ones(5, 7, device=xla).sum().item()
    assert [len(METRICS.samples[name]) for name in ("CompileTime", "ExecuteTime")] == [1, 3]
    value = torch.ones(5, 9).to(xla)
    with execution.eagerly(True):
        value.exp()
    assert [len(METRICS.samples[name]) for name in ("EagerOpCompileTime", "EagerOpExecuteTime")] == [1, 1]
    assert len(METRICS.samples["ExecuteTime"]) == 3
