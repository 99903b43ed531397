"""A region is one graph where the program wants that, and has no more of them than it allows."""

from __future__ import annotations

import pytest
import torch

from neuron_tools.frontends.torch_xla import XlaError, sync
from neuron_tools.frontends.torch_xla.regions import Region


def doubled(value):
    return value * 2


def test_its_graph_has_its_name(counter, xla):
    with Region(doubled).entered():
        result = doubled(torch.ones(3).to(xla)).sinh().tanh()
    torch.testing.assert_close(result.cpu(), torch.full((3,), 2.0).sinh().tanh())
    assert list(counter.modules.values()) == ["doubled"]


def test_a_whole_one_refuses_a_look_and_runs_afterwards(counter, xla):
    value = torch.ones(3).to(xla)

    def look():
        with Region(doubled, is_whole=True).entered():
            value.mul_(2).sum().item()

    with pytest.raises(XlaError, match="Unexpected execution happens inside the compiled function"):
        look()
    assert value.tolist() == [2, 2, 2]


def test_one_graph_too_many_says_how_it_differs(counter, xla):
    one, other = torch.ones(3).to(xla), torch.ones(5).to(xla)
    results = []

    def run(value):
        with Region(doubled, most_graphs=1).entered():
            results.append(doubled(value))

    run(one)
    run(one)
    with pytest.raises(XlaError, match=r"exceeded: 1 \(new shape: input 0 is float32\[5\], not float32\[3\]"):
        run(other)
    sync()
    assert [each.tolist() for each in results] == [[2] * 3, [2] * 3, [2] * 5]
