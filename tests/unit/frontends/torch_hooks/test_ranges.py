"""record_function, optimizers, profiler steps and backward become ranges."""

from __future__ import annotations

import pytest
import torch

from neuron_tools.frontends.torch_hooks import ranges


@pytest.fixture
def hooks(device):
    original = torch.Tensor.backward
    remove = ranges.install(device, device.define_module)
    yield device
    remove()
    assert torch.Tensor.backward is original


def test_record_function_is_a_range_that_nests(hooks):
    with torch.profiler.record_function("outer"), torch.profiler.record_function("inner"):
        torch.ones(1)
    assert hooks.logged("RANGE") == ["inner", "outer"]


def test_record_function_as_a_decorator(hooks):
    @torch.profiler.record_function("decorated")
    def function():
        return 1

    assert function() == function() == 1
    assert hooks.logged("RANGE") == ["decorated", "decorated"]


def test_an_optimizer_step_is_a_range_marked_and_with_a_module_of_its_own(hooks):
    seen = []

    class Watching(torch.optim.AdamW):
        @torch.no_grad()
        def step(self, closure=None):
            seen.append((hooks.in_optimizer, hooks.path))

    parameter = torch.nn.Parameter(torch.ones(2))
    Watching([parameter]).step()
    assert seen == [(True, "optimizer (Watching)")]
    assert (hooks.in_optimizer, hooks.module) == (False, 0)
    assert hooks.logged("RANGE") == ["Watching.step"]


def test_a_step_that_raises_leaves_no_mark(hooks):
    class Broken(torch.optim.SGD):
        def step(self, closure=None):
            raise RuntimeError("no step")

    with pytest.raises(RuntimeError, match="no step"):
        Broken([torch.nn.Parameter(torch.ones(2))], 0.1).step()
    assert (hooks.in_optimizer, hooks.module) == (False, 0)


def test_real_optimizers_name_their_steps(hooks):
    parameter = torch.nn.Parameter(torch.ones(2))
    optimizer = torch.optim.AdamW([parameter])
    parameter.sum().backward()
    optimizer.step()
    optimizer.zero_grad()
    assert hooks.logged("RANGE") == ["Tensor.backward", "AdamW.step", "AdamW.zero_grad"]


def test_a_profiler_step_lasts_from_the_one_before(hooks):
    with torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CPU]) as profiler:
        hooks.time_ns = 100
        profiler.step()
        hooks.time_ns = 300
        profiler.step()
    assert hooks.logged("STEP") == ["ProfilerStep#0", "ProfilerStep#1"]
    (_, first_ns, second_ns), second = [span for span in hooks.spans if span[0].startswith("ProfilerStep")]
    assert first_ns < 100
    assert (second_ns, second) == (101, ("ProfilerStep#1", 101, 301))
