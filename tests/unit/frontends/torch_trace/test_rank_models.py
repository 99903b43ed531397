"""A model of several ranks, each a TorchScript module of its own, as neuronx-distributed traces them."""

import io
import pickle
from concurrent.futures import ThreadPoolExecutor

import pytest
import torch
from torch import nn

from neuron_tools import compat
from neuron_tools.errors import NeuronToolsError
from neuron_tools.frontends.torch_lowering.meshes import mesh_name

RANKS = 2
ROWS = torch.arange(8.0).view(2, 4)


class Part(nn.Module):
    """A rank's rows of a product, scaled by a number of its own, and how often it was called."""

    def __init__(self, rank: int) -> None:
        super().__init__()
        self.linear = nn.Linear(4, 3, bias=False)
        with torch.no_grad():
            self.linear.weight.fill_(rank + 1.0)
        self.calls = nn.Parameter(torch.zeros(()), requires_grad=False)
        self.scale = 10.0**rank

    def forward(self, rows):
        part = self.linear(rows) * self.scale
        total = torch.ops._c10d_functional.all_reduce(part, "sum", mesh_name([[0, 1]]))
        return torch.ops._c10d_functional.wait_tensor(total), self.calls + 1


@pytest.fixture(scope="module")
def trace():
    uninstall = compat.install()
    from torch_neuronx.xla_impl import trace

    yield trace
    uninstall()


@pytest.fixture
def traced(trace, tmp_path):
    """What each rank's process would hand to the one that loads them."""

    def one(rank):
        part = Part(rank)
        made = trace._trace(part, (ROWS,), None, {part.calls: 1}, tmp_path / str(rank), "-O1", False)
        return pickle.loads(pickle.dumps(made))

    return [one(rank) for rank in range(RANKS)]


@pytest.fixture
def models(trace, traced):
    return [
        trace.create_neuron_model(file, metaneff, flattener, packer, (ROWS,), {}, weights)
        for file, metaneff, flattener, packer, weights in traced
    ]


def load(models):
    import torch_neuronx

    for rank, model in enumerate(models):
        torch.ops.neuron._load_collectives_neuron(model.model, rank, 1, rank, len(models))
        torch_neuronx.move_trace_to_device(model, rank)
    return models


def call(models, rows=ROWS):
    with ThreadPoolExecutor(len(models)) as threads:
        return [each.result() for each in [threads.submit(model, rows) for model in models]]


def expected(rows=ROWS):
    return (rows.sum(1, keepdim=True) * (1.0 + 2.0 * 10.0)).expand(2, 3)


def test_ranks_with_programs_of_their_own_add_up(models):
    for result in call(load(models)):
        torch.testing.assert_close(result.cpu(), expected())


def test_states_go_from_call_to_call_and_are_not_returned(models):
    load(models)
    for _ in range(3):
        call(models)
    assert [model.state_0.item() for model in models] == [3, 3]


def test_a_saved_model_is_loaded_again(models):
    load(models)
    call(models)
    again = []
    for model in models:
        buffer = io.BytesIO()
        torch.jit.save(model, buffer)
        buffer.seek(0)
        again.append(torch.jit.load(buffer))
    torch.testing.assert_close(call(load(again))[1].cpu(), expected())


def test_models_of_as_many_ranks_do_not_meet(trace, traced, models):
    zeros = {"linear.weight": torch.zeros(3, 4)}
    others = [trace.create_neuron_model(*each[:4], (ROWS,), {}, {**each[4], **zeros}) for each in traced]
    load(models)
    load(others)
    with ThreadPoolExecutor(2 * RANKS) as threads:
        made = [threads.submit(model, ROWS) for pair in zip(models, others) for model in pair]
    totals = [each.result().sum().item() for each in made]
    assert totals == [expected().sum().item(), 0.0] * RANKS


def test_weights_are_replaced(trace, models):
    from torch_neuronx.xla_impl.torchscript import replace_weights

    for model in models:
        replace_weights(model, {"linear.weight": torch.ones(3, 4), "other": torch.ones(1)})
    total = call(load(models))[0].cpu()
    torch.testing.assert_close(total, (ROWS.sum(1, keepdim=True) * 11.0).expand(2, 3))


def test_a_rank_alone_is_refused(models):
    with pytest.raises(NeuronToolsError, match="traced for 2 ranks and is called by 1"):
        models[0](ROWS)


def test_other_shapes_are_refused_by_all_ranks(models):
    load(models)
    with ThreadPoolExecutor(RANKS) as threads:
        made = [threads.submit(model, rows) for model, rows in zip(models, (ROWS, ROWS[:1]))]
    for each in made:
        with pytest.raises(NeuronToolsError, match=r"traced for inputs float32\[2,4\], not float32\[1,4\]"):
            each.result()


def test_states_that_the_model_does_not_have_are_refused(trace, tmp_path):
    with pytest.raises(NeuronToolsError, match="External states are not there"):
        trace._trace(Part(0), (ROWS,), {"calls": torch.zeros(())}, {}, tmp_path)
