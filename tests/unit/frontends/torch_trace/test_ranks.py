"""A model that is traced once for several ranks: each has its weights and states, and collectives meet."""

import io
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
import torch
import torch.distributed as dist
from torch import nn

from neuron_tools import compat
from neuron_tools.errors import NeuronToolsError
from neuron_tools.frontends.torch_lowering.meshes import groups_of, mesh_name, tracing_ranks
from neuron_tools.frontends.torch_trace import ranks as ranks
from neuron_tools.frontends.torch_trace.ranked_program import trace_ranks
from neuron_tools.frontends.torch_trace.ranked_values import collective, for_each_rank
from neuron_tools.frontends.torch_trace.scripted_forms import in_scripted_forms

RANKS = 2
ROWS = torch.arange(24.0).view(6, 4)
PLACES = torch.tensor([2, 0])


class Part(nn.Module):
    """One rank's columns of a linear layer, whose sums over the ranks are written into rows of a cache."""

    def __init__(self):
        super().__init__()
        self.linear = nn.Linear(4, 3, bias=False)
        self.linear.again = self.linear.weight
        self.register_buffer("cache", torch.zeros(6, 3))
        self.register_buffer("calls", torch.zeros((), dtype=torch.int64))
        self.register_buffer("one", torch.ones(3), persistent=False)

    def forward(self, rows, places):
        self.last = self.linear(rows)
        total = torch.ops._c10d_functional.all_reduce(self.last, "sum", mesh_name([[0, 1]]))
        self.cache = self.cache.index_copy(0, places, torch.ops._c10d_functional.wait_tensor(total))
        self.calls += 1
        mask = torch.full((6,), True)
        return {"rows": torch.where(mask[:, None], self.cache, 0.0) + self.one, "calls": self.calls}


@pytest.fixture(scope="module")
def torch_neuronx():
    uninstall = compat.install()
    import torch_neuronx

    yield torch_neuronx
    uninstall()


@pytest.fixture(scope="module")
def artifacts(torch_neuronx):
    from torch_neuronx.xla_impl.trace import generate_hlo

    inputs = {"rows": ROWS[:2], "places": PLACES}
    return generate_hlo(Part(), inputs, enable_aliasing=True, treat_inputs_as_kwargs=True)


@pytest.fixture(scope="module")
def archive(artifacts):
    from libneuronxla import neuron_xla_compile

    return neuron_xla_compile(artifacts.hlo_module.SerializeToString(), "-O1", "trn2")


def checkpoints():
    generator = torch.Generator().manual_seed(0)
    return [{"linear.weight": torch.randn(3, 4, generator=generator)} for _ in range(RANKS)]


def states():
    zeros = {"cache": torch.zeros(6, 3), "calls": torch.zeros((), dtype=torch.int64)}
    return [{name: value.to(f"neuron:{rank}") for name, value in zeros.items()} for rank in range(RANKS)]


def model_of(artifacts, archive, weights, held=None):
    model = torch.classes.neuron.SPMDModel(archive, artifacts.metaneff.SerializeToString(), RANKS, RANKS)
    model.initialize(held or states(), torch.ops.neuron._parallel_load(weights), 0)
    return model


@pytest.fixture
def model(artifacts, archive):
    return model_of(artifacts, archive, checkpoints())


def assert_right(artifacts, model):
    """Each call writes the sums of the ranks' products where it should."""
    cache = torch.zeros(6, 3)
    for call, rows in enumerate((ROWS[:2], ROWS[2:4]), 1):
        places = PLACES + call
        cache[places] = sum(rows @ weights["linear.weight"].T for weights in checkpoints())
        results = artifacts.packer(model.forward(artifacts.flattener((rows, places))))
        torch.testing.assert_close(results["rows"], cache + 1)
        assert results["calls"] == call
    return cache


def test_ranks_add_up_and_keep_their_states(artifacts, archive):
    held = states()
    cache = assert_right(artifacts, model_of(artifacts, archive, checkpoints(), held))
    for rank in range(RANKS):
        torch.testing.assert_close(held[rank]["cache"].cpu(), cache)
        assert held[rank]["calls"].item() == 2


