"""Greedy generation gives the CPU's tokens, and its profile shows one step after the other."""

from __future__ import annotations

import pytest
import torch

import neuron_tools
from benchmarks.zoo import CASES

NEW_TOKENS = 2
FAST = "gpt2"


def generated(case, device):
    model, inputs = case.make(device)
    prompt = inputs["input_ids"][:1, :6]
    with torch.no_grad():
        return (
            model.eval()
            .generate(prompt, max_new_tokens=NEW_TOKENS, do_sample=False, use_cache=True, pad_token_id=0)
            .cpu()
        )


@pytest.mark.parametrize(
    "case",
    [
        pytest.param(case, id=case.name, marks=() if case.name == FAST else pytest.mark.slow)
        for case in CASES
        if case.generates
    ],
)
def test_greedy_generation_gives_the_cpus_tokens(case, tmp_path):
    expected = generated(case, "cpu")
    with neuron_tools.profile(tmp_path / "run.nprof", host_clock="fixed") as run:
        found = generated(case, "neuron")
    assert torch.equal(found, expected)
    assert found.shape[1] == 6 + NEW_TOKENS
    with run.open() as profile:
        count = profile.query("SELECT count(*) AS n FROM Warning WHERE message LIKE '%native%'").to_pylist()
    assert count == [{"n": 0}]
