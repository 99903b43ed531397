"""Who holds device memory, and what happens when there is no more."""

import gc

import pytest
import torch

from neuron_tools.device import native
from tests.integration.device.recording import record


@pytest.fixture
def limited():
    """One megabyte more than what is in use now."""
    gc.collect()
    native.set_memory_limit(torch.neuron.memory_allocated() + (1 << 20))
    yield
    native.set_memory_limit(0)


def test_statistics_follow_allocations_and_frees():
    gc.collect()
    before = torch.neuron.memory_allocated()
    torch.neuron.reset_peak_memory_stats()
    x = torch.empty(1000, device="neuron")
    y = x * 2
    assert torch.neuron.memory_allocated() - before == 8000
    del x, y
    assert torch.neuron.memory_allocated() == before
    assert torch.neuron.max_memory_allocated() - before == 8000
    stats = torch.neuron.memory_stats()
    assert stats["allocated_bytes.all.peak"] - before == 8000
    assert (
        stats["allocation.all.allocated"] - stats["allocation.all.freed"] == stats["allocation.all.current"]
    )


def test_views_and_aliases_are_counted_once():
    before = torch.neuron.memory_allocated()
    x = torch.ones(100, device="neuron")
    kept = [x.view(10, 10), x[3:], x.detach(), x.add_(1)]
    assert torch.neuron.memory_allocated() - before == 400
    del x, kept


def test_out_of_memory_says_what_was_asked_what_is_used_and_who_holds_it(limited):
    held = torch.zeros(100_000, device="neuron") * 2
    with pytest.raises(torch.OutOfMemoryError) as caught:
        torch.empty(1 << 20, device="neuron")
    text = str(caught.value)
    assert "neuron:0 is out of memory: asked for 4.00 MiB (4194304 bytes)" in text
    assert "in use of" in text
    assert "390.62 KiB       1 allocation   aten::mul.Tensor" in text
    assert held[0].item() == 0


def test_a_result_that_does_not_fit_is_refused_and_what_fits_goes_on(limited):
    x = torch.ones(600, 1, device="neuron")
    ooms = torch.neuron.memory_stats()["num_ooms"]
    with pytest.raises(torch.OutOfMemoryError):
        x @ x.t()
    assert torch.neuron.memory_stats()["num_ooms"] == ooms + 1
    assert (x.t() @ x).item() == 600


def test_the_limit_is_each_cores_own(limited):
    torch.neuron.reset_peak_memory_stats(1)
    there = torch.empty(200_000, device="neuron:1")
    assert torch.neuron.memory_allocated(1) >= 800_000
    del there


def test_a_recording_names_line_and_module_of_the_holders(limited, tmp_path):
    summary = []

    def program():
        native.set_module(4)
        native.name_module(4, "encoder.layers.0")
        kept = torch.ones(1000, device="neuron").exp()
        native.set_module(0)
        summary.append(torch.neuron.memory_summary())
        del kept

    record(program, tmp_path / "log")
    line = program.__code__.co_firstlineno + 3
    assert f"aten::exp  {__file__}:{line} in encoder.layers.0" in summary[0]


def test_the_summary_and_the_free_memory_agree_with_the_limit(limited):
    free, total = torch.neuron.mem_get_info()
    assert total == native.memory_limit()
    assert total - free == torch.neuron.memory_allocated()
    assert f"{torch.neuron.memory_allocated():,} bytes" in torch.neuron.memory_summary(abbreviated=True)


def test_the_generic_accelerator_interface_reports_the_same():
    x = torch.ones(10, device="neuron")
    assert torch.accelerator.memory_allocated() == torch.neuron.memory_allocated()
    torch.accelerator.reset_peak_memory_stats()
    assert torch.accelerator.max_memory_allocated() == torch.neuron.max_memory_allocated()
    assert torch.accelerator.get_memory_info() == torch.neuron.mem_get_info()
    torch.accelerator.empty_cache()
    del x
