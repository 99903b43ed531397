"""Traced models compute what the model computes, before and after saving, whole or in pieces."""

import io
import subprocess
import sys

import pytest
import torch
from torch import nn

from neuron_tools.frontends.torch_trace import NothingToRun, TraceError, TraceOptions, compiling, trace
from neuron_tools.frontends.torch_trace.segments import SegmentRules
from neuron_tools.neff import read_neff


class Classifier(nn.Module):
    """A look-up, a norm with running statistics, a product; nested results."""

    def __init__(self):
        super().__init__()
        self.table = nn.Embedding(10, 8)
        self.norm = nn.BatchNorm1d(8)
        self.head = nn.Linear(8, 3)

    def forward(self, tokens, scale):
        hidden = self.norm(self.table(tokens).mean(1)) * scale
        return self.head(hidden), {"hidden": hidden, "shares": torch.softmax(hidden, -1)}


INPUTS = (torch.arange(12).reshape(4, 3) % 10, torch.tensor(2.0))


@pytest.fixture(scope="module")
def model():
    torch.manual_seed(0)
    made = Classifier()
    made.norm.running_mean.normal_()
    return made.eval()


@pytest.fixture(scope="module")
def traced(model):
    return trace(model, INPUTS)


def reloaded(script):
    buffer = io.BytesIO()
    torch.jit.save(script, buffer)
    buffer.seek(0)
    return torch.jit.load(buffer)


def kinds(script):
    return [node.kind() for node in script.inlined_graph.nodes()]


def assert_same_results(script, model, inputs=INPUTS):
    with torch.no_grad():
        torch.testing.assert_close(script(*inputs), model(*inputs))


def test_a_traced_model_computes_what_the_model_computes(traced, model):
    assert_same_results(traced, model)
    assert_same_results(traced, model, (INPUTS[0].flip(0), torch.tensor(-1.0)))


def test_it_is_one_operation(traced):
    assert kinds(traced).count("neuron_tools::execute") == 1
    assert not [kind for kind in kinds(traced) if kind.startswith("aten::")]


def test_it_is_saved_and_loaded(traced, model):
    assert_same_results(reloaded(traced), model)


def test_operators_left_to_the_host_split_the_model(model):
    rules = SegmentRules(host_operators=("aten::embedding",))
    script = trace(model, INPUTS, TraceOptions(target="inf1", rules=rules))
    assert kinds(script).count("aten::embedding") == 1
    assert "neuron_tools::execute" in kinds(script)
    assert_same_results(reloaded(script), model)


def test_pieces_that_are_too_small_stay_on_the_host(model):
    rules = SegmentRules(device_operators=("aten::addmm",), smallest=2)
    with pytest.raises(NothingToRun, match="No operation of Classifier can run"):
        trace(model, INPUTS, TraceOptions(rules=rules))


class Nearest(nn.Module):
    def forward(self, points):
        scaled = torch.tanh(points) * 2
        return torch.linalg.svdvals(scaled) + 1


def test_what_has_no_lowering_is_left_to_the_host():
    points = torch.randn(5, 3, generator=torch.Generator().manual_seed(0))
    script = trace(Nearest(), points, TraceOptions(rules=SegmentRules()))
    assert any("svd" in kind for kind in kinds(script))
    torch.testing.assert_close(script(points), Nearest()(points))


def test_the_archive_is_kept_with_weights_sources_and_stablehlo(model, tmp_path):
    trace(model, INPUTS, TraceOptions(folder=tmp_path / "work"))
    neff = read_neff(tmp_path / "work" / "graph.neff")
    assert neff.program.name == "Classifier"
    assert "head.weight" in [tensor["name"] for tensor in neff.manifest["weights"]]
    assert any("hidden = self.norm" in text for text in neff.sources[__file__].values())
    assert "stablehlo.dot_general" in neff.stablehlo
    assert {op.module_path for op in neff.program.framework} >= {"Classifier.head", "Classifier.table"}


def test_a_traced_model_keeps_the_weights_that_it_was_traced_with():
    model = nn.Linear(4, 4)
    script, before = trace(model, torch.ones(2, 4)), model(torch.ones(2, 4))
    nn.init.zeros_(model.weight)
    torch.testing.assert_close(script(torch.ones(2, 4)), before)


class Tied(nn.Module):
    """One weight by two names, turned; a buffer of another type, and one without elements."""

    def __init__(self):
        super().__init__()
        self.down = nn.Linear(4, 6, bias=False)
        self.up = nn.Parameter(self.down.weight.detach().t())
        self.register_buffer("scale", torch.rand(6).to(torch.bfloat16))
        self.register_buffer("empty", torch.zeros(0, 6))

    def forward(self, value):
        return torch.cat([self.down(value) @ self.up.t() @ self.up * self.scale, self.empty])


def test_weights_of_any_layout_and_type_are_kept(tmp_path):
    model = Tied()
    value = torch.rand(3, 4)
    script = reloaded(trace(model, value, TraceOptions(folder=tmp_path)))
    torch.testing.assert_close(script(value), model(value))


