"""Models that several cores share out: cut into runs of operations, each with its weights on its core."""

import numpy as np
import pytest
import torch
from torch import fx, nn

from neuron_tools import hardware
from neuron_tools.compiler import CompilerOptions
from neuron_tools.frontends.torch_trace import TraceOptions, trace
from neuron_tools.frontends.torch_trace.compiling import Segment, _resident_bytes, share_out_cores
from neuron_tools.frontends.torch_trace.exported import export_model
from neuron_tools.frontends.torch_trace.pipeline import cut_into_stages
from neuron_tools.neff import Neff, read_neff
from neuron_tools.records.program import Purpose, TensorKind

CORE = hardware.get("inf1")
WIDTH = 1024
INPUTS = torch.randn(128, WIDTH, generator=torch.Generator().manual_seed(1))


class Residual(nn.Module):
    """Layers of equal work; the first layer's result is read by the last."""

    def __init__(self, layers=8, width=WIDTH):
        super().__init__()
        torch.manual_seed(0)
        self.layers = nn.ModuleList(nn.Linear(width, width) for _ in range(layers))

    def forward(self, features):
        first = hidden = torch.relu(self.layers[0](features))
        for layer in self.layers[1:]:
            hidden = torch.relu(layer(hidden))
        return hidden + first, first.sum(1)


def stages_of(model, count):
    exported = export_model(model.eval(), (INPUTS,))
    placeholders = [node for node in exported.graph_module.graph.nodes if node.op == "placeholder"]
    weights = dict(zip(placeholders, exported.weights))
    cut = cut_into_stages(exported.graph_module, weights, count, CORE, CompilerOptions(auto_cast="all"))
    return exported, placeholders, cut


def test_stages_one_after_the_other_compute_what_the_model_computes():
    model = Residual()
    exported, placeholders, stages = stages_of(model, 4)
    values = dict(zip([node.name for node in placeholders], [*exported.weights, INPUTS]))
    for stage in stages:
        made = stage.module(*(values[source.name] for source in stage.sources))
        output = next(node for node in stage.module.graph.nodes if node.op == "output")
        values.update(zip([node.name for node in output.args[0]], made))
    result = next(node for node in exported.graph_module.graph.nodes if node.op == "output").args[0]
    for node, expected in zip(result, model(INPUTS)):
        torch.testing.assert_close(values[node.name], expected)


def operations(module: fx.GraphModule):
    return [node.name for node in module.graph.nodes if node.op == "call_function"]


def test_each_operation_is_in_one_stage_and_equal_layers_are_shared_out_equally():
    exported, _, stages = stages_of(Residual(), 4)
    names = [name for stage in stages for name in operations(stage.module)]
    assert sorted(names) == sorted(operations(exported.graph_module))
    assert [sum("linear" in name for name in operations(stage.module)) for stage in stages] == [2, 2, 2, 2]


def test_a_stage_hands_on_what_later_ones_read():
    _, _, stages = stages_of(Residual(), 4)
    tile = INPUTS.numel() * 2
    assert [stage.handed_on_bytes // tile for stage in stages] == [2, 2, 2, 0]


@pytest.fixture(scope="module")
def archive(tmp_path_factory):
    folder = tmp_path_factory.mktemp("pipeline")
    options = TraceOptions("inf1", CompilerOptions(auto_cast="all"), folder=folder, cores=4)
    script = trace(Residual().eval(), INPUTS, options)
    torch.testing.assert_close(script(INPUTS), Residual().eval()(INPUTS))
    return read_neff(folder / "graph.neff")


def test_the_archive_has_a_program_for_each_core(archive):
    assert [program.name for program in archive.programs] == [f"Residual.core{i}" for i in range(4)]
    again = Neff.from_bytes(archive.to_bytes())
    for program, other in zip(archive.programs, again.programs):
        np.testing.assert_array_equal(program.instructions, other.instructions)


def test_weights_that_fit_are_not_loaded(archive):
    for program in archive.programs:
        assert not np.any(program.dmas["purpose"] == Purpose.WEIGHT)
        assert [tensor.name for tensor in program.tensors if "weight" in tensor.name]


def test_cores_hand_on_what_they_compute_with_and_give_what_the_model_gives(archive):
    kinds = {TensorKind.INPUT, TensorKind.OUTPUT}
    ends = [
        {tensor.name: tensor.dtype for tensor in program.tensors if tensor.kind in kinds}
        for program in archive.programs
    ]
    types = [sorted(dtype.name for dtype in names.values()) for names in ends]
    assert types[1] == types[2] == ["BF16"] * len(types[1])
    assert types[0] == ["BF16"] * (len(types[0]) - 1) + ["F32"]  # the request
    assert types[3].count("F32") == 2  # the model's results


@pytest.mark.parametrize(("rows", "kept"), [(2500, CORE.weight_cache_bytes), (5000, 8 << 20)])
def test_half_of_sbuf_is_left_where_not_all_weights_fit(rows, kept):
    module = fx.GraphModule(nn.Module(), fx.Graph())
    segment = Segment("model", module, {0: torch.empty(rows, 4096, device="meta")}, {0: "weight"}, [])
    assert _resident_bytes(segment, 2, CORE, CompilerOptions(auto_cast="all")) == kept


def test_a_small_model_may_need_fewer_cores_than_there_are():
    _, _, stages = stages_of(Residual(layers=1), 16)
    assert 1 <= len(stages) <= 5


def segment_of(model, cores):
    exported = export_model(model.eval(), (INPUTS[:, : model.layers[0].in_features],))
    weights = dict(enumerate(exported.weights))
    names = dict(enumerate(exported.weight_names))
    return Segment("part", exported.graph_module, weights, names, [INPUTS], cores=cores)


@pytest.mark.parametrize(
    ("layers", "shared"),
    [
        ({"a": 8}, {"a": 4}),
        ({"a": 1, "b": 8}, {"a": 1, "b": 4}),
        ({"a": 4, "b": 4}, {"a": 4, "b": 4}),
    ],
)
def test_a_part_of_a_model_that_takes_less_than_a_cores_share_stays_on_one(layers, shared):
    segments = {name: segment_of(Residual(count), 4) for name, count in layers.items()}
    options = CompilerOptions(auto_cast="all")
    assert {name: each.cores for name, each in share_out_cores(segments, CORE, options).items()} == shared
