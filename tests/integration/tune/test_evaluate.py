"""Kernels measured in processes of their own: right ones, wrong ones, and those that hang or crash."""

from __future__ import annotations

import json
import subprocess
import sys

import numpy as np
import pytest

pytest.importorskip("optuna")
pytest.importorskip("pebble")

from neuron_profile.tune import Candidate, Evaluator, evaluate
from neuron_profile.tune.measurement import Refusal
from neuron_profile.tune.worker import Job

KERNELS = """
import os
from typing import Literal

import nki
import nki.isa as nisa
import nki.language as nl
import numpy as np

SCALE = 2.0


@nki.jit
def double(a, *, parts: Literal[1, 4, 16] = 16, wrong: Literal[False, True] = False):
    print("noise")
    result = nl.ndarray(a.shape, dtype=a.dtype, buffer=nl.shared_hbm)
    width = a.shape[1] // parts
    for part in range(parts):
        columns = slice(part * width, (part + 1) * width)
        tile = nl.ndarray((a.shape[0], width), dtype=a.dtype, buffer=nl.sbuf)
        nisa.dma_copy(dst=tile, src=a[:, columns])
        if not wrong:
            nisa.tensor_scalar(dst=tile, data=tile, op0=nl.multiply, operand0=SCALE)
        nisa.dma_copy(dst=result[:, columns], src=tile)
    return result


@nki.jit
def hangs(a):
    while True:
        pass


@nki.jit
def crashes(a):
    os._exit(7)


@nki.jit
def too_tall(a):
    return nl.ndarray((256, 1), dtype=a.dtype, buffer=nl.sbuf)


@nki.jit
def fails(a):
    return {}[a.shape]


def inputs():
    return (np.arange(128 * 512, dtype=np.float32).reshape(128, 512),)
"""
DATA = np.arange(128 * 512, dtype=np.float32).reshape(128, 512)


@pytest.fixture
def file(tmp_path):
    path = tmp_path / "kernels.py"
    path.write_text(KERNELS)
    return path


def test_every_way_to_go_wrong_is_one_refused_measurement(file):
    names = ("hangs", "crashes", "too_tall", "fails", "double")
    found = evaluate(
        [f"{file}:{name}" for name in names], (DATA,), expected=(2 * DATA,), workers=2, timeout_s=15
    )
    refusals = {each.candidate.function: each.refusal for each in found}
    assert refusals == {
        "hangs": Refusal.TIMEOUT, "crashes": Refusal.CRASHED, "too_tall": Refusal.RULE,
        "fails": Refusal.FAILED, "double": None,
    }  # fmt: skip
    assert found[-1].difference == 0
    assert all(each.error for each in found[:-1])


def test_times_values_and_counters_of_parameters_and_constants(file):
    candidates = [
        Candidate(file, "double", parameters)
        for parameters in ({}, {"parts": 1}, {"SCALE": 3.0}, {"wrong": True})
    ]
    with Evaluator(Job("inputs", (2 * DATA,)), workers=1) as evaluator:
        many, one, triple, wrong = evaluator.measure(candidates, keep_outputs=True)
    assert one.time_ns < many.time_ns
    assert one.counters["dma_transfers"] == 2
    assert many.counters["dma_transfers"] == 32
    assert one.sbuf_bytes >= 2048
    assert (triple.refusal, wrong.refusal) == (Refusal.VALUES, Refusal.VALUES)
    np.testing.assert_array_equal(triple.outputs[0], 3 * DATA)


def tune(*arguments):
    command = [sys.executable, "-m", "neuron_profile.cli", "tune", *map(str, arguments)]
    return subprocess.run(command, capture_output=True, text=True)


def test_the_best_is_written_as_a_patch_without_wrong_values(file):
    before = file.read_text()
    done = tune(f"{file}:double", "--workers", 1, "--json", "-o", file.parent / "best.patch")
    assert done.returncode == 0, done.stderr
    answer = json.loads(done.stdout)
    assert len(answer["tried"]) == 6
    assert answer["best"]["parameters"] == {"parts": 1, "wrong": False}
    assert answer["best"]["difference"] == 0
    assert "values" in {row["refused"] for row in answer["tried"]}
    subprocess.run(
        ["git", "apply", "--unsafe-paths", "best.patch"], cwd=file.parent, check=True, capture_output=True
    )
    assert file.read_text() == before.replace("parts: Literal[1, 4, 16] = 16", "parts: Literal[1, 4, 16] = 1")


def test_a_kernel_that_cannot_run_as_it_stands_is_told_in_a_line(file):
    done = tune(f"{file}:fails", "--space", file.parent / "none.toml")
    assert done.returncode == 2
    assert done.stderr.count("\n") == 1
    assert "cannot be read" in done.stderr