def test_a_weight_of_two_names_is_kept_once(tmp_path):
    model = nn.Sequential(nn.Linear(8, 8), nn.Linear(8, 8))
    model[1].weight = model[0].weight
    trace(model, torch.rand(2, 8), TraceOptions(folder=tmp_path))
    kept = read_neff(tmp_path / "graph.neff").weights
    assert sorted(len(weight) for weight in kept) == [32, 32, 256]


PEAK = """
import resource, torch
from neuron_tools.frontends.torch_trace import trace
model = torch.nn.Sequential(*(torch.nn.Linear(4096, 4096) for _ in range(6))).eval()
trace(torch.nn.Linear(8, 8), torch.rand(1, 8))
before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
trace(model, torch.rand(1, 4096))
print(1024 * (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before))
"""


@pytest.mark.slow
def test_a_trace_takes_no_copy_of_the_weights():
    found = subprocess.run([sys.executable, "-c", PEAK], capture_output=True, text=True, check=True)
    weights_bytes = 6 * 4096 * 4096 * 4
    assert int(found.stdout) < weights_bytes / 2


def test_a_function_can_be_traced():
    script = trace(lambda left, right: left @ right, (torch.ones(2, 3), torch.ones(3, 2)))
    torch.testing.assert_close(script(torch.ones(2, 3), torch.eye(3, 2)), torch.ones(2, 2))


def test_what_is_no_model_is_refused():
    with pytest.raises(TraceError, match="A str cannot be traced: pass a module"):
        trace("bert-base", (torch.ones(2, 3),))


def test_tensors_that_are_filled_piece_by_piece_can_be_traced():
    def bordered(data):
        made = torch.zeros(6, 6, dtype=torch.int64)
        made[0, :] = 7
        made[:, -1] = torch.tensor(9)
        made[2:4, 2:4].fill_(True)
        return data + made

    data = torch.ones(6, 6)
    assert torch.equal(trace(bordered, (data,))(data), bordered(data))


def test_a_state_takes_no_result_of_another_shape_or_type():
    class Sum(torch.nn.Module):
        def __init__(self, total):
            super().__init__()
            self.register_buffer("total", total)

        def forward(self, data):
            return data + self.total

    for total, described in ((torch.zeros(1), r"float32\[1\]"), (torch.zeros(2, 3).long(), r"int64\[2,3\]")):
        model = Sum(total)
        with pytest.raises(
            TraceError, match=rf"Result 0 of Sum is float32\[2,3\] .* total, which is {described}"
        ):
            trace(model, (torch.ones(2, 3),), TraceOptions(states={model.total: 0}))


def test_other_shapes_are_refused(traced):
    with pytest.raises(TraceError, match=r"traced for inputs int64\[4,3\], float32\[\], not int64\[2,3\]"):
        traced(INPUTS[0][:2], INPUTS[1])


def test_results_that_torchscript_cannot_hold_are_refused():
    with pytest.raises(TraceError, match="cannot be kept by TorchScript"):
        trace(lambda value: {"one": value + 1, "two": (value, value)}, torch.ones(1))


def test_control_flow_on_values_is_refused():
    with pytest.raises(TraceError, match="control flow does not depend on values"):
        trace(lambda value: value if value.sum() > 0 else -value, torch.ones(1))


@pytest.mark.parametrize("inputs", [(), (1.0,), ([torch.ones(1)],), None, {"data": torch.ones(1)}])
def test_example_inputs_must_be_tensors(inputs):
    with pytest.raises(TraceError, match="Example inputs are"):
        trace(torch.relu, inputs)


@pytest.mark.parametrize("count", [1, 3])
def test_one_example_input_is_given_for_each_argument(count):
    with pytest.raises(TraceError, match=rf"Bilinear does not take {count} example inputs .*one for each"):
        trace(nn.Bilinear(4, 4, 2), (torch.ones(3, 4),) * count)


def test_tracing_shows_no_warnings_of_pytorchs_own(recwarn):
    trace(nn.Linear(4, 2), torch.ones(3, 4))
    assert [str(warning.message) for warning in recwarn if warning.category is FutureWarning] == []


def test_a_model_is_compiled_once_for_all_processes(model, monkeypatch, tmp_path):
    monkeypatch.setenv("NEURON_COMPILE_CACHE_URL", str(tmp_path / "cache"))
    first = trace(model, INPUTS)
    monkeypatch.setattr(compiling, "compile_logical", lambda *arguments: pytest.fail("compiled again"))
    second = trace(model, INPUTS)
    assert torch.equal(first(*INPUTS)[0], second(*INPUTS)[0])


def test_a_cache_that_cannot_be_written_is_a_warning(model, monkeypatch, tmp_path):
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("NEURON_COMPILE_CACHE_URL", str(tmp_path / "file" / "cache"))
    with pytest.warns(RuntimeWarning, match="compile cache"):
        trace(model, INPUTS)
