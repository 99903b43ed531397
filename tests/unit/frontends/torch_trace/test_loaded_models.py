"""Which cores loaded models are given when nobody chooses any."""

import gc
from concurrent.futures import ThreadPoolExecutor
from copy import deepcopy

import pytest
import torch

from neuron_tools.device.api.choice import CHOICE
from neuron_tools.frontends.torch_trace import loaded_models, loading
from neuron_tools.frontends.torch_trace.loaded_models import LoadedModels
from neuron_tools.frontends.torch_trace.placement import next_core, note_loaded, on_cores


@pytest.fixture(autouse=True)
def archives(monkeypatch):
    """An archive's first byte tells how many cores it needs."""
    monkeypatch.setattr(loaded_models, "core_count", lambda artifact: artifact[0])


@pytest.fixture(autouse=True)
def no_choice(monkeypatch):
    """Nobody has chosen a device yet, as in a program that has just begun."""
    monkeypatch.setattr(CHOICE, "is_made", False)


def model(*widths):
    """A model with an archive for each width."""
    module = torch.nn.Module()
    for number, width in enumerate(widths or (1,)):
        piece = torch.nn.Module()
        piece.register_buffer("artifact", torch.full((4,), width, dtype=torch.uint8))
        module.add_module(str(number), piece)
    return module


def first_cores(loaded, models, core_count):
    return [next(loaded.turns_of(piece.artifact, core_count)) for each in models for piece in each.children()]


def loaded_with(models):
    loaded = LoadedModels()
    for each in models:
        loaded.add([each])
    return loaded


def test_models_go_to_the_least_used_cores_in_the_order_in_which_they_were_loaded():
    models = [model() for _ in range(5)]
    loaded = loaded_with(models)
    assert first_cores(loaded, models[::-1], 4)[::-1] == [0, 1, 2, 3, 0]
    assert first_cores(loaded, models, 4) == [0, 1, 2, 3, 0]


def test_a_pipeline_overlaps_as_little_as_it_can():
    models = [model(1), model(2), model(1)]
    assert first_cores(loaded_with(models), models, 2) == [0, 0, 1]  # AWS's example "Overlapping Models"


def test_pieces_and_buckets_of_a_model_stay_together():
    partitioned, first, second, last = model(1, 1), model(), model(), model()
    loaded = loaded_with([partitioned, first, second])
    loaded.add([first, second])
    loaded.add([last])
    assert first_cores(loaded, [partitioned, first, second, last], 4) == [0, 0, 1, 1, 2]


def test_a_core_is_free_again_when_its_model_is_gone():
    kept, gone = model(), model()
    loaded = loaded_with([gone, kept])
    assert first_cores(loaded, [gone, kept], 2) == [0, 1]
    del gone
    gc.collect()
    new = model()
    loaded.add([new])
    assert first_cores(loaded, [new], 2) == [0]


def test_an_archive_that_is_kept_after_its_model_takes_no_core():
    gone = model()
    kept_in_memory = gone.get_submodule("0").artifact
    loaded = loaded_with([gone])
    assert first_cores(loaded, [gone], 2) == [0]
    del gone
    gc.collect()
    new = model()
    loaded.add([new])
    assert first_cores(loaded, [new], 2) == [0]
    assert next(loaded.turns_of(kept_in_memory, 2)) == 0  # it may still be called, where it was


def test_a_model_that_somebody_placed_counts_on_its_core():
    placed, other = model(), model()
    loaded = LoadedModels()
    loaded.add([placed], [0])
    loaded.add([other])
    assert first_cores(loaded, [placed, other], 2) == [0, 1]


def test_what_nobody_loaded_has_no_core():
    assert LoadedModels().turns_of(model().get_submodule("0").artifact, 2) is None


def core_of_a_call(module):
    with next_core(module.get_submodule("0").artifact):
        return torch.neuron.current_device()


def test_a_model_loaded_in_a_block_keeps_the_cores_of_the_block(monkeypatch):
    monkeypatch.setattr("neuron_tools.frontends.torch_trace.placement.LOADED", LoadedModels())
    inside, outside = model(), model()
    with on_cores([1, 0]):
        note_loaded([inside])
    assert [core_of_a_call(inside) for _ in range(3)] == [1, 0, 1]
    note_loaded([outside])
    assert core_of_a_call(outside) == 0


def test_a_rank_stays_on_its_core(monkeypatch):
    monkeypatch.setattr("neuron_tools.frontends.torch_trace.placement.LOADED", LoadedModels())
    models = [model(), model()]
    for each in models:
        note_loaded([each])
    assert [core_of_a_call(each) for each in models] == [0, 1]
    monkeypatch.setenv("LOCAL_RANK", "0")
    assert [core_of_a_call(each) for each in models] == [0, 0]


@pytest.mark.parametrize("block", [torch.neuron.device, torch.accelerator.device_index])
def test_core_0_is_a_choice_in_a_block_of_it(block, monkeypatch):
    monkeypatch.setattr("neuron_tools.frontends.torch_trace.placement.LOADED", LoadedModels())
    models = [model(), model()]
    for each in models:
        note_loaded([each])
    with block(0):
        assert [core_of_a_call(each) for each in models] == [0, 0]
    assert [core_of_a_call(each) for each in models] == [0, 1]


@pytest.mark.parametrize("choose", [torch.neuron.set_device, torch.accelerator.set_device_index])
@pytest.mark.parametrize(("index", "second"), [(0, 0), (-1, 1)])
def test_core_0_is_a_choice_of_the_thread_that_made_it(choose, index, second, monkeypatch):
    monkeypatch.setattr("neuron_tools.frontends.torch_trace.placement.LOADED", LoadedModels())
    models = [model(), model()]
    for each in models:
        note_loaded([each])

    def after_a_choice():
        choose(index)
        return [core_of_a_call(each) for each in models]

    with ThreadPoolExecutor(1) as thread:
        assert thread.submit(after_a_choice).result() == [0, second]
    assert [core_of_a_call(each) for each in models] == [0, 1]


def test_a_stream_is_no_choice_of_a_core(monkeypatch):
    monkeypatch.setattr("neuron_tools.frontends.torch_trace.placement.LOADED", LoadedModels())
    models = [model(), model()]
    for each in models:
        note_loaded([each])
    with torch.neuron.stream(torch.neuron.Stream()):
        pass
    assert [core_of_a_call(each) for each in models] == [0, 1]


class Archive(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.register_buffer("artifact", torch.ones(4, dtype=torch.uint8))

    def forward(self):
        return self.artifact


def test_a_deep_copy_is_a_model_of_its_own(monkeypatch):
    monkeypatch.setattr("neuron_tools.frontends.torch_trace.placement.LOADED", LoadedModels())
    loading.install()
    original = torch.jit.script(Archive())
    note_loaded([original])
    copied = deepcopy(original)
    cores = []
    for each in (original, copied):
        with next_core(each.artifact):
            cores.append(torch.neuron.current_device())
    assert cores == [0, 1]
