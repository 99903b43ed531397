"""What `torch_neuronx` does with traced models: batches, buckets, weights, cores, and wrong uses."""

from copy import deepcopy

import pytest
import torch
from torch import nn

from neuron_tools import compat
from neuron_tools.device.api import devices
from neuron_tools.errors import NeuronToolsError
from neuron_tools.frontends.torch_trace import operator
from neuron_tools.neff import read_neff

EXAMPLE = torch.randn(4, 8, generator=torch.Generator().manual_seed(0))
BATCH = torch.randn(10, 8, generator=torch.Generator().manual_seed(1))


@pytest.fixture(scope="module")
def torch_neuronx():
    uninstall = compat.install()
    import torch_neuronx

    yield torch_neuronx
    uninstall()


def network(seed=0):
    torch.manual_seed(seed)
    return nn.Sequential(nn.Linear(8, 4), nn.ReLU(), nn.Linear(4, 2)).eval().requires_grad_(False)


@pytest.fixture(scope="module")
def traced(torch_neuronx):
    return torch_neuronx.trace(network(), EXAMPLE)


@pytest.fixture(scope="module")
def without_weights(torch_neuronx):
    return torch_neuronx.trace(network(), EXAMPLE, inline_weights_to_neff=False)


@pytest.fixture
def generation():
    """Makes the simulated cores those of a generation."""
    before = devices.configure_properties(devices.DeviceProperties())
    yield lambda number: devices.configure_properties(devices.DeviceProperties(major=number))
    devices.configure_properties(before)


def test_a_batch_of_any_size_goes_through_in_pieces(torch_neuronx, traced):
    torch.testing.assert_close(torch_neuronx.dynamic_batch(traced)(BATCH), network()(BATCH))


def test_cores_share_a_batch(torch_neuronx, traced):
    parallel = torch_neuronx.DataParallel(traced, device_ids=[0, "nc:1"])
    torch.testing.assert_close(parallel(BATCH), network()(BATCH))
    parallel.disable_dynamic_batching()
    with pytest.raises(NeuronToolsError, match="multiple of 4, up to 8 on 2 cores"):
        parallel(BATCH)


def test_a_batch_for_fewer_cores_leaves_the_others_idle(torch_neuronx, traced):
    parallel = torch_neuronx.DataParallel(traced, device_ids=[0, 1], set_dynamic_batching=False)
    torch.testing.assert_close(parallel(EXAMPLE), network()(EXAMPLE))


def test_a_model_with_states_takes_no_pieces(torch_neuronx):
    model = Accumulator()
    traced = torch_neuronx.trace(model, EXAMPLE, input_output_aliases={model.total: 1})
    with pytest.raises(NeuronToolsError, match="keeps states from call to call"):
        torch_neuronx.dynamic_batch(traced)


def test_weights_are_replaced_without_compiling(torch_neuronx, without_weights, tmp_path):
    torch.testing.assert_close(without_weights(EXAMPLE), network()(EXAMPLE))
    torch_neuronx.replace_weights(without_weights, network(seed=1))
    torch.testing.assert_close(without_weights(EXAMPLE), network(seed=1)(EXAMPLE))
    torch.jit.save(without_weights, tmp_path / "model.pt")
    torch.testing.assert_close(torch.jit.load(tmp_path / "model.pt")(EXAMPLE), network(seed=1)(EXAMPLE))


def test_weights_of_another_shape_are_refused(torch_neuronx, traced, without_weights):
    with pytest.raises(NeuronToolsError, match=r"0.weight was compiled as float32\[4, 8\] and cannot become"):
        torch_neuronx.replace_weights(without_weights, {"0.weight": torch.ones(3, 3)})
    with pytest.raises(NeuronToolsError, match="trace it with inline_weights_to_neff=False"):
        torch_neuronx.replace_weights(traced, network())


