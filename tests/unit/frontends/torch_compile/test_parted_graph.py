"""A compiled graph with sizes that only values tell runs in parts, with the uncompiled program's values."""

from __future__ import annotations

import tempfile
from pathlib import Path

import pytest
import torch

import neuron_tools

ROWS = torch.randn(5, 3, generator=torch.Generator().manual_seed(0))
COUNTS = torch.tensor([1, 0, 2, 3, 1])


@pytest.fixture(autouse=True)
def captures_sizes():
    torch._dynamo.reset()
    with torch._dynamo.config.patch(capture_scalar_outputs=True, capture_dynamic_output_shape_ops=True):
        yield


def repeated(rows, counts):
    return torch.repeat_interleave(rows * 2, counts, dim=0).sin()


def masked(rows, counts):
    return rows[rows > 0].cos()


def largest(rows, counts):
    count = counts.max().item()
    torch._check(count >= 0)
    torch._check(count <= 5)
    values, places = torch.topk(rows.sum(1), count)
    return values * places


def scaled(rows, counts):
    return rows * counts.sum().item()


def counted(rows, counts):
    return rows.sum() + torch.bincount(counts, minlength=2) * 2


def several(rows, counts):
    return repeated(rows, counts).sum() + masked(rows, counts).sum() * scaled(rows, counts).sum()


def of_runs(rows, counts):
    values, inverse = torch.unique(counts, return_inverse=True)
    return rows * values.sum() + inverse[:, None]


FUNCTIONS = [repeated, masked, largest, scaled, counted, several, of_runs]


def gradient(function, rows, call):
    leaf = rows.clone().requires_grad_()
    result = call(leaf, COUNTS.to(rows.device))
    result.sum().backward()
    return result.detach().cpu(), leaf.grad.cpu()


@pytest.mark.parametrize("function", FUNCTIONS)
def test_values_and_gradients_are_the_cpus_and_everything_takes_device_time(function):
    expected = gradient(function, ROWS, function)
    compiled = torch.compile(function, backend="neuron", fullgraph=True)
    with tempfile.TemporaryDirectory() as folder:
        with neuron_tools.profile(Path(folder) / "run.nprof", host_clock="fixed") as run:
            found = gradient(function, ROWS.to("neuron"), compiled)
        with run.open() as profile:
            assert profile.query('SELECT message FROM "Warning"').to_pylist() == []
            names = {
                row["name"]
                for row in profile.query("SELECT framework_name AS name FROM HloInstruction").to_pylist()
            }
    torch.testing.assert_close(found, expected)
    assert len(names) > 2


def test_other_values_make_other_sizes():
    compiled = torch.compile(repeated, backend="neuron", fullgraph=True)
    for counts in (COUNTS, COUNTS + 1, COUNTS * 0):
        found = compiled(ROWS.to("neuron"), counts.to("neuron"))
        torch.testing.assert_close(found.cpu(), repeated(ROWS, counts))


def test_a_tensor_is_written_between_two_sizes():
    def function(rows, counts):
        rows.mul_(2)
        picked = rows[rows > 0].sum()
        rows.add_(picked)
        return rows.nonzero().shape[0] + picked

    rows, there = ROWS.clone(), ROWS.to("neuron")
    expected = function(rows, COUNTS)
    compiled = torch.compile(function, backend="neuron", fullgraph=True)
    torch.testing.assert_close(compiled(there, COUNTS.to("neuron")).cpu(), expected)
    torch.testing.assert_close(there.cpu(), rows)
