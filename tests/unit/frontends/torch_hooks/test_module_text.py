"""A module's call as text, and made again."""

from __future__ import annotations

import json

import pytest

torch = pytest.importorskip("torch")

from neuron_tools.frontends.torch_hooks.module_text import RecordedCall, describe_call  # noqa: E402  needs torch


class Tied(torch.nn.Module):
    """Two layers with one weight, a buffer, and an attribute of each plain kind."""

    def __init__(self) -> None:
        super().__init__()
        self.first, self.second = torch.nn.Linear(4, 4), torch.nn.Linear(4, 4, bias=False)
        self.second.weight = self.first.weight
        self.register_buffer("scale", torch.ones(4))
        self.spare, self.sizes, self.activation = None, (2, [3]), torch.nn.functional.gelu
        self.kind, self.dropout = torch.bfloat16, torch.nn.Dropout(0.5).eval()

    def forward(self, x: torch.Tensor, times: int = 1) -> torch.Tensor:
        return self.second(self.activation(self.first(x))) * self.scale * times


def find(module: str, name: str, file: str) -> type:
    return Tied


def test_a_call_is_made_again_without_its_values() -> None:
    text = describe_call(Tied(), (torch.randn(3, 4),), {"times": 2})
    assert text is not None
    again = RecordedCall(text, find)
    assert again.module.first.weight is again.module.second.weight
    assert not again.module.first.weight.any()
    assert again.module.sizes == (2, [3])
    assert not again.module.dropout.training
    assert again.run().shape == (3, 4)
    assert again.run().requires_grad


def test_gradients_are_asked_for_as_they_were() -> None:
    with torch.no_grad():
        text = describe_call(Tied(), (torch.randn(3, 4),), {})
    assert not RecordedCall(text, find).run().requires_grad


@pytest.mark.parametrize("kept", [object(), print, {1: 2}, lambda x: x])
def test_what_cannot_be_told_leaves_the_call_out(kept: object) -> None:
    module = Tied()
    module.kept = kept
    assert describe_call(module, (), {}) is None


def test_a_module_with_hooks_is_left_out() -> None:
    module = Tied()
    module.first.register_forward_hook(lambda *_: None)
    assert describe_call(module, (), {}) is None


@pytest.mark.parametrize(
    ("entry", "value"),
    [("attributes", {"f": {"function": ["os", "system"]}}), ("class", ["torch.hub", "load", ""])],
)
def test_a_text_of_somebody_else_reaches_nothing_but_modules(entry: str, value: object) -> None:
    told = json.loads(describe_call(Tied(), (), {}))
    told["module"][entry] = value
    with pytest.raises((TypeError, ValueError)):
        RecordedCall(json.dumps(told), find)