def test_a_core_that_does_not_exist_is_refused(torch_neuronx, traced):
    for attempt in (
        lambda: torch_neuronx.move_trace_to_device(traced, 77),
        lambda: torch_neuronx.DataParallel(traced, device_ids=[77]),
        lambda: torch_neuronx.experimental.set_neuron_cores(traced, 77, 1),
    ):
        with pytest.raises(NeuronToolsError, match="There is no NeuronCore 77: this process has"):
            attempt()


def test_a_model_stays_on_its_core(torch_neuronx, traced, tmp_path, monkeypatch):
    cores = []
    monkeypatch.setattr(operator, "check_inputs", lambda *_: cores.append(torch.neuron.current_device()))
    torch.jit.save(traced, tmp_path / "model.pt")
    for model in (traced, torch.jit.load(tmp_path / "model.pt")):
        torch_neuronx.move_trace_to_device(model, 1)
        torch.testing.assert_close(model(EXAMPLE), network()(EXAMPLE))
    assert (cores, torch.neuron.current_device()) == ([1, 1], 0)
    torch_neuronx.move_trace_to_device(traced, 0)


def pad_to_bucket(tensors: list[torch.Tensor], lengths: list[int]):
    length, number = tensors[0].shape[0], 0
    while number < len(lengths) - 1 and length > lengths[number]:
        number += 1
    padded: list[torch.Tensor] = []
    for tensor in tensors:
        padded.append(torch.nn.functional.pad(tensor, (0, 0, 0, max(lengths[number] - length, 0))))
    return padded, torch.tensor([number])


@pytest.fixture
def buckets(torch_neuronx):
    config = torch_neuronx.BucketModelConfig(lambda: pad_to_bucket, bucket_kernel_constant_args=([4, 8],))
    examples = [EXAMPLE, torch.cat([EXAMPLE, EXAMPLE])]
    return torch_neuronx.bucket_model_trace(lambda: (network(), {}), examples, config)


def loaded(model, folder):
    torch.jit.save(model, folder / "buckets.pt")
    return torch.jit.load(folder / "buckets.pt")


@pytest.mark.parametrize("kept", [lambda model, _: model, lambda model, _: deepcopy(model), loaded])
def test_a_bucket_is_chosen_and_one_too_small_is_refused(buckets, tmp_path, kept):
    model = kept(buckets, tmp_path)
    for length in (3, 6):
        torch.testing.assert_close(model(BATCH[:length])[:length], network()(BATCH[:length]))
    with pytest.raises(NeuronToolsError, match=r"shape \[10, 8\] do not fit bucket 1, which takes \[8, 8\]"):
        model(BATCH)


class Accumulator(nn.Module):
    """Adds up what it is given, padded rows of zeros too."""

    def __init__(self):
        super().__init__()
        self.total = nn.Parameter(torch.zeros(8), requires_grad=False)

    def forward(self, values):
        total = self.total + values.sum(0)
        return values.sum(), total


def accumulating(torch_neuronx, **options):
    def function():
        model = Accumulator()
        return model, {model.total: 1}

    config = torch_neuronx.BucketModelConfig(
        lambda: pad_to_bucket, bucket_kernel_constant_args=([4, 8],), **options
    )
    examples = [torch.zeros(4, 8), torch.zeros(8, 8)]
    return torch_neuronx.bucket_model_trace(function, examples, config)


@pytest.mark.parametrize("kept", [lambda model, _: model, lambda model, _: deepcopy(model), loaded])
def test_buckets_have_states_of_their_own_or_share_them(torch_neuronx, tmp_path, kept):
    ones = torch.ones(6, 8)
    for options, totals in (({}, [6, 6]), ({"shared_state_buffer": [torch.full((8,), 10.0)]}, [22, 22])):
        model = kept(accumulating(torch_neuronx, **options), tmp_path)
        for length in (3, 6, 3):
            total, _ = model(ones[:length])
            assert total == 8 * length
        assert [state[0].item() for state in (model.bucket_0.weight_0, model.bucket_1.weight_0)] == totals


