from neuron_tools.capture.clock import CaptureClock


def test_the_first_record_of_the_capture_is_at_zero():
    clock = CaptureClock(shared=True)
    assert 500 + clock.offset_ns(start_unix_ns=1_000_000, first_ns=500) == 0


def test_a_second_process_keeps_its_distance():
    clock = CaptureClock(shared=True)
    clock.offset_ns(1_000_000, 500)
    assert 20 + clock.offset_ns(1_002_000, 20) == 1_520


def test_a_process_that_began_earlier_but_told_later_does_not_stand_before_zero():
    clock = CaptureClock(shared=True)
    clock.offset_ns(1_000_000, 500)
    assert 10 + clock.offset_ns(1_000_000, 10) == 0


def test_reproducible_times_are_left_alone():
    assert CaptureClock(shared=False).offset_ns(0, 500) == 0


def test_a_window_begins_with_its_first_record_also_where_processes_are_not_related():
    clock = CaptureClock(shared=False, from_first=True)
    assert clock.offset_ns(0, 700) == -700
    assert clock.offset_ns(5_000, 900) == -900
