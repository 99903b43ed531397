"""Graphs of ATen operators become modules whose results are what has to be in memory."""

from __future__ import annotations

import torch
from torch.fx.experimental.proxy_tensor import make_fx

from neuron_tools.compiler.passes.pipeline import optimise
from neuron_tools.frontends.torch_compile.graph_lowering import graph_text, lower_graph
from neuron_tools.frontends.torch_lowering.layout import StoredTensor

X, W = torch.randn(4, 8), torch.randn(6, 8)


def graph_of(function, *arguments):
    return make_fx(function, tracing_mode="fake")(*arguments).graph, [StoredTensor.of(a) for a in arguments]


def test_a_view_of_a_parameter_is_no_result():
    graph, arguments = graph_of(lambda x, w: (x @ w.t(), w.t()), X, W)
    module = lower_graph(graph, arguments, "forward")
    assert [module.values[value].type.shape for value in module.results] == [(4, 6)]


def test_views_of_one_value_are_one_result_as_it_lies_in_memory():
    def heads(x, w):
        whole = x @ w.t()
        left, right = whole.split(3, dim=1)
        return left.t(), right.unsqueeze(0), whole

    graph, arguments = graph_of(heads, X, W)
    module = lower_graph(graph, arguments, "forward")
    assert [module.values[value].type.shape for value in module.results] == [(4, 6)]
    assert "transpose" not in {operation.opcode for operation in module.operations[1:]}


def test_the_text_for_other_engines_has_every_output_as_it_is():
    graph, arguments = graph_of(lambda x, w: ((x @ w.t()).t(), w.t()), X, W)
    portable = graph_text(graph, arguments)
    assert len(portable.results) == 2
    assert portable.results[0] >= 0


def test_rows_are_written_into_a_parameter_whose_dimensions_lie_in_another_order():
    def update(cache, places, rows):
        new = cache.transpose(1, 2).reshape(16, 3, 4).index_copy(0, places, rows)
        cache.copy_(new.reshape(2, 8, 3, 4).transpose(1, 2))
        return (rows + 1,)

    cache = torch.zeros(2, 8, 3, 4).transpose(1, 2)
    graph, arguments = graph_of(update, cache, torch.tensor([3, 9]), torch.randn(2, 3, 4))
    module = lower_graph(graph, arguments, "step")
    assert [module.values[value].type.shape for value in module.results] == [(2, 3, 4), (2, 8, 3, 4)]
    assert module.aliases == ((1, 0),)
    assert "transpose" not in {operation.opcode for operation in module.operations}


def test_what_elementwise_operators_make_of_heads_is_returned_in_the_order_of_its_tokens():
    def rotated(x, w):
        heads = (x @ w.t()).view(2, 4, 2, 3).transpose(1, 2)
        return (heads * 2).to(torch.bfloat16), heads.contiguous() * 2

    graph, arguments = graph_of(rotated, torch.randn(8, 8), W)
    module = lower_graph(graph, arguments, "forward")
    assert [module.values[value].type.shape for value in module.results] == [(2, 4, 2, 3), (2, 2, 4, 3)]
    first = lower_graph(*graph_of(lambda x, w: rotated(x, w)[0], torch.randn(8, 8), W), "forward")
    turned = [operation for operation in optimise(first).operations if operation.opcode == "transpose"]
    assert all(len(first.values[operation.results[0]].type.shape) == 2 for operation in turned)  # weights
