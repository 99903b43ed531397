"""Public search harnesses for kernels tell right candidates from wrong ones, and time the right ones.

Their checkouts lie in a folder that an environment variable names; candidates are written by hand in place of
a language model.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest

from benchmarks.fidelity_kernels.public import FOLDER, folder

ROOT = folder()
AUTOCOMP = """
import json, sys, types
language_models = types.ModuleType("autocomp.common.llm_utils")
language_models.LLMClient = None
sys.modules[language_models.__name__] = language_models
from autocomp.backend.trn.trn_eval import TrnEvalBackend
from autocomp.search.prob import Prob
candidates = json.loads(sys.argv[1])
found = TrnEvalBackend(parallel=True).evaluate_code(Prob("trn-tutorial-nki1", 0), candidates, None)
print("FOUND", json.dumps(found))
"""
ACCELOPT = """
import json, sys
from accelopt.kernel_wrapper import NKIKernel
for kernel in sys.argv[2:]:
    result = NKIKernel(kernel, sys.argv[1]).profile(["hbm_read_bytes", "scalar_engine_active_time_percent"])
    print("FOUND", json.dumps(result.model_dump(), default=float))
"""
TASK = """
import numpy as np

def get_inputs():
    return [np.random.normal(size=(256, 512)).astype(np.float32)]

def forward(x):
    return x / (1 + np.exp(-x))

def transform_to_nki_inputs(inputs):
    return inputs

def transform_nki_outputs(result, reference):
    return [result]
"""
KERNEL = """
import neuronxcc.nki as nki
import neuronxcc.nki.isa as nisa
import neuronxcc.nki.language as nl

@nki.jit
def kernel(x):
    result = nl.ndarray(x.shape, dtype=x.dtype, buffer=nl.shared_hbm)
    rows, columns = nl.arange(128)[:, None], nl.arange(512)[None, :]
    for i in nl.affine_range(2):
        tile = nl.load(x[i * 128 + rows, columns])
        nl.store(result[i * 128 + rows, columns], value=BODY)
    return result
"""


def ran(repository: str, program: str, *arguments: str, cache: Path) -> list[Any]:
    """What a program printed that uses a harness, on the simulated Trn1."""
    assert ROOT is not None
    variables = {
        "PYTHONPATH": os.pathsep.join([str(ROOT / repository), os.environ.get("PYTHONPATH", "")]),
        "PATH": os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]]),
        "NEURON_PLATFORM_TARGET_OVERRIDE": "trn1",
    }
    script = cache / "search.py"
    script.write_text(program)
    done = subprocess.run(
        [sys.executable, "-m", "neuron_tools", "--target", "trn1", str(script), *arguments],
        env={**os.environ, **variables}, capture_output=True, text=True, check=True,
    )  # fmt: skip
    lines = [line.removeprefix("FOUND ") for line in done.stdout.splitlines() if line.startswith("FOUND ")]
    return [json.loads(line) for line in lines]


def needs(repository: str, *modules: str) -> pytest.MarkDecorator:
    """Skips a test without the checkout, or without what it imports."""
    there = ROOT is not None and (ROOT / repository).is_dir() and all(map(find_spec, modules))
    return pytest.mark.skipif(
        not there, reason=f"{FOLDER} names no folder with {repository}, or it lacks {modules}"
    )


@pytest.mark.slow
@needs("autocomp")
def test_autocomps_evaluator_compiles_compares_and_profiles_candidates(tmp_path: Path) -> None:
    assert ROOT is not None
    (baseline,) = (ROOT / "autocomp" / "sols" / "trn-tutorial-nki1").glob("0_*.py")
    code = baseline.read_text()
    wrong = code.replace("nl.square(", "nl.sqrt(")
    assert wrong != code
    broken = code.replace("nl.square(", "nl.squared(")
    ((first, second, third, last),) = ran(
        "autocomp", AUTOCOMP, json.dumps([code, f"# again\n{code}", wrong, broken]), cache=tmp_path
    )
    assert first["correct"]
    assert first["latency"] > 0
    assert second["correct"]
    assert second["latency"] == first["latency"]
    assert not third["correct"]
    assert "mismatch" in third["stderr"]
    assert not last["correct"]
    assert "squared" in last["stderr"]


@pytest.mark.slow
@needs("AccelOpt", "pydantic")
def test_accelopts_profiler_runs_checks_and_times_candidates(tmp_path: Path) -> None:
    task = tmp_path / "task.py"
    task.write_text(TASK)
    bodies = ("nl.silu(tile)", "tile / (1.0 + nl.exp(-1.0 * tile))", "nl.sigmoid(tile)", "nl.silly(tile)")
    kernels = [tmp_path / f"kernel{number}.py" for number in range(len(bodies))]
    for kernel, body in zip(kernels, bodies):
        kernel.write_text(KERNEL.replace("BODY", body))
    silu, longer, wrong, broken = ran("AccelOpt", ACCELOPT, str(task), *map(str, kernels), cache=tmp_path)
    assert silu["compiled"]
    assert silu["correct"]
    assert longer["correct"]
    assert 0 < silu["metadata"]["latency"] < longer["metadata"]["latency"]
    assert silu["metadata"]["hbm_read_bytes"] == 256 * 512 * 4
    assert wrong["runnable"]
    assert not wrong["correct"]
    assert "value mismatch" in wrong["metadata"]["correctness_error"][0]
    assert not broken["compiled"]
    assert "silly" in broken["metadata"]["compilation_error"]
