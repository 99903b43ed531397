"""Tensors on `neuron`: memory, views, copies, files, errors."""

import copy
import io
import multiprocessing
import pickle

import pytest
import torch


def test_views_share_memory_and_in_place_operations_show_through():
    base = torch.arange(12, device="neuron")
    rows = base.view(3, 4)
    rows[1].add_(100)
    rows.t()[0].zero_()
    assert base.tolist() == [0, 1, 2, 3, 0, 105, 106, 107, 0, 9, 10, 11]
    assert rows._base is base
    assert rows.data_ptr() == base.data_ptr()


def test_results_that_alias_an_argument_stay_on_its_storage():
    base = torch.randn(4, 4, device="neuron")
    for alias in (base.detach(), base.diagonal(), base.unfold(0, 2, 1), base[:, ::2], base.narrow(0, 1, 2)):
        assert alias.untyped_storage().data_ptr() == base.untyped_storage().data_ptr()


def test_out_arguments_are_resized_and_given_back():
    a = torch.ones(3, 4, device="neuron")
    out = torch.empty(0, device="neuron")
    assert torch.add(a, a, out=out) is out
    assert out.tolist() == [[2.0] * 4] * 3


def test_resize_keeps_what_fits():
    x = torch.arange(4, device="neuron")
    x.resize_(6)
    assert x[:4].tolist() == [0, 1, 2, 3]
    storage = x.untyped_storage()
    storage.resize_(16)
    assert storage.nbytes() == 16
    storage.resize_(0)
    assert storage.nbytes() == 0


def test_set_takes_over_another_tensors_storage():
    source, x = torch.arange(6, device="neuron"), torch.empty(0, dtype=torch.long, device="neuron")
    x.set_(source.untyped_storage(), 2, (2, 2), (2, 1))
    assert x.tolist() == [[2, 3], [4, 5]]
    x.add_(1)
    assert source.tolist() == [0, 1, 3, 4, 5, 6]


def test_overlapping_writes_are_refused_as_on_the_cpu():
    x = torch.zeros(1, device="neuron").expand(4)
    with pytest.raises(RuntimeError, match="more than one element of the written-to tensor"):
        x.add_(1)


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16, torch.int8, torch.bool, torch.complex64])
def test_copies_convert_dtype_and_layout_both_ways(dtype):
    source = torch.tensor([[0.0, 1.0], [2.0, 3.0]]).t()
    there = torch.empty(2, 2, dtype=dtype, device="neuron").copy_(source)
    assert torch.equal(there.cpu(), source.to(dtype))
    assert torch.equal(torch.empty(2, 2).to(dtype).copy_(there), source.to(dtype))


def test_non_blocking_copies_from_pinned_memory():
    pinned = torch.arange(5).pin_memory()
    assert pinned.is_pinned()
    assert not torch.arange(5).is_pinned()
    assert pinned.to("neuron", non_blocking=True).tolist() == [0, 1, 2, 3, 4]


def test_copies_between_two_cores():
    there = torch.arange(3, device="neuron:0").to("neuron:1")
    assert there.device == torch.device("neuron", 1)
    assert (there + there).tolist() == [0, 2, 4]


def test_lazy_conjugates_are_resolved():
    x = torch.tensor([1 + 2j, 3 - 1j])
    there = x.to("neuron").conj()
    assert there.is_conj()
    assert torch.equal(there.clone().cpu(), x.conj())
    assert torch.equal((there * there).cpu(), x.conj() * x.conj())
    assert torch.equal(there.imag.cpu(), x.conj().imag)


def test_integer_histograms_as_on_other_accelerators():
    x = torch.tensor([1, 2, 2, 3], device="neuron")
    assert torch.histc(x, bins=3, min=1, max=3).tolist() == [1, 2, 1]


def test_save_load_pickle_and_deepcopy_keep_device_values_and_sharing():
    weight = torch.arange(6.0, device="neuron:1")
    bundle = {"weight": weight, "view": weight[2:4]}
    file = io.BytesIO()
    torch.save(bundle, file)
    file.seek(0)
    loaded = torch.load(file, weights_only=True)
    file.seek(0)
    assert torch.load(file, map_location="cpu")["weight"].device.type == "cpu"
    for again in (loaded, copy.deepcopy(bundle), pickle.loads(pickle.dumps(bundle))):
        assert again["weight"].device == weight.device
        assert torch.equal(again["weight"], weight)
    loaded["view"].zero_()
    assert loaded["weight"].tolist() == [0, 1, 0, 0, 4, 5]


def test_dlpack_borrows_the_memory():
    x = torch.arange(4.0, device="neuron")
    borrowed = torch.utils.dlpack.from_dlpack(torch.utils.dlpack.to_dlpack(x))
    borrowed.mul_(2)
    assert borrowed.device == x.device
    assert x.tolist() == [0, 2, 4, 6]
    assert (borrowed + x).tolist() == [0, 4, 8, 12]


def test_a_module_keeps_its_parameters_when_it_moves():
    layer = torch.nn.Linear(2, 2)
    weight = layer.weight
    layer.to("neuron")
    assert layer.weight is weight
    assert weight.device.type == "neuron"


def test_mixing_devices_names_both():
    with pytest.raises(RuntimeError, match="neuron:0 and cpu"):
        torch.ones(2, device="neuron") + torch.ones(2)
    with pytest.raises(RuntimeError, match="neuron:0 and neuron:1"):
        torch.ones(2, device="neuron:0") + torch.ones(2, device="neuron:1")


def test_cpu_numbers_and_index_tensors_may_mix_in():
    x = torch.arange(4.0, device="neuron")
    assert (x * torch.tensor(2.0)).tolist() == [0, 2, 4, 6]
    assert x[torch.tensor([3, 0])].tolist() == [3, 0]


def test_sparse_layouts_are_refused_in_words():
    with pytest.raises(NotImplementedError, match="strided tensors only"):
        torch.eye(2, device="neuron").to_sparse()


def test_a_device_that_is_not_there_is_named():
    with pytest.raises(RuntimeError, match=r"no device neuron:9.*NEURON_RT_NUM_CORES"):
        torch.ones(1, device="neuron:9")


def _sum_in_child(values, results):
    results.put((torch.tensor(values, device="neuron") * 2).sum().item())


def test_a_forked_child_goes_on_computing():
    context = multiprocessing.get_context("fork")
    results = context.SimpleQueue()
    child = context.Process(target=_sum_in_child, args=([1, 2, 3], results))
    child.start()
    assert results.get() == 12
    child.join()
    assert child.exitcode == 0


@pytest.mark.parametrize(
    ("make", "says"),
    [
        (lambda: torch.empty(4, dtype=torch.quint8, device="neuron"), "no quantised element types"),
        (lambda: torch.eye(2).to_sparse().to("neuron"), "strided tensors only"),
    ],
)
@pytest.mark.filterwarnings("ignore")
def test_tensors_of_foreign_kinds_are_refused_in_one_sentence_with_a_remedy(make, says):
    with pytest.raises(NotImplementedError, match=says) as refused:
        make()
    assert "CPU" in str(refused.value)
    assert "\n" not in str(refused.value)
