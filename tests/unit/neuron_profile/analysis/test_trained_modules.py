"""Which modules an optimizer updates, as the text of a program says it."""

import pytest

from neuron_profile.analysis.trained_modules import trained_modules

MODEL = "model = Model().to('neuron')\nhead = nn.Linear(4, 4)\n"


def of(text):
    return trained_modules((MODEL + text).splitlines())


@pytest.mark.parametrize(
    ("text", "paths"),
    [
        ("torch.optim.SGD(head.parameters(), lr=0.1)", {"/Linear"}),
        ("optim.AdamW(model.head.parameters())", {"/Model/head"}),
        ("from torch.optim import AdamW\nAdamW([*model.a.parameters(), *head.parameters()])",
         {"/Model/a", "/Linear"}),
        ("torch.optim.SGD([{'params': model.parameters()}], lr=0.1)", {"/Model"}),
        ("torch.optim.SGD(list(model.a.parameters()) + list(model.b.parameters()))",
         {"/Model/a", "/Model/b"}),
        ("model.body.requires_grad_(False)\ntorch.optim.SGD(head.parameters())", {"/Linear"}),
    ],
)  # fmt: skip
def test_modules_are_named_by_their_paths(text, paths):
    assert of(text) == paths


@pytest.mark.parametrize(
    "text",
    [
        "",
        "torch.optim.SGD(filter(wanted, model.parameters()))",
        "torch.optim.SGD(made_elsewhere.parameters())",
        "torch.optim.SGD(head.parameters())\nfor p in model.parameters():\n    p -= p.grad",
        "torch.optim.SGD(head.parameters())\nx = torch.ones(4, requires_grad=True)",
        "torch.optim.SGD(head.parameters())\nx.requires_grad_()",
        "torch.optim.SGD(",
    ],
)
def test_what_is_not_said_plainly_is_not_known(text):
    assert of(text) == frozenset()
