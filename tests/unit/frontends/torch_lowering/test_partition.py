import torch
from torch import fx

from neuron_tools.frontends.torch_lowering.intrinsics import unlowered
from neuron_tools.frontends.torch_lowering.partition import partition


def node(graph, name, value, *arguments):
    import operator

    if name == "placeholder":
        made = graph.placeholder("x")
    elif name == "getitem":
        made = graph.call_function(operator.getitem, arguments)
    else:
        made = graph.call_function(torch.ops.aten.relu.default, arguments)
    made.meta = {"val": value, "row": 0}
    return made


def test_the_tensors_of_a_list_among_a_cut_calls_results_become_parameters():
    graph, value = fx.Graph(), torch.empty(4)
    x = node(graph, "placeholder", value)
    cut = node(graph, "call", ([value, value], value), x)
    cut.meta["intrinsic"] = unlowered("aten::made_up", "a test")
    listed = node(graph, "getitem", [value, value], cut, 0)
    first = node(graph, "getitem", value, listed, 0)
    second = node(graph, "getitem", value, listed, 1)
    single = node(graph, "getitem", value, cut, 1)
    partitioned = partition([x], [first, second, single])
    (made,) = partitioned.cuts
    assert len(made.results) == 3
    assert [n.op for n in partitioned.graph.nodes] == ["placeholder"] * 4 + ["output"]