def test_shared_states_that_no_bucket_has_are_refused(torch_neuronx):
    with pytest.raises(NeuronToolsError, match=r"are float32\[3\], but bucket 0 has float32\[8\]"):
        accumulating(torch_neuronx, shared_state_buffer=[torch.zeros(3)])
    with pytest.raises(NeuronToolsError, match=r"shared_state_buffer_preprocessor, .* is not simulated"):
        accumulating(
            torch_neuronx, shared_state_buffer=[torch.zeros(8)], shared_state_buffer_preprocessor=lambda: None
        )


def test_a_bucket_kernel_that_is_not_for_torchscript_is_refused(torch_neuronx):
    def kernel(*tensors):
        return [*tensors], 0

    config = torch_neuronx.BucketModelConfig(lambda: kernel)
    with pytest.raises(NeuronToolsError, match="The bucket kernel kernel is no program for TorchScript"):
        torch_neuronx.bucket_model_trace(lambda: (network(), {}), [EXAMPLE], config)


def test_inputs_of_another_shape_are_refused_by_the_error_itself(torch_neuronx, traced, tmp_path):
    torch.jit.save(traced, tmp_path / "model.pt")
    for model in (traced, torch.jit.load(tmp_path / "model.pt")):
        with pytest.raises(NeuronToolsError, match=r"^The model was traced for inputs float32\[4,8\], not"):
            model(BATCH)


def test_a_shape_that_depends_on_values_is_refused(torch_neuronx):
    with pytest.raises(NeuronToolsError, match=r"the shape of what .* makes depends on values"):
        torch_neuronx.trace(lambda values: values[values > 0] * 2, EXAMPLE)


@pytest.mark.parametrize(
    "train", [lambda loss, weight: loss.backward(), lambda loss, weight: torch.autograd.grad(loss, weight)]
)
def test_training_on_inferentia_1_is_refused(generation, train):
    weight = torch.ones(2, requires_grad=True)
    generation(1)
    train(weight.sum(), weight)
    on_device = weight.detach().to("neuron").requires_grad_()
    with pytest.raises(NeuronToolsError, match="Inferentia 1 cannot train"):
        train(on_device.sum(), on_device)
    generation(2)
    train(on_device.sum(), on_device)


def test_weights_of_another_model_are_refused(torch_neuronx):
    traced = torch_neuronx.trace(network(), EXAMPLE, inline_weights_to_neff=False)
    with pytest.raises(NeuronToolsError, match=r"None of the weights .* which are 0\.weight,"):
        torch_neuronx.replace_weights(traced, {"weight": torch.zeros(4, 8)})


@pytest.mark.parametrize(
    ("present", "compiled"), [("trn1.32xlarge", "trn1"), ("inf2", "inf2"), ("inf1", "trn2")]
)
def test_a_model_is_compiled_for_the_chip_that_is_there(torch_neuronx, tmp_path, present, compiled):
    before = devices.configure_properties(devices.DeviceProperties(target=present))
    try:
        torch_neuronx.trace(network(), EXAMPLE, compiler_workdir=str(tmp_path))
    finally:
        devices.configure_properties(before)
    assert read_neff(tmp_path / "graph.neff").program.target == compiled


def test_an_analysis_counts_what_the_device_runs(torch_neuronx, capsys):
    import torch_neuron

    assert torch_neuronx.analyze(network(), EXAMPLE)["support_percentage"] == "100.00%"
    model = nn.Sequential(nn.Embedding(8, 8), network())
    assert torch_neuron.analyze_model(model, torch.tensor([[1, 2]])) == {"aten::embedding": 1}
    assert "On the CPU: aten::embedding (1)" in capsys.readouterr().out


def test_compiled_programs_are_kept_where_the_flags_say(torch_neuronx, monkeypatch, tmp_path):
    monkeypatch.setenv("NEURON_COMPILE_CACHE_URL", "off")
    monkeypatch.setenv("NEURON_CC_FLAGS", f"--cache_dir={tmp_path / 'environment'}")
    torch_neuronx.trace(network(), EXAMPLE)
    torch_neuronx.trace(network(), EXAMPLE, compiler_args=["--cache_dir", str(tmp_path / "arguments")])
    assert all(list((tmp_path / name).iterdir()) for name in ("environment", "arguments"))