def test_what_inputs_are_is_told_by_name(artifacts, torch_neuronx):
    from torch_neuronx.proto.metaneff_pb2 import MetaNeff, MetaTensor

    read = MetaNeff()
    read.ParseFromString(artifacts.metaneff.SerializeToString())
    assert read == artifacts.metaneff
    kinds = MetaTensor.Type
    assert [(each.checkpoint_key, each.type) for each in read.input_tensors] == [
        (b"", kinds.USER_INPUT), (b"", kinds.USER_INPUT),
        (b"cache", kinds.INPUT_STATE), (b"calls", kinds.INPUT_STATE), (b"linear.weight", kinds.INPUT_WEIGHT),
    ]  # fmt: skip
    assert artifacts.weight_name_to_idx == {"linear.weight": 4}


def test_a_saved_model_takes_weights_again(artifacts, model):
    class Holder(nn.Module):
        def __init__(self, models):
            super().__init__()
            self.models = models

        def forward(self, inputs: list[torch.Tensor]) -> list[torch.Tensor]:
            return self.models[0].forward(inputs)

    buffer = io.BytesIO()
    torch.jit.save(torch.jit.script(Holder([model])), buffer)
    buffer.seek(0)
    (loaded,) = torch.jit.load(buffer).models
    assert not loaded.is_initialized()
    loaded.initialize(states(), torch.ops.neuron._parallel_load(checkpoints()), 0)
    assert_right(artifacts, loaded)


def test_before_it_has_weights_a_mocked_model_gives_zeros_of_the_right_shapes(artifacts, archive):
    model = torch.classes.neuron.SPMDModel(archive, "", RANKS, RANKS)
    model.set_mock_initialized(True)
    results = model.forward([ROWS[:2], PLACES])
    assert [(tuple(each.shape), each.dtype) for each in results] == [
        ((6, 3), torch.float32),
        ((), torch.int64),
    ]


def test_each_rank_may_have_inputs_of_its_own(artifacts, model):
    given = [[ROWS[:2], PLACES], [torch.zeros(2, 4), PLACES]]
    for results in model.forward_ranked(given):
        expected = ROWS[:2] @ checkpoints()[0]["linear.weight"].T
        torch.testing.assert_close(results[0].cpu()[PLACES], expected + 1)


def test_calls_of_several_threads_follow_each_other(artifacts, archive):
    held, calls = states(), 12
    model = model_of(artifacts, archive, checkpoints(), held)
    with ThreadPoolExecutor(4) as threads:
        made = [threads.submit(model.forward, [ROWS[:2], PLACES]) for _ in range(calls)]
    counted = [artifacts.packer(each.result())["calls"].item() for each in made]
    assert sorted(counted) == list(range(1, calls + 1))
    assert [own["calls"].item() for own in held] == [calls] * RANKS


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="/dev/full is Linux's")
def test_an_artifact_for_which_there_is_no_room_is_not_said_to_be_saved(archive):
    model = torch.classes.neuron.SPMDModel(archive[:100], "described", RANKS, RANKS)
    assert not model.save_neff("/dev/full")
    assert not model.save_metaneff("/dev/full")


def test_a_missing_weight_is_named(artifacts, archive):
    lacking = model_of(artifacts, archive, [{}, {}])
    with pytest.raises(NeuronToolsError, match=r"Rank 0 has no weight or state linear\.weight"):
        lacking.forward([ROWS[:2], PLACES])


def test_a_weight_of_another_shape_is_named(artifacts, archive):
    whole = model_of(artifacts, archive, [{"linear.weight": torch.zeros(6, 4)}] * RANKS)
    with pytest.raises(
        NeuronToolsError, match=r"linear\.weight of rank 0 is float32\[6,4\], .* float32\[3,4\]"
    ):
        whole.forward([ROWS[:2], PLACES])


