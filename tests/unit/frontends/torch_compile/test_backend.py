"""`torch.compile(backend="neuron")`: one execution per graph, with the sources of the user's own lines."""

from __future__ import annotations

import inspect

import pytest
import torch
from torch import nn

from neuron_tools.device import native
from neuron_tools.frontends import executables
from neuron_tools.frontends.torch_compile import compiled_graph
from neuron_tools.frontends.torch_hooks import modules


class Block(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.norm = nn.LayerNorm(width)
        self.linear = nn.Linear(width, width)

    def forward(self, value):
        hidden = self.norm(value)  # line: norm
        return value + torch.relu(self.linear(hidden))  # line: residual


class Model(nn.Module):
    def __init__(self, width=8, break_between=False):
        super().__init__()
        self.blocks = nn.ModuleList([Block(width), Block(width)])
        self.statistics = nn.BatchNorm1d(width)
        self.break_between = break_between

    def forward(self, value):
        for block in self.blocks:
            value = block(value)
            if self.break_between:
                torch._dynamo.graph_break()
        return self.statistics(value)  # line: statistics


class Provider:
    """Makes each module once; an executable's number is its order."""

    def __init__(self):
        self.modules = {}
        self.shared = {}

    def executable_for(self, module_factory, key, name, shared=None):
        if key not in self.modules:
            self.modules[key] = module_factory()
            self.shared.setdefault(shared.key, []).append((self.modules[key], shared.framework()))
        return list(self.modules).index(key) + 1, 1000

    def named(self, word):
        return [module for module in self.modules.values() if word in module.name]


@pytest.fixture
def provider(device, monkeypatch):
    for name in ("suppress", "run_graph", "intern_name", "pause_clock", "resume_clock"):
        monkeypatch.setattr(native, name, getattr(device, name))
    monkeypatch.setattr(compiled_graph, "_on_device", lambda args: True)
    torch._dynamo.reset()
    provider = Provider()
    remove_provider = executables.install(provider)
    remove_hooks = modules.install(device, device.define_module)
    yield provider
    remove_hooks()
    remove_provider()


def line_of(mark, owner):
    lines, first = inspect.getsourcelines(owner)
    return first + next(index for index, line in enumerate(lines) if f"# line: {mark}" in line)


def rows(module, name):
    return [row for row in module.framework if row.name == name]


def train(model, batch=3):
    compiled = torch.compile(model, backend="neuron", fullgraph=not model.break_between)
    value = torch.randn(batch, 8)
    result = compiled(value)
    result.sum().backward()
    return value, result


def test_a_training_step_is_a_forward_and_a_backward_execution(provider, device):
    train(Model())
    assert [entry for entry in device.log if entry[0] == "GRAPH"] == [("GRAPH", 1, 1000), ("GRAPH", 2, 1000)]
    assert [module.warnings for module in provider.modules.values()] == [(), ()]


def test_values_and_gradients_are_those_of_the_uncompiled_model(provider):
    torch.manual_seed(0)
    model, reference = Model(), Model()
    reference.load_state_dict(model.state_dict())
    value, result = train(model)
    expected = reference(value)
    expected.sum().backward()
    torch.testing.assert_close(result, expected)
    torch.testing.assert_close(model.blocks[0].linear.weight.grad, reference.blocks[0].linear.weight.grad)
    torch.testing.assert_close(model.statistics.running_mean, reference.statistics.running_mean)


def test_forward_rows_have_the_users_line_first_and_the_module(provider):
    train(Model())
    (forward,) = provider.named("forward")
    norms = rows(forward, "aten::native_layer_norm")
    assert [row.module_path for row in norms] == ["Model.blocks.0.norm", "Model.blocks.1.norm"]
    assert {row.module_class for row in norms} == {"LayerNorm"}
    frame = norms[0].stack[0]
    assert (frame.file, frame.line, frame.function) == (__file__, line_of("norm", Block), "forward")
    assert not any(row.backward for row in forward.framework)


def test_backward_rows_have_the_forward_line_and_module(provider):
    train(Model())
    (backward,) = provider.named("backward")
    norms = rows(backward, "aten::native_layer_norm_backward")
    assert sorted(row.module_path for row in norms) == ["Model.blocks.0.norm", "Model.blocks.1.norm"]
    assert {row.stack[0].line for row in norms} == {line_of("norm", Block)}
    assert all(row.backward and row.sequence >= 0 for row in backward.framework)


def test_a_sum_of_gradients_belongs_to_the_module_around_its_users(provider):
    train(Model())
    (backward,) = provider.named("backward")
    sums = rows(backward, "aten::add")
    assert {row.module_path for row in sums} <= {"Model.blocks.0", "Model.blocks.1"}
    assert sums


def test_every_row_has_a_line_and_a_module(provider):
    train(Model())
    for module in provider.modules.values():
        assert all(row.stack and row.module_path for row in module.framework)
        assert all(operation.framework for operation in module.operations)


def test_parameters_are_told_from_inputs_and_named(provider):
    train(Model())
    (forward,) = provider.named("forward")
    kinds = dict(zip(forward.parameter_names, forward.parameter_kinds))
    weights = [name for name, kind in kinds.items() if kind == "weight"]
    assert any("linear" in name and "weight" in name for name in weights)
    assert list(kinds.values()).count("input") == 1


def test_a_graph_break_gives_each_block_its_own_path(provider):
    train(Model(break_between=True))
    paths = {row.module_path for module in provider.named("Block") for row in module.framework}
    assert {"Model.blocks.0.norm", "Model.blocks.1.norm"} <= paths


def test_modules_that_call_one_function_share_its_code_and_not_their_places(provider):
    @torch.compile(backend="neuron", fullgraph=True)
    def activate(value):
        return torch.tanh(value) * 2

    class Activation(nn.Module):
        def forward(self, value):
            return activate(value)

    nn.Sequential(Activation(), Activation())(torch.randn(3, 8, requires_grad=True)).sum().backward()
    assert [len(uses) for uses in provider.shared.values()] == [2, 2]  # forward and backward
    for uses in provider.shared.values():
        assert all(tuple(framework) == tuple(module.framework) for module, framework in uses)
        paths = {row.module_path for _, framework in uses for row in framework}
        assert paths == {"Sequential.0", "Sequential.1"}


def test_other_sizes_of_a_dynamic_graph_are_lowered_once_each(provider):
    compiled = torch.compile(Block(8), backend="neuron", dynamic=True)
    with torch.no_grad():
        for batch in (3, 5, 3, 5):
            assert compiled(torch.randn(batch, 8)).shape == (batch, 8)
    shapes = [module.values[module.results[0]].type.shape for module in provider.modules.values()]
    assert sorted(shapes) == [(3, 8), (5, 8)]


def test_without_a_capture_the_graph_just_runs(device):
    torch._dynamo.reset()
    model = Block(8)
    value = torch.randn(3, 8)
    torch.testing.assert_close(torch.compile(model, backend="neuron")(value), model(value))
    assert device.log == []


def test_an_operator_without_a_lowering_does_not_lose_the_rest(provider):
    @torch.compile(backend="neuron", fullgraph=True)
    def function(value):
        return torch.linalg.inv(value * 2) + 1

    with torch.no_grad():
        function(torch.eye(4))
    (module,) = provider.modules.values()
    opcodes = [operation.opcode for operation in module.operations]
    assert opcodes.index("multiply") < opcodes.index("custom_call") < opcodes.index("add")
    assert len(module.warnings) == 1


def test_asynchronous_tensor_parallelism_is_said_to_have_no_effect(monkeypatch):
    from torch._inductor import config

    monkeypatch.setattr(config, "_micro_pipeline_tp", True)
    torch._dynamo.reset()
    with pytest.warns(
        RuntimeWarning, match="Asynchronous tensor parallelism has no effect on the device neuron"
    ):
        torch.compile(torch.relu, backend="neuron")(torch.ones(2, device="neuron"))
