from concurrent.futures import ThreadPoolExecutor

import pytest
import torch

from neuron_tools.device.api.devices import DeviceProperties, configure_properties, device_index


@pytest.fixture(autouse=True)
def first_device():
    yield
    torch.neuron.set_device(0)
    configure_properties(DeviceProperties())


@pytest.mark.parametrize(
    ("given", "index"),
    [(None, 0), (1, 1), (-1, 0), ("neuron", 0), ("neuron:1", 1), (torch.device("neuron", 1), 1)],
)
def test_a_device_is_given_in_any_of_pytorchs_ways(given, index):
    assert device_index(given) == index


def test_another_kind_of_device_is_refused():
    with pytest.raises(ValueError, match="Expected a neuron device, got cpu"):
        device_index("cpu")


def test_the_current_device_is_where_plain_neuron_goes():
    torch.neuron.set_device("neuron:1")
    assert torch.neuron.current_device() == 1
    assert torch.ones(1, device="neuron").device.index == 1
    assert torch.accelerator.current_device_index() == 1


def test_threads_without_a_device_of_their_own_use_the_one_that_was_set():
    def worker():
        before = torch.neuron.current_device()
        with torch.neuron.device(0):
            inside = torch.neuron.current_device()
        return before, inside

    torch.neuron.set_device(1)
    with ThreadPoolExecutor(1) as threads:
        assert threads.submit(worker).result() == (1, 0)
    with torch.neuron.device(0), ThreadPoolExecutor(1) as threads:
        assert threads.submit(worker).result() == (1, 0)


def test_context_managers_bring_the_device_back():
    with torch.neuron.device(1):
        assert torch.neuron.current_device() == 1
        with torch.neuron.device_of(torch.ones(1, device="neuron:0")):
            assert torch.neuron.current_device() == 0
        with torch.neuron.device_of(torch.ones(1)):
            assert torch.neuron.current_device() == 1
    assert torch.neuron.current_device() == 0


def test_a_device_that_is_not_there_leaves_the_current_one():
    with pytest.raises(RuntimeError, match="no device neuron:7"):
        torch.neuron.set_device(7)
    assert torch.neuron.current_device() == 0


def test_properties_are_what_the_hardware_model_says():
    configure_properties(DeviceProperties("neuron: Trainium2", 24 << 30, major=3, target="trn2.48xlarge"))
    assert torch.neuron.get_device_name("neuron:1") == "neuron: Trainium2"
    assert torch.neuron.get_device_properties().name == "trn2"
    assert torch.neuron.get_device_properties().total_memory == 24 << 30
    assert torch.neuron.get_device_capability() == (3, 0)
    assert torch.neuron.mem_get_info()[1] == 24 << 30


@pytest.mark.parametrize("index", [-1, 64, 1 << 32])
def test_a_device_that_is_not_there_has_no_properties(index):
    with pytest.raises(RuntimeError, match=f"no device neuron:{index}: this process has 2"):
        torch.neuron.get_device_properties(index)


def test_total_memory_without_a_model_is_the_hosts():
    assert torch.neuron.get_device_properties(0).total_memory > 1 << 28


def test_the_accelerator_interface_finds_the_device():
    assert torch.accelerator.current_accelerator() == torch.device("neuron")
    assert torch.accelerator.device_count() == torch.neuron.device_count() == 2
    assert torch.neuron.is_available()
    assert torch.neuron.is_initialized()