def test_another_number_of_ranks_than_was_traced_is_refused(artifacts, archive):
    model = torch.classes.neuron.SPMDModel(archive, artifacts.metaneff.SerializeToString(), 1, 1)
    model.initialize(states()[:1], checkpoints()[:1], 0)
    with pytest.raises(NeuronToolsError, match="traced for 2 ranks and is called by 1"):
        model.forward([ROWS[:2], PLACES])


def test_states_take_each_others_values_and_those_that_are_not_read(torch_neuronx):
    from libneuronxla import neuron_xla_compile
    from torch_neuronx.xla_impl.trace import generate_hlo

    class Turns(nn.Module):
        def __init__(self):
            super().__init__()
            for name in ("first", "second", "latest"):
                self.register_buffer(name, torch.zeros(4))

        def forward(self, rows):
            self.latest = rows * 2
            before = self.first
            self.first, self.second = self.second, before
            return rows + 1, before

    made = generate_hlo(Turns(), (ROWS[0],), enable_aliasing=True)
    held = {"first": torch.ones(4), "second": torch.full((4,), 2.0), "latest": torch.zeros(4)}
    archive = neuron_xla_compile(made.hlo_module.SerializeToString(), "-O1", "trn2")
    model = torch.classes.neuron.SPMDModel(archive, "", 1, 1)
    model.initialize([held], [{}], 0)
    _, before = made.packer(model.forward([ROWS[0]]))
    assert [before[0], held["first"][0], held["second"][0]] == [1, 2, 1]
    assert held["latest"].tolist() == [0, 2, 4, 6]


@pytest.mark.parametrize(
    ("state", "number", "message"),
    [
        ("calls", 0, r"Result 0 of Part is float32\[6,3\] and cannot be the next value of the state calls"),
        ("calls", 5, "Part has 2 results and no number 5"),
        ("none", 0, "no parameter and no buffer"),
    ],
)
def test_an_alias_that_cannot_be_is_refused(state, number, message):
    part = Part()
    aliased = getattr(part, state, torch.zeros(6, 3))
    with pytest.raises(NeuronToolsError, match=message):
        trace_ranks(part, (ROWS[:2], PLACES), states={aliased: number})


def test_other_shapes_are_refused(model):
    with pytest.raises(NeuronToolsError, match=r"traced for inputs float32\[2,4\], int64\[2\]"):
        model.forward([ROWS, PLACES])


def test_a_graph_of_another_process_is_refused(torch_neuronx):
    from libneuronxla import neuron_xla_compile

    with pytest.raises(NeuronToolsError, match="no graph that this process traced"):
        neuron_xla_compile(b"HloModule")


def test_states_by_alias_are_not_returned(torch_neuronx):
    from torch_neuronx.xla_impl.trace import generate_hlo

    class Counter(nn.Module):
        def __init__(self):
            super().__init__()
            self.total = nn.Parameter(torch.zeros(4), requires_grad=False)

        def forward(self, rows):
            total = self.total + rows.sum(0)
            return [total * 2, total]

    counter = Counter()
    made = generate_hlo(counter, (ROWS,), {counter.total: 1})
    assert made.packer([ROWS]) is ROWS
    assert made.metaneff.output_aliases_to == {1: 1}


def test_what_a_pass_leaves_in_the_model_is_gone_for_the_next_trace():
    class Cached(nn.Module):
        def __init__(self):
            super().__init__()
            self.register_buffer("scale", None, persistent=False)

        def forward(self, rows):
            if self.scale is None:
                self.scale = torch.arange(4.0)
                self.both = [self.scale, rows.sum(0)]
            plain = rows.as_subclass(torch.Tensor) if type(rows) is not torch.Tensor else rows
            return plain[:, None, :] * self.both[0]

    model = Cached()
    for rows in (ROWS, ROWS[:2]):
        traced = trace_ranks(model, (rows,), states={})
        assert (traced.call.weights, traced.call.result_shapes) == ((), (f"float32[{len(rows)},1,4]",))
    assert model.scale is None
    assert "both" not in vars(model)
    assert "as_subclass" not in vars(torch.Tensor)


