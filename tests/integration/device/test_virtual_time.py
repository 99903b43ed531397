"""Streams, events and the host's clock on virtual time."""

import pytest
import torch

from neuron_tools.device import native


@pytest.fixture
def timed():
    """Virtual time under the fixed clock: 10 us a dispatch, 1 ms an operation, copies of 1 GB/s."""
    native.set_clock("fixed", 10_000)
    native.set_copy_model(1e9, 0)
    native.set_launch_overhead_ns(0)
    native.start_timing(lambda name, arguments: (1, 1_000_000, 0))
    yield
    native.stop_recording()
    native.set_clock("measured")


def work(count=1):
    x = torch.ones(4, device="neuron")
    for _ in range(count):
        x = x.relu()
    return x


def test_device_work_leaves_the_host_free_until_it_waits(timed):
    work(3)
    assert native.host_now_ns() < 1_000_000
    torch.neuron.synchronize()
    # fill_ and three relus, one after the other from the first dispatch on
    assert native.host_now_ns() == 10_000 + 4 * 1_000_000


def test_reading_a_value_waits_for_it(timed):
    work().sum().item()
    assert native.host_now_ns() >= 3_000_000


def test_an_operator_whose_shape_depends_on_values_waits(timed):
    torch.nonzero(work())
    assert native.host_now_ns() >= 3_000_000


@pytest.mark.parametrize("kind", [torch.bool, torch.uint8])
def test_indexing_by_a_mask_waits(timed, kind):
    mask = torch.tensor([1, 0, 1, 1]).to(kind).to("neuron")
    assert work()[mask].shape == (3,)
    assert native.host_now_ns() >= 3_000_000


def test_indexing_by_places_does_not_wait(timed):
    places = torch.tensor([0, 2], dtype=torch.int32).to("neuron")
    begin = native.host_now_ns()
    assert work()[places].shape == (2,)
    assert native.host_now_ns() - begin < 1_000_000


def test_non_blocking_copies_do_not_hold_the_host(timed):
    source = torch.ones(1_000_000).pin_memory()
    source.to("neuron", non_blocking=True)
    assert native.host_now_ns() < 1_000_000
    source.to("neuron")
    assert native.host_now_ns() >= 8_000_000


def test_elapsed_time_between_events_is_device_time(timed):
    first, second = torch.neuron.Event(enable_timing=True), torch.neuron.Event(enable_timing=True)
    x = work()
    first.record()
    x.relu().relu()
    second.record()
    second.synchronize()
    assert first.elapsed_time(second) == pytest.approx(2.0)


def test_a_copy_runs_beside_compute_but_two_streams_of_compute_do_not(timed):
    x, data = work(), torch.ones(250_000).pin_memory()
    torch.neuron.synchronize()
    begin = native.host_now_ns()
    with torch.neuron.stream(torch.neuron.Stream()):
        data.to("neuron", non_blocking=True)
    x.relu()
    torch.neuron.synchronize()
    beside = native.host_now_ns() - begin
    assert beside < 1_100_000

    begin = native.host_now_ns()
    with torch.neuron.stream(torch.neuron.Stream()):
        x.relu()
    x.relu()
    torch.neuron.synchronize()
    assert native.host_now_ns() - begin >= 2_000_000


def test_a_stream_waits_for_another_streams_event(timed):
    side = torch.neuron.Stream()
    work()
    event = torch.neuron.current_stream().record_event()
    side.wait_event(event)
    assert not side.query()
    side.synchronize()
    assert native.host_now_ns() >= 2_000_000


def test_polling_an_event_comes_to_an_end(timed):
    work()
    event = torch.neuron.current_stream().record_event()
    polls = 0
    while not event.query():
        polls += 1
    assert 0 < polls < 1_000


def test_cores_run_beside_each_other(timed):
    for index in range(2):
        torch.ones(4, device=f"neuron:{index}").relu()
    for index in range(2):
        torch.neuron.synchronize(index)
    assert native.host_now_ns() < 3_000_000


def test_paused_time_is_not_the_users(timed):
    begin = native.pause_clock()
    native.pause_clock()
    native.resume_clock()
    native.resume_clock()
    assert native.host_now_ns() == begin


def test_suppressed_work_takes_no_time(timed):
    before = native.suppress(True)
    work(5)
    native.suppress(before)
    torch.neuron.synchronize()
    assert native.host_now_ns() < 100_000


def test_the_measured_clock_leaves_computing_out_and_never_goes_back():
    native.set_clock("measured")
    native.start_timing(lambda name, arguments: (1, 0, 0))
    try:
        x = torch.randn(512, 512, device="neuron")
        times = [native.host_now_ns()]
        computing = torch.neuron.Event(enable_timing=True)
        for _ in range(20):
            x = (x @ x).clamp(-1, 1)
            times.append(native.host_now_ns())
        computing.record()
        assert times == sorted(times)
    finally:
        native.stop_recording()


def test_outside_virtual_time_events_measure_wall_time():
    first, second = torch.neuron.Event(enable_timing=True), torch.neuron.Event(enable_timing=True)
    first.record()
    torch.randn(256, 256, device="neuron") @ torch.randn(256, 256, device="neuron")
    second.record()
    assert first.elapsed_time(second) > 0
    assert second.query()
