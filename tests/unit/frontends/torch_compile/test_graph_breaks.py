"""Where Dynamo broke graphs of this process."""

from __future__ import annotations

import pytest
import torch

from neuron_tools.frontends.torch_compile.graph_breaks import graph_breaks


@pytest.fixture(autouse=True)
def _fresh():
    torch._dynamo.reset()
    yield
    torch._dynamo.reset()


def line_of(function, ahead):
    return function.__code__.co_firstlineno + ahead


def test_a_value_that_is_looked_at_breaks_the_graph_at_its_line():
    def looking(x):
        return x * 2 if x.sum().item() > 0 else x + 1

    compiled = torch.compile(looking, backend="aot_eager")
    compiled(torch.ones(3))
    compiled(torch.ones(3))
    (broken,) = graph_breaks()
    assert (broken.file, broken.line) == (__file__, line_of(looking, 1))
    assert (broken.own_file, broken.own_line) == (broken.file, broken.line)
    assert "Tensor.item()" in broken.reason
    assert "capture_scalar_outputs" in broken.hint


def test_a_break_in_a_called_function_names_both_lines_once():
    def inner(x):
        torch._dynamo.graph_break()
        return x * 2

    def outer(x):
        y = x + 1
        return inner(y) + 1

    torch.compile(outer, backend="aot_eager")(torch.ones(3))
    (broken,) = graph_breaks()
    assert (broken.line, broken.own_line) == (line_of(inner, 1), line_of(outer, 2))


def test_the_backward_pass_is_no_break():
    def step(x):
        (x * 2).sum().backward()

    torch.compile(step, backend="aot_eager")(torch.ones(3, requires_grad=True))
    assert graph_breaks() == []
