from neuron_tools.device.host.timeline import DeviceTimeline


def test_a_core_runs_in_order_and_not_before_it_was_asked():
    timeline = DeviceTimeline(launch_overhead_ns=2)
    assert timeline.place([0], issued_ns=10, duration_ns=100) == (12, 112)
    assert timeline.place([0], issued_ns=20, duration_ns=5) == (114, 119)
    assert timeline.place([1], issued_ns=20, duration_ns=5) == (22, 27)


def test_an_execution_on_several_cores_starts_when_the_last_is_free():
    timeline = DeviceTimeline()
    timeline.place([2], issued_ns=0, duration_ns=50)
    assert timeline.place([1, 2, 3], issued_ns=0, duration_ns=10) == (50, 60)
    assert timeline.finish_ns([1]) == 60
    assert timeline.finish_ns([0]) == 0
