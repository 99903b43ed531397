import pytest
import torch


def draw(device="neuron"):
    return torch.rand(4, device=device).tolist()


def test_a_seed_repeats_the_numbers_of_one_device_only():
    torch.neuron.manual_seed(3)
    first = draw()
    other = draw("neuron:1")
    torch.neuron.manual_seed(3)
    assert draw() == first
    assert draw("neuron:1") != other


def test_torch_manual_seed_seeds_every_device():
    torch.manual_seed(5)
    first = [draw("neuron:0"), draw("neuron:1")]
    torch.manual_seed(5)
    assert [draw("neuron:0"), draw("neuron:1")] == first


def test_a_state_has_16_bytes_and_brings_the_numbers_back():
    torch.neuron.manual_seed(1)
    draw()
    state = torch.neuron.get_rng_state()
    assert (state.dtype, tuple(state.shape), state.device.type) == (torch.uint8, (16,), "cpu")
    expected = draw()
    torch.neuron.set_rng_state(state)
    assert draw() == expected


def test_states_of_all_devices():
    states = torch.neuron.get_rng_state_all()
    expected = [draw(f"neuron:{i}") for i in range(2)]
    torch.neuron.set_rng_state_all(states)
    assert [draw(f"neuron:{i}") for i in range(2)] == expected


def test_a_wrong_state_is_refused():
    with pytest.raises(RuntimeError, match="16 bytes"):
        torch.neuron.set_rng_state(torch.zeros(5056, dtype=torch.uint8))


def test_seeding_from_the_system_changes_the_seed_of_all():
    torch.neuron.manual_seed_all(0)
    torch.neuron.seed_all()
    assert torch.neuron.initial_seed() != 0
    assert draw("neuron:0") == draw("neuron:1")


def test_own_generators_are_independent_and_forkable():
    generator = torch.Generator(device="neuron").manual_seed(9)
    first = torch.rand(3, device="neuron", generator=generator)
    copy = torch.Generator(device="neuron")
    copy.set_state(generator.get_state())
    second = torch.rand(3, device="neuron", generator=generator)
    assert torch.equal(torch.rand(3, device="neuron", generator=copy), second)
    assert not torch.equal(first, second)


def test_fork_rng_restores_the_device():
    torch.neuron.manual_seed(2)
    with torch.random.fork_rng(devices=[0], device_type="neuron"):
        expected = draw()
    assert draw() == expected


def test_generators_are_listed():
    generators = torch.neuron.default_generators
    assert len(generators) == 2
    assert [generator.device for generator in generators] == [torch.device("neuron", i) for i in range(2)]
    assert generators[-1] is generators[1]
    with pytest.raises(IndexError, match="neuron:2"):
        generators[2]


def test_many_draws_look_uniform_and_do_not_repeat():
    torch.neuron.manual_seed(0)
    x = torch.cat([torch.rand(1000, device="neuron") for _ in range(20)])
    assert abs(x.mean().item() - 0.5) < 0.01
    assert x.unique().numel() > 19_000