def test_inputs_in_dictionaries_are_made_a_flat_list(torch_neuronx):
    from torch_neuronx.xla_impl.trace import generate_hlo

    class Sum(nn.Module):
        def forward(self, given):
            return given["rows"] - given["others"][0]

    given = {"rows": ROWS, "others": [ROWS + 1]}
    flattener = generate_hlo(Sum(), (given,)).flattener
    assert [each[0, 0].item() for each in flattener((given,))] == [0, 1]
    assert [each[0, 0].item() for each in flattener(({**dict(reversed(given.items()))},))] == [0, 1]


def test_names_of_groups_say_their_ranks():
    name = mesh_name([[0, 1], [2, 3]])
    assert groups_of(name) == ((0, 1), (2, 3))
    assert groups_of("0") is None


@pytest.mark.parametrize(
    ("name", "arguments", "expected"),
    [
        ("all_reduce", ("sum",), [[4, 6], [4, 6]]),
        ("all_reduce", ("max",), [[3, 4], [3, 4]]),
        ("all_reduce", ("avg",), [[2, 3], [2, 3]]),
        ("all_gather_into_tensor", (2,), [[1, 2, 3, 4], [1, 2, 3, 4]]),
        ("reduce_scatter_tensor", ("sum", 2), [[4], [6]]),
        ("all_to_all_single", ([1, 1], [1, 1]), [[1, 3], [2, 4]]),
        ("broadcast", (1,), [[3, 4], [3, 4]]),
    ],
)
def test_a_collective_gives_each_rank_its_part(name, arguments, expected):
    brought, groups = torch.tensor([[1.0, 2.0], [3.0, 4.0]]), ((0, 1),)
    made = for_each_rank(lambda rank: collective(name, (brought[rank], *arguments), groups), RANKS)
    assert [each.tolist() for each in made] == expected


def test_a_rank_that_fails_ends_the_others():
    def compute(rank):
        if rank:
            raise ValueError("no such row")
        return collective("all_reduce", (torch.ones(1), "sum"), ((0, 1),))

    with pytest.raises(ValueError, match="no such row"):
        for_each_rank(compute, RANKS)


def test_a_library_that_stands_in_for_torch_distributed_is_asked_for_ranks(torch_neuronx, monkeypatch):
    import torch_xla.core.xla_model as xm

    class Job:
        def is_initialized(self):
            return True

        def get_world_size(self):
            return RANKS

        def __getattr__(self, name):
            return getattr(dist, name)

    class Rows(nn.Module):
        def forward(self, rows):
            return xm.all_gather(xm.all_reduce(xm.REDUCE_SUM, [rows.clone()])[0], dim=1, groups=[[0, 1]])

    monkeypatch.setattr(torch, "distributed", Job())
    traced = trace_ranks(Rows(), (ROWS,))
    monkeypatch.undo()
    names = [str(node.args[-1]) for node in traced.segment.module.graph.nodes if "_c10d" in str(node.target)]
    assert names.count("ranks 0,1") == 2
    assert not dist.is_initialized()


def test_truth_as_a_number_is_one_for_torchscript():
    class Mask(nn.Module):
        def forward(self, values):
            return torch.full((4,), True) & (values > 0), torch.full_like(values, True)

    module = in_scripted_forms(torch.export.export(Mask(), (ROWS[0],)).graph_module)
    mask, ones = module(ROWS[0])
    assert (mask.dtype, mask.tolist()) == (torch.bool, [False, True, True, True])
    assert (ones.dtype, ones.tolist()) == (torch.float32, [1.0] * 4)
    torch.jit.trace(module, (ROWS[0],))


def test_tracing_ranks_ends_with_its_block():
    from neuron_tools.frontends.torch_lowering.meshes import is_tracing_ranks

    with tracing_ranks():
        assert is_tracing_ranks()
    assert not is_tracing_ranks()
