"""Modules are known by their attribute path while they are called, and calls become ranges."""

from __future__ import annotations

import copy
import types

import pytest
import torch
from torch import nn

from neuron_tools.frontends.torch_hooks import modules


class Block(nn.Module):
    def __init__(self):
        super().__init__()
        self.linear = nn.Linear(4, 4)

    def forward(self, value, fail=False):
        if fail:
            raise ValueError("on purpose")
        return self.linear(value)


class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.blocks = nn.ModuleList([Block(), Block()])

    def forward(self, value, fail=False):
        for block in self.blocks:
            value = block(value, fail)
        return value

    def last(self, value):
        return self.blocks[1](value)


class DistributedDataParallel(nn.Module):
    def __init__(self, module):
        super().__init__()
        self.module = module

    def forward(self, *args):
        return self.module(*args)


@pytest.fixture
def hooks(device):
    remove = modules.install(device, device.define_module)
    yield device
    remove()


def calls(device):
    return device.logged("MODULE_CALL")


def test_each_call_is_a_range_named_by_the_attribute_path(hooks):
    Model()(torch.ones(1, 4))
    assert calls(hooks) == [
        "Model.blocks.0.linear",
        "Model.blocks.0",
        "Model.blocks.1.linear",
        "Model.blocks.1",
        "Model",
    ]
    assert ("Model.blocks.1.linear", "Linear") in hooks.modules
    assert hooks.module == 0


def test_whoever_names_tensors_sees_each_module_once_with_its_path(device):
    seen = []
    remove = modules.install(device, device.define_module, lambda path, module: seen.append((path, module)))
    model = Model()
    model(torch.ones(1, 4))
    model(torch.ones(1, 4))
    remove()
    assert [path for path, _ in seen] == [path for path, _ in device.modules]
    assert seen[0] == ("Model", model)


def test_a_module_is_defined_once(hooks):
    model = Model()
    for _ in range(3):
        model(torch.ones(1, 4))
    assert len(hooks.modules) == len(set(hooks.modules)) == 5


def test_a_part_called_directly_has_its_full_path(hooks):
    Model().last(torch.ones(1, 4))
    assert calls(hooks) == ["Model.blocks.1.linear", "Model.blocks.1"]


def test_a_model_made_before_the_hooks_has_full_paths(device):
    model = Model()
    remove = modules.install(device, device.define_module)
    model(torch.ones(1, 4))
    remove()
    assert calls(device)[0] == "Model.blocks.0.linear"


def test_a_second_model_of_the_same_class_is_told_apart(hooks):
    first, second = Block(), Block()
    first(torch.ones(1, 4))
    second(torch.ones(1, 4))
    assert calls(hooks) == ["Block.linear", "Block", "Block#2.linear", "Block#2"]


def test_a_copy_is_a_model_of_its_own(hooks):
    model = Block()
    model(torch.ones(1, 4))
    copy.deepcopy(model)(torch.ones(1, 4))
    assert calls(hooks)[-1] == "Block#2"


def test_a_distribution_wrapper_is_not_a_level(hooks):
    DistributedDataParallel(Block())(torch.ones(1, 4))
    assert calls(hooks) == ["Block.linear", "Block"]


def test_an_exception_in_forward_restores_the_module(hooks):
    model = Model()
    with pytest.raises(ValueError, match="on purpose"):
        model(torch.ones(1, 4), True)
    assert hooks.module == 0
    assert calls(hooks) == ["Model.blocks.0", "Model"]


def test_scripted_modules_still_run(hooks):
    scripted = torch.jit.trace(Block(), torch.ones(1, 4))
    assert scripted(torch.ones(1, 4)).shape == (1, 4)


def test_fullgraph_compilation_works_under_the_hooks(hooks):
    graphs = []

    def backend(gm, inputs):
        graphs.append(gm)
        return gm.forward

    torch._dynamo.reset()
    model = Model()
    expected = model(torch.ones(1, 4))
    compiled = torch.compile(model, backend=backend, fullgraph=True)
    assert torch.equal(compiled(torch.ones(1, 4)), expected)
    assert len(graphs) == 1
    assert calls(hooks)[-1] == "Model"


def test_a_module_made_while_dynamo_traces_leaves_the_graph_whole(hooks):
    class First(Model):
        def forward(self, value):
            for block in self.blocks[:1]:  # a list of a moment, in which the block is registered
                value = block(value)
            return value

    torch._dynamo.reset()
    model = First()
    compiled = torch.compile(model, backend="eager", fullgraph=True)
    assert torch.equal(compiled(torch.ones(1, 4)), model(torch.ones(1, 4)))


def test_a_compiled_module_stays_compiled_when_hooks_come_and_go(device):
    class First(Model):
        def forward(self, value):
            return self.blocks[:1][0](value)

    torch._dynamo.reset()
    compiled = torch.compile(First(), backend="eager", fullgraph=True)
    modules.install(device, device.define_module)()
    compiled(torch.ones(1, 4))
    remove = modules.install(device, device.define_module)
    with torch._dynamo.config.patch(error_on_recompile=True):
        compiled(torch.ones(1, 4))
    remove()


def test_many_compiled_modules_do_not_share_one_recompile_limit(hooks):
    torch._dynamo.reset()

    def scaling_module(factor):
        class Scaling(nn.Module):
            pass

        code = (lambda self, value: value * self.factor).__code__
        Scaling.forward = types.FunctionType(code.replace(co_firstlineno=factor), globals(), "forward")
        module = Scaling()
        module.factor = factor
        return module

    modules_of_own_code = [scaling_module(factor) for factor in range(1, 14)]
    compiled = [torch.compile(module, backend="eager", fullgraph=True) for module in modules_of_own_code]
    assert [module(torch.ones(())).item() for module in compiled] == list(range(1, 14))


def test_the_current_path_is_that_of_the_innermost_call(hooks):
    seen = []

    class Asking(nn.Module):
        def forward(self, value):
            seen.append(modules.current_path())
            return value

    nn.Sequential(nn.Identity(), Asking())(torch.ones(1))
    assert seen == ["Sequential.1"]
    assert modules.current_path() == ""


def test_without_hooks_there_are_no_paths():
    assert modules.current_path() == ""
    assert modules.module_path(Block()) == ""


class Slicing(Model):
    def forward(self, value, fail=False):
        chosen = self.blocks[:2]
        for block in chosen:
            value = block(value, fail)
        return value


def test_a_slice_of_a_list_takes_no_module_out_of_its_model(hooks):
    model = Slicing()
    for _ in range(2):
        model(torch.ones(1, 4))
    assert set(calls(hooks)) == {
        "Slicing", *(f"Slicing.blocks.{place}{part}" for place in (0, 1) for part in ("", ".linear")),
    }  # fmt: skip


def test_what_is_put_into_another_model_has_its_path_there(hooks):
    first = Model()
    second = nn.Sequential(first.blocks[1])
    second(torch.ones(1, 4))
    assert calls(hooks) == ["Sequential.0.linear", "Sequential.0", "Sequential"]
