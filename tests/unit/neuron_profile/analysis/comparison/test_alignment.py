import pytest

from neuron_profile.analysis.comparison.alignment import align
from neuron_profile.analysis.comparison.operations import OperationKey


def key(module, operation, backward=False):
    return OperationKey(module, operation, backward)


@pytest.mark.parametrize(
    ("old", "new"),
    [
        (key("/model/a", "aten::mul"), key("/model/a", "aten::mul")),
        (key("/model/a", "aten::mul"), key("/OptimizedModule/_orig_mod/model/a", "aten::mul.Tensor")),
        (key("/model/old/attention", "aten::bmm"), key("/model/new/attention", "aten::bmm")),
        (key("/model/a", "aten::softmax"), key("/model/b", "aten::softmax")),
    ],
)
def test_operations_find_their_partner(old, new):
    rest = key("/model/z", "aten::embedding")
    assert set(align([old, rest], [rest, new])) == {(old, new), (rest, rest)}


def test_directions_are_kept_apart():
    forward, backward = key("/a", "aten::mm"), key("/b", "aten::mm", backward=True)
    assert set(align([forward], [backward])) == {(forward, None), (None, backward)}


def test_what_is_not_clear_stays_alone():
    olds = [key("/x", "aten::mul"), key("/y", "aten::mul")]
    news = [key("/p", "aten::mul"), key("/q", "aten::mul")]
    assert all(None in pair for pair in align(olds, news))


def test_every_operation_stands_in_exactly_one_pair():
    olds = [key(f"/m/{i}", "aten::mul") for i in range(5)] + [key("/m/0", "aten::add")]
    news = [key(f"/m/{i}", "aten::mul") for i in range(2, 7)]
    pairs = align(olds, news)
    assert sorted(old for old, _ in pairs if old) == sorted(olds)
    assert sorted(new for _, new in pairs if new) == sorted(news)
