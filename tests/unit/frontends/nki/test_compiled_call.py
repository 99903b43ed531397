"""A kernel that is compiled when it is called."""

from __future__ import annotations

import numpy as np

from neuron_tools.compat.nki import isa as nisa, language as nl
from neuron_tools.compat.nki.framework.compiled import CompileKernel
from neuron_tools.neff import read_neff
from tests.unit.nki.kernels import floats, on_chip, to_hbm

A = floats(128, 64)


def doubled(x):
    held = on_chip(x)
    nisa.tensor_scalar(held, held, nl.multiply, 2.0)
    return to_hbm(held)


def test_a_call_computes_and_writes_the_artifact(tmp_path):
    compiled = CompileKernel(func=doubled, artifacts_dir=str(tmp_path / "out"), _enable_simulation=True)
    assert np.array_equal(compiled(A), 2 * A)
    assert read_neff(tmp_path / "out" / "kernel.neff").program.name == "doubled"
