"""The front end and driver as tests of kernel libraries call them."""

from __future__ import annotations

import io
from pathlib import Path

import pytest

from neuron_tools.compat.nki import isa as nisa, language as nl
from neuron_tools.frontends.nki.front_end import CompiledKernel, CompileOptions, ParserFrontEnd
from neuron_tools.neff import read_neff
from neuron_tools.nki.kernel import jit
from tests.unit.nki.kernels import floats, on_chip, to_hbm

A = floats(128, 64)


def doubled(x):
    held = on_chip(x)
    nisa.tensor_scalar(held, held, nl.multiply, 2.0)
    return to_hbm(held)


def test_a_module_lists_instructions_with_their_lines():
    result = ParserFrontEnd().compile(jit(doubled), {"x": A}, target="trn2", lnc=1, artifacts_dir="unused")
    listing = io.StringIO()
    result.module.operation.print(file=listing, enable_debug_info=True)
    assert "tensor_scalar  // " + __file__ in listing.getvalue()


def test_a_compiled_kernel_is_an_artifact_of_its_program(tmp_path):
    result = ParserFrontEnd().compile(jit(doubled), {"x": A}, target="gen2")
    options = CompileOptions(output_path=str(tmp_path / "out" / "file.neff")).disable_backend_optimizations()
    compiled = CompiledKernel.from_frontend(result, options)
    program = read_neff(Path(compiled.neff_path)).program
    assert program.name == "doubled"
    assert program.target == "trn1"
    assert [tensor.shape for tensor in program.tensors] == [(128, 64), (128, 64)]
    assert len(program.instructions) >= 1


def test_a_front_end_refuses_what_a_call_refuses():
    def failing(x):
        assert False, "This kernel should fail"  # noqa: B011, PT015

    with pytest.raises(AssertionError, match="should fail"):
        ParserFrontEnd().compile(jit(failing), {"x": A})
