import torch


def test_a_stream_is_current_inside_its_context_only():
    default, stream = torch.neuron.current_stream(), torch.neuron.Stream()
    with torch.neuron.stream(stream):
        assert torch.neuron.current_stream() == stream
    assert torch.neuron.current_stream() == default == torch.neuron.default_stream()


def test_a_stream_of_another_device_makes_that_device_current_inside():
    with torch.neuron.stream(torch.neuron.Stream("neuron:1")):
        assert torch.neuron.current_device() == 1
    assert torch.neuron.current_device() == 0


def test_no_stream_changes_nothing():
    before = torch.neuron.current_stream()
    with torch.neuron.stream(None):
        assert torch.neuron.current_stream() == before


def test_streams_differ_and_can_be_rebuilt_from_their_numbers():
    first, second = torch.neuron.Stream(), torch.neuron.Stream()
    assert first != second
    again = torch.neuron.Stream(
        stream_id=first.stream_id, device_index=first.device_index, device_type=first.device_type
    )
    assert again == first


def test_events_are_of_the_device():
    event = torch.neuron.Event(enable_timing=True)
    assert isinstance(event, torch.neuron.Event)
    assert not isinstance(torch.neuron.Stream(), torch.neuron.Event)
    stream = torch.neuron.Stream()
    event.record(stream)
    stream.wait_event(event)
    stream.wait_stream(torch.neuron.current_stream())
    event.synchronize()
    assert event.query()
    assert stream.query()


def test_record_stream_is_accepted():
    torch.ones(1, device="neuron").record_stream(torch.neuron.Stream())
