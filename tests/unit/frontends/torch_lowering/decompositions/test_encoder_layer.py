import pytest
import torch
from torch import nn
from torch.utils import _pytree as pytree
from torch.utils._python_dispatch import TorchDispatchMode

from tests.unit.frontends.lowered import lowered


class LastFusedCall(TorchDispatchMode):
    """Keeps the last call of one of the fused layers."""

    def __torch_dispatch__(self, target, types, args=(), kwargs=None):
        if "transformer_encoder" in str(target) or "native_multi_head" in str(target):
            values = [arg.detach() if isinstance(arg, torch.Tensor) else arg for arg in args]
            self.call = target, values, kwargs or {}
        return target(*args, **(kwargs or {}))


def assert_same(module, *args, **kwargs):
    with torch.no_grad(), LastFusedCall() as seen:
        module.eval()(*args, **kwargs)
    target, values, options = seen.call
    expected = pytree.tree_leaves(target(*values, **options))
    expected = [part for part in expected if part is not None and part.numel()]
    for found, wanted in zip(lowered(target, *values, **options), expected, strict=True):
        torch.testing.assert_close(found, wanted)


@pytest.mark.parametrize("options", [{}, {"norm_first": True}, {"activation": "gelu"}])
def test_an_encoder_layer_of_inference_has_the_values_of_the_cpu(options):
    assert_same(nn.TransformerEncoderLayer(16, 2, 32, batch_first=True, **options), torch.randn(2, 5, 16))


@pytest.mark.parametrize(
    "mask",
    [
        {"src_key_padding_mask": torch.tensor([[False] * 5, [False] * 3 + [True] * 2])},
        {"src_mask": torch.triu(torch.ones(5, 5), 1).bool()},
    ],
)
def test_masked_keys_are_not_attended_to(mask):
    assert_same(nn.TransformerEncoderLayer(16, 2, 32, batch_first=True), torch.randn(2, 5, 16), **mask)


@pytest.mark.parametrize("need_weights", [True, False])
def test_attention_returns_its_weights_where_they_are_wanted(need_weights):
    data = torch.randn(2, 5, 16)
    module = nn.MultiheadAttention(16, 2, batch_first=True)
    assert_same(module, data, data, data, need_weights=need_weights)
